"""Models and completers written in torch: checked before the training, trained by our gradient, and never a side effect."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine

torch = pytest.importorskip("torch", reason="needs the extra torch")

import otimpute._interrupt as interrupt  # noqa: E402
from otimpute import MetaSinkhornImputer, RoundRobinImputer  # noqa: E402
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning  # noqa: E402
from otimpute.fitting import FitProgress  # noqa: E402
from otimpute.imputers.round_robin.net_models import layer_sizes, random_parameters  # noqa: E402
from otimpute.metrics import mae, rmse  # noqa: E402
from otimpute.transport import sinkhorn_divergence  # noqa: E402

nn = torch.nn


def whitened(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def punch(X: np.ndarray, rate: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    missing = np.random.default_rng(seed).random(X.shape) < rate
    return np.where(missing, np.nan, X), missing


def correlated(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.3 * rng.normal(size=(n, d))


class Linear(nn.Module):
    """The plainest completer."""

    def __init__(self, n_columns: int, dtype: Any = torch.float32):
        super().__init__()
        self.layer = nn.Linear(n_columns, n_columns, dtype=dtype)

    def forward(self, values: Any, missing: Any) -> Any:
        return torch.where(missing, self.layer(values), values)


class Changed(Linear):
    def __init__(self, n_columns: int, change: Any):
        super().__init__(n_columns)
        self.change = change

    def forward(self, values: Any, missing: Any) -> Any:
        return self.change(super().forward(values, missing), values, missing, self.layer)


class Fixed(nn.Module):
    def forward(self, values: Any, missing: Any) -> Any:
        return values


class NotFinite(nn.Linear):
    def forward(self, inputs: Any) -> Any:
        return super().forward(inputs) / 0


class Wild(Linear):
    """Finite on all ordinary rows."""

    def forward(self, values: Any, missing: Any) -> Any:
        return torch.where(missing, self.layer(values) * torch.sqrt(20 - values.abs().amax(1, keepdim=True)), values)


X_INCOMPLETE = punch(correlated(60, 3))[0]

WRONG_COMPLETERS: dict[str, tuple[Any, type[Exception], str]] = {
    "not a module": (
        lambda values, missing: values,
        TypeError,
        "completer must be a torch.nn.Module or make one from a number of columns, but",
    ),
    "no parameters": (Fixed(), ValueError, "completer has no trainable parameters"),
    "wrong shape": (
        Changed(3, lambda out, v, m, layer: out[:, :2]),
        ValueError,
        "a tensor of the shape of values (60, 3), got (60, 2)",
    ),
    "not a tensor": (Changed(3, lambda out, v, m, layer: [1]), ValueError, "got list"),
    "changes observed values": (
        Changed(3, lambda out, v, m, layer: layer(v)),
        ValueError,
        "changed observed values, by up to",
    ),
    "NaN": (Changed(3, lambda out, v, m, layer: torch.where(m, out * torch.nan, v)), ValueError, "returned NaN or infinity"),
    "not differentiable": (Changed(3, lambda out, v, m, layer: out.detach()), ValueError, "is not differentiable"),
    "holes without parameters": (
        Changed(3, lambda out, v, m, layer: torch.where(m, v, v + 0 * layer(v))),
        ValueError,
        "does not depend on them",
    ),
    "in place": (Changed(3, lambda out, v, m, layer: v.masked_scatter_(m, layer(v)[m])[:, :2]), ValueError, "got (60, 2)"),
    "a function of something else": (lambda n_columns: 3, TypeError, "completer must be a torch.nn.Module, got 3"),
    "another table": (Linear(5), ValueError, "failed on tensors of shape (60, 3)"),
    "half precision": (Linear(3).half(), ValueError, "float32 or float64 on the CPU, got torch.float16"),
    "meta device": (Linear(3).to("meta"), ValueError, "on the CPU, got torch.float32 on meta"),
}


@pytest.mark.parametrize("name", WRONG_COMPLETERS)
def test_a_completer_that_cannot_be_trained_is_refused_with_a_reason(name: str) -> None:
    completer, error, message = WRONG_COMPLETERS[name]
    with pytest.raises(error) as caught:
        MetaSinkhornImputer(completer, max_steps=2).fit(X_INCOMPLETE[np.isnan(X_INCOMPLETE).any(axis=1)].repeat(2, axis=0)[:60])
    assert message in str(caught.value)


ONE_MODULE = nn.Linear(2, 1)
WRONG_MODELS: dict[str, tuple[Any, type[Exception], str]] = {
    "not a module": (lambda d_in: 3, TypeError, "the module that model(d_in) returns must be a torch.nn.Module, got 3"),
    "no parameters": (lambda d_in: nn.Flatten(), ValueError, "has no trainable parameters"),
    "wrong shape": (lambda d_in: nn.Linear(d_in, 2), ValueError, "one number a row, a tensor of shape (5,) or (5, 1)"),
    "a module itself": (nn.Linear(2, 1), TypeError, "pass a function such as lambda d_in: torch.nn.Linear(d_in, 1)"),
    "a class": (nn.Linear, TypeError, "called with a number of inputs, failed"),
    "the same module again": (lambda d_in: ONE_MODULE, ValueError, "returned the same module twice"),
    "other inputs": (lambda d_in: nn.Linear(d_in + 1, 1), ValueError, "failed on a tensor of shape (5, 2)"),
    "NaN": (lambda d_in: NotFinite(d_in, 1), ValueError, "returns NaN or infinity"),
    "frozen": (lambda d_in: nn.Linear(d_in, 1).requires_grad_(False), ValueError, "has no trainable parameters"),
}


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_a_model_that_cannot_be_trained_is_refused_with_a_reason(name: str) -> None:
    model, error, message = WRONG_MODELS[name]
    with pytest.raises(error) as caught:
        RoundRobinImputer(model, max_cycles=1).fit(X_INCOMPLETE)
    assert message in str(caught.value)


def test_a_torch_layer_is_trained_as_the_built_in_linear_model_is() -> None:
    """Same start, same batches, same optimizer: torch's gradients of the parameters against our own."""
    X_incomplete, _ = punch(whitened(correlated(150, 4)))
    settings = {"max_cycles": 2, "n_updates": 8, "n_pairs": 3, "random_state": 3, "order": "given", "learning_rate": 1e-2}
    for model in ("linear", "mlp"):
        ours = RoundRobinImputer(model, initial_weights="random", **settings)
        expected = ours.fit_transform(X_incomplete)
        sizes = layer_sizes(model, 3)
        starts = iter(random_parameters(sizes, 4, _weights_generator(3)))

        def make(d_in: int, sizes: Any = sizes, starts: Any = starts) -> Any:
            layers: list[Any] = []
            theta, p = torch.tensor(next(starts)), 0
            for n_in, n_out in zip(sizes[:-1].tolist(), sizes[1:].tolist(), strict=True):
                layer = nn.Linear(n_in, n_out)
                layer.weight.data = theta[p : p + n_in * n_out].reshape(n_out, n_in).clone()
                layer.bias.data = theta[p + n_in * n_out : p + (n_in + 1) * n_out].clone()
                p += (n_in + 1) * n_out
                layers += [layer, nn.ReLU()]
            return nn.Sequential(*layers[:-1])

        np.testing.assert_allclose(RoundRobinImputer(make, **settings).fit_transform(X_incomplete), expected, atol=2e-3)


def _weights_generator(random_state: int) -> np.random.Generator:
    from otimpute._random import generator, seed_from

    return generator(seed_from(random_state), "weights")


def test_the_gradient_a_completer_is_sent_is_the_finite_difference_of_the_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    import otimpute.imputers.transport_imputer as shared

    monkeypatch.setattr(shared, "N_CROSS_ITERATIONS", 500)
    monkeypatch.setattr(shared, "N_SELF_ITERATIONS", 200)
    X_incomplete, missing = punch(whitened(correlated(40, 3)))
    seen: dict[str, Any] = {}

    class Spy(Linear):
        def forward(self, values: Any, missing: Any) -> Any:
            completed = super().forward(values, missing)
            if completed.requires_grad and self.training:
                seen.update(values=values, missing=missing, completed=completed.detach().clone())
                completed.register_hook(lambda gradient: seen.update(gradient=gradient.clone()))
            return completed

    torch.manual_seed(0)
    imputer = MetaSinkhornImputer(
        Spy(3, torch.float64), max_steps=1, batch_size=20, n_pairs=1, metric="euclidean", epsilon=1.0, l2=0, random_state=0
    )
    imputer.fit(X_incomplete)
    drawn = np.empty((1, 2, 20), np.int64)
    from otimpute._random import seed_from
    from otimpute.imputers.batches.divergence import BatchPlan, draw_pair
    from otimpute.imputers.batches.pairs import ALL_ROWS

    draw_pair(BatchPlan(seed_from(0), ALL_ROWS, ALL_ROWS, 1, 1), 40, 0, 0, drawn)
    table = imputer._model.columns.copy_of(X_incomplete, missing)[:, :3].astype(np.float64)
    listed = list(dict.fromkeys(row for row in drawn.ravel() if missing[row].any()))
    completed, gradient = seen["completed"].numpy(), seen["gradient"].numpy()

    def loss(rows: np.ndarray) -> float:
        full = table.copy()
        full[listed] = rows
        found = sinkhorn_divergence(full[drawn[0, 0]], full[drawn[0, 1]], epsilon=1.0, tol=1e-9, max_iter=5000)
        return float(found.value)

    scale = np.abs(gradient).max()
    for place, row in enumerate(listed):
        for k in range(3):
            moved = np.zeros_like(completed)
            moved[place, k] = 1e-5
            expected = (loss(completed + moved) - loss(completed - moved)) / 2e-5 if missing[row, k] else 0.0
            assert gradient[place, k] == pytest.approx(expected, abs=2e-3 * scale)


def test_a_linear_completer_learns_a_linear_relation_and_its_loss_falls() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 1))
    X = whitened(np.hstack([x, x, -x]) + 0.02 * rng.normal(size=(500, 3)))
    X_incomplete, missing = punch(X, 0.2)
    imputer = MetaSinkhornImputer(
        Linear(3), initial="mean", metric="euclidean", learning_rate=1e-2, max_steps=1500, random_state=0
    )
    imputed = imputer.fit_transform(X_incomplete)
    assert rmse(X, imputed, missing) < 0.45  # a linear map of rows with 0 in their holes cannot do much better
    losses = imputer.history_["loss"]
    assert losses[-1] < 0.7 * losses[0]
    assert imputer.transform([[1.0, np.nan, -1.0]])[0, 1] == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer], ids=lambda load: load.__name__)
def test_the_ready_completer_beats_the_column_mean_also_on_new_rows(load: Any) -> None:
    X = whitened(load().data)
    X_incomplete, missing = punch(X)
    train = np.random.default_rng(1).random(len(X)) < 0.7
    imputer = MetaSinkhornImputer(random_state=0)
    imputed = np.empty_like(X)
    imputed[train] = imputer.fit_transform(X_incomplete[train])
    imputed[~train] = imputer.transform(X_incomplete[~train])
    mean = np.where(missing, np.nanmean(X_incomplete[train], axis=0), X)
    for rows in (train, ~train):
        assert mae(X[rows], imputed[rows], missing[rows]) < 0.9 * mae(X[rows], mean[rows], missing[rows])


def test_a_completer_sees_the_columns_of_the_users_table() -> None:
    """Also constant ones (0) and, as missing, empty ones, which our working copy leaves out."""
    X = np.column_stack([correlated(50, 2), np.full(50, 7.0), np.full(50, np.nan)])
    X[::4, 0] = np.nan
    shown: list[tuple[Any, Any]] = []

    class Spy(Linear):
        def forward(self, values: Any, missing: Any) -> Any:
            shown.append((values, missing))
            return super().forward(values, missing)

    with pytest.warns(UserWarning, match="no observed value"):
        imputed = MetaSinkhornImputer(_share(Spy(4)), max_steps=2, random_state=0).fit_transform(X)
    values, missing = shown[-1]
    assert values.shape == (50, 4)
    assert (values[:, 2:] == 0).all()
    assert missing[:, 3].all()
    assert not missing[:, 2].any()
    np.testing.assert_array_equal(missing[:, 0].numpy(), np.isnan(X[:, 0]))
    assert (imputed[:, 2] == 7).all()
    assert np.isnan(imputed[:, 3]).all()


def _share(module: Any) -> Any:
    """A module that deepcopy does not copy, for tests that look inside."""
    module.__deepcopy__ = lambda memo: module
    return module


def test_the_users_module_and_torchs_state_are_left_alone() -> None:
    completer = Linear(3)
    before = {name: value.clone() for name, value in completer.state_dict().items()}
    state, n_threads = torch.random.get_rng_state(), torch.get_num_threads()
    imputer = MetaSinkhornImputer(completer, max_steps=10, random_state=0).fit(X_INCOMPLETE)
    RoundRobinImputer(lambda d_in: nn.Linear(d_in, 1), max_cycles=1, n_updates=2, random_state=0).fit(X_INCOMPLETE)
    imputer.transform(X_INCOMPLETE)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == n_threads
    for name, value in completer.state_dict().items():
        assert torch.equal(value, before[name])
        assert not torch.equal(imputer.completer_.state_dict()[name], value)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: MetaSinkhornImputer(**{"max_steps": 15, "n_pairs": 4, **k}),
        lambda **k: RoundRobinImputer(lambda d_in: nn.Linear(d_in, 1), **{"max_cycles": 2, "n_updates": 3, **k}),
    ],
    ids=["meta", "round-robin"],
)
def test_threads_and_torchs_own_seed_change_nothing(make: Any) -> None:
    torch.manual_seed(1)
    expected = make(random_state=0).fit_transform(X_INCOMPLETE)
    torch.manual_seed(2)
    np.testing.assert_array_equal(make(random_state=0, n_jobs=3).fit_transform(X_INCOMPLETE), expected)
    assert (make(random_state=1).fit_transform(X_INCOMPLETE) != expected).any()


def test_validation_keeps_the_best_parameters() -> None:
    X_incomplete, _ = punch(whitened(load_wine().data))
    settings = {"learning_rate": 0.05, "step_decay": 1.0, "validation_fraction": 0.2, "random_state": 0, "tol": 0}
    imputer = MetaSinkhornImputer(max_steps=400, patience=3, **settings)
    imputer.fit(X_incomplete)
    scores = imputer.history_["validation_rmse"]
    assert imputer.stop_reason_ == "validation"
    assert imputer.best_step_ == imputer.history_["step"][int(np.argmin(scores))] < imputer.n_steps_
    observed = ~np.isnan(X_incomplete)
    np.testing.assert_array_equal(imputer.fit_transform(X_incomplete)[observed], X_incomplete[observed])


def test_a_warm_start_continues_from_the_trained_completer() -> None:
    X_incomplete, _ = punch(whitened(load_wine().data))
    imputer = MetaSinkhornImputer(max_steps=100, learning_rate=1e-2, warm_start=True, random_state=0).fit(X_incomplete)
    before = imputer.transform(X_incomplete)
    imputer.set_params(max_steps=1, learning_rate=1e-7).fit(X_incomplete)
    np.testing.assert_allclose(imputer.transform(X_incomplete), before, atol=1e-3)
    cold = MetaSinkhornImputer(max_steps=1, learning_rate=1e-7, random_state=0).fit(X_incomplete)
    assert np.abs(cold.transform(X_incomplete) - before).max() > 0.1
    with pytest.raises(ValueError, match="first fit has 13 columns"):
        imputer.fit(X_incomplete[:, :4])


def test_an_interrupted_fit_keeps_what_it_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "_last", [-np.inf])

    def press(progress: FitProgress) -> None:
        if progress.step == 7:
            raise KeyboardInterrupt

    imputer = MetaSinkhornImputer(max_steps=1000, random_state=0, callbacks=press)
    with pytest.warns(FitStoppedWarning, match="Ctrl-C"):
        assert np.isfinite(imputer.fit_transform(X_INCOMPLETE)).all()
    assert imputer.stop_reason_ == "interrupted"
    assert np.isfinite(imputer.transform(X_INCOMPLETE)).all()
    limited = MetaSinkhornImputer(max_steps=10**6, tol=0, max_seconds=0.2, random_state=0)
    with pytest.warns(FitStoppedWarning, match="max_seconds"):
        limited.fit(X_INCOMPLETE)


def test_a_training_that_diverges_says_so() -> None:
    with pytest.raises(DivergedError, match="lower learning_rate"):
        MetaSinkhornImputer(learning_rate=1e30, max_steps=40, random_state=0).fit(X_INCOMPLETE)


def test_modules_with_training_behaviour_predict_without_it() -> None:
    model = RoundRobinImputer(
        lambda d_in: nn.Sequential(nn.BatchNorm1d(d_in), nn.Dropout(0.5), nn.Linear(d_in, 1)),
        max_cycles=2, n_updates=5, random_state=0,
    ).fit(X_INCOMPLETE)  # fmt: skip
    np.testing.assert_array_equal(model.transform(X_INCOMPLETE), model.transform(X_INCOMPLETE))
    alone = np.vstack([model.transform(row[None]) for row in X_INCOMPLETE])
    np.testing.assert_allclose(alone, model.transform(X_INCOMPLETE), atol=1e-4)


def test_imputers_with_torch_parts_clone_and_pickle() -> None:
    imputer = MetaSinkhornImputer(Linear(3), max_steps=5, random_state=0).fit(X_INCOMPLETE)
    expected = imputer.transform(X_INCOMPLETE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(imputer)).transform(X_INCOMPLETE), expected)
    np.testing.assert_array_equal(clone(imputer).fit(X_INCOMPLETE).transform(X_INCOMPLETE), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"initial": np.zeros((60, 3))}, "initial must be one of"),
        ({"max_steps": 0}, "max_steps must be a whole number >= 1, got 0"),
        ({"patience": -1}, "patience must be a whole number >= 1, got -1"),
        ({"l2": "much"}, "l2 must be a finite number >= 0, got 'much'"),
        ({"metric": "manhattan"}, "metric must be one of"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named_with_what_is_accepted(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        MetaSinkhornImputer(**parameters).fit(X_INCOMPLETE)
    assert message in str(error.value)


def test_every_parameter_is_documented() -> None:
    names = list(inspect.signature(MetaSinkhornImputer).parameters)
    assert [name for name in names if f"\n    {name} : " not in MetaSinkhornImputer.__doc__] == []


def test_a_prediction_that_is_not_finite_is_an_error_not_an_imputation() -> None:
    X = whitened(correlated(60, 3))
    X[::3, 1] = np.nan
    imputer = MetaSinkhornImputer(Wild(3), max_steps=3, random_state=0).fit(X)
    with pytest.raises(DivergedError, match="must be finite wherever its inputs are"):
        imputer.transform([[30.0, np.nan, 0.0]])
    with pytest.raises(DivergedError, match="lower learning_rate"):
        MetaSinkhornImputer(learning_rate=1e30, validation_fraction=0, callbacks=lambda p: p.step >= 3, random_state=0).fit(X)


def test_fitted_modules_answer_several_threads_alike() -> None:
    from concurrent.futures import ThreadPoolExecutor

    class Forgetful(Linear):
        def forward(self, values: Any, missing: Any) -> Any:
            return torch.where(missing, nn.functional.dropout(self.layer(values), 0.5, self.training), values)

    model = lambda d_in: nn.Sequential(nn.Dropout(0.5), nn.Linear(d_in, 1))  # noqa: E731
    for imputer in (
        MetaSinkhornImputer(Forgetful(3), max_steps=3, random_state=0),
        RoundRobinImputer(model, max_cycles=1, n_updates=2, random_state=0),
    ):
        expected = imputer.fit(X_INCOMPLETE).transform(X_INCOMPLETE)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(imputer.transform, [X_INCOMPLETE] * 12):
                np.testing.assert_array_equal(found, expected)


def test_fits_in_several_threads_are_those_of_one() -> None:
    from concurrent.futures import ThreadPoolExecutor

    fits = [
        lambda seed=seed: MetaSinkhornImputer(max_steps=10, random_state=seed).fit_transform(X_INCOMPLETE) for seed in range(4)
    ]
    alone = [fit() for fit in fits]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(lambda fit: fit(), fits), alone, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_parts_left_in_evaluation_mode_stay_so() -> None:
    class Frozen(Linear):
        def __init__(self) -> None:
            super().__init__(3)
            self.norm = nn.BatchNorm1d(3).eval()

        def forward(self, values: Any, missing: Any) -> Any:
            return torch.where(missing, self.layer(self.norm(values)), values)

    imputer = MetaSinkhornImputer(Frozen(), max_steps=5, random_state=0).fit(X_INCOMPLETE)
    assert int(imputer.completer_.norm.num_batches_tracked) == 0
    assert not imputer.completer_.training


def test_a_warm_start_survives_a_fit_that_failed_and_refuses_another_completer() -> None:
    imputer = MetaSinkhornImputer(Linear(3), max_steps=10, warm_start=True, random_state=0).fit(X_INCOMPLETE)
    trained, before = imputer.completer_, imputer.transform(X_INCOMPLETE)
    with pytest.raises(DivergedError):
        imputer.set_params(learning_rate=1e30).fit(X_INCOMPLETE)
    assert all(torch.isfinite(parameter).all() for parameter in trained.parameters())
    imputer.set_params(learning_rate=1e-7, max_steps=1).fit(X_INCOMPLETE)
    np.testing.assert_allclose(imputer.transform(X_INCOMPLETE), before, atol=1e-3)
    with pytest.raises(ValueError, match="continues to train Linear"):
        imputer.set_params(completer=Linear(3)).fit(X_INCOMPLETE)


def test_training_rows_and_new_rows_get_the_same_guess_after_a_warm_start_with_validation() -> None:
    imputer = MetaSinkhornImputer(max_steps=5, warm_start=True, validation_fraction=0.2, random_state=0).fit(X_INCOMPLETE)
    np.testing.assert_allclose(imputer.fit_transform(X_INCOMPLETE), imputer.transform(X_INCOMPLETE), atol=1e-4)


def test_a_completer_of_ones_own_warns_of_columns_it_never_learned() -> None:
    X = correlated(60, 3)
    imputer = MetaSinkhornImputer(Linear(3), max_steps=2, validation_fraction=0, random_state=0).fit(X)
    assert imputer.stop_reason_ == "nothing missing"
    with pytest.warns(OtimputeWarning, match="the completer never learned to impute them"):
        imputer.transform([[0.0, np.nan, 1.0]])
    with pytest.raises(ValueError, match="failed on tensors"):
        MetaSinkhornImputer(Linear(5)).fit(X)


def test_one_sided_validation_leaves_complete_rows_complete() -> None:
    X_incomplete, _ = punch(correlated(200, 3), 0.1)
    n_complete = int((~np.isnan(X_incomplete).any(axis=1)).sum())
    imputer = MetaSinkhornImputer(one_sided=True, validation_fraction=0.3, max_steps=2, random_state=0).fit(X_incomplete)
    assert imputer.batch_size_ == min(64, n_complete, 200 - n_complete)
