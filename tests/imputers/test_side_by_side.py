"""Fits that share a GPU give what each gives alone, whoever else is there. Without a GPU, Triton's interpreter stands in."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from otimpute import SinkhornImputer, fit_transform_many
from otimpute import _device as device
from otimpute.exceptions import DivergedError, GpuError, OtimputeWarning
from otimpute.fitting.training import TrainingOutcome
from otimpute.imputers import side_by_side
from otimpute.imputers.sinkhorn import descent
from otimpute.imputers.sinkhorn.descent import Descended, empty_history

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:triton")  # the interpreter's integers overflow, as they should


def table(seed: int, n: int = 12, d: int = 3, rate: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) * np.linspace(1, 2, d) + 0.3 * rng.normal(size=(n, d))
    return np.where(rng.random(X.shape) < rate, np.nan, X)


def imputer(seed: int = 0, **changes: Any) -> SinkhornImputer:
    return SinkhornImputer(**{"device": "cuda", "max_steps": 1, "batch_size": 4, "random_state": seed, **changes})


@pytest.fixture
def group_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many fits each descent on the GPU had."""
    sizes: list[int] = []
    made = descent.GpuSteps

    def make(fits: Any, *others: Any) -> Any:
        sizes.append(len(fits))
        return made(fits, *others)

    monkeypatch.setattr(descent, "GpuSteps", make)
    return sizes


def no_work(group: Any, *_: Any) -> list[Descended]:
    """The outcome of a descent that leaves everything as it was."""
    outcome = TrainingOutcome(0, 0, "max_steps", empty_history(validates=False))
    return [Descended(each.fit.values[:, :3][each.fit.free], outcome) for each in group]


@pytest.mark.parametrize(
    ("parameters", "orders"),
    [
        ({"validation_fraction": 0.1, "max_steps": 2}, [[0, 1], [1, 0]]),
        ({"metric": "euclidean", "one_sided": True, "n_pairs": 2, "max_steps": 1}, [[1, 0]]),
    ],
    ids=["validated", "one-sided"],
)
def test_each_result_is_that_of_the_fit_alone_in_any_order(
    parameters: dict[str, Any], orders: list[list[int]], group_sizes: list[int]
) -> None:
    tables = [table(seed) for seed in range(2)]
    alone = [imputer(seed, **parameters) for seed in range(2)]
    expected = [each.fit_transform(X) for each, X in zip(alone, tables, strict=True)]
    for order in orders:
        together = [imputer(seed, **parameters) for seed in order]
        found = fit_transform_many(together, [tables[seed] for seed in order])
        for seed, each, X_imputed in zip(order, together, found, strict=True):
            np.testing.assert_array_equal(X_imputed, expected[seed])
            np.testing.assert_equal(each.history_, alone[seed].history_)
            assert (each.device_, each.stop_reason_, each.n_steps_) == ("cuda", "max_steps", parameters["max_steps"])
            np.testing.assert_array_equal(each.transform(tables[0]), alone[seed].transform(tables[0]))
    assert group_sizes == [1, 1] + [2] * len(orders)


def test_only_fits_that_are_alike_meet_and_nobody_waits_in_vain(group_sizes: list[int]) -> None:
    seen = []
    several: list[tuple[SinkhornImputer, np.ndarray]] = [
        (imputer(0), table(0)),
        (imputer(1), table(1, rate=0)),  # nothing to do
        (imputer(2), table(2, d=2)),
        (imputer(3, device="cpu"), table(3)),
        (imputer(4, callbacks=seen.append), table(4)),  # alone: a callback stops one fit
        (imputer(5), table(5)),
        (imputer(6), table(6, d=2)),
        (imputer(7, metric="euclidean"), table(7)),
        (imputer(8, learning_rate=0.1), table(8)),
    ]
    found = fit_transform_many(*(list(each) for each in zip(*several, strict=True)))
    assert sorted(group_sizes) == [1, 1, 1, 2, 2]
    assert len(seen) == 1
    assert several[1][0].stop_reason_ == "nothing missing"
    for k in (1, 2, 3, 5):
        each, X = several[k]
        np.testing.assert_array_equal(found[k], clone(each).fit_transform(X))


def test_an_error_is_of_one_and_the_others_are_fitted(group_sizes: list[int]) -> None:
    several = [imputer(0), imputer(1, batch_size=1000), imputer(2), imputer(3, max_steps=-1)]
    with pytest.raises(ValueError, match="batch_size=1000 exceeds"):
        fit_transform_many(several, [table(seed) for seed in range(4)])
    assert group_sizes == [2]
    for seed in (0, 2):
        np.testing.assert_array_equal(several[seed].transform(table(9)), imputer(seed).fit(table(seed)).transform(table(9)))


def failing(monkeypatch: pytest.MonkeyPatch, error_for: Callable[[list[Any]], Exception | None]) -> list[int]:
    """A GPU on which some groups fail; returns the sizes of the groups that try."""
    sizes: list[int] = []
    dead: list[Any] = []
    made = descent.GpuSteps

    class Failing(made):  # type: ignore[misc, valid-type]
        def __init__(self, fits: list[Any], *others: Any):
            assert all(reference() is None for reference in dead), "memory of a group that failed is still held"
            super().__init__(fits, *others)
            sizes.append(len(fits))
            self._fits = fits

        def _take(self, *arguments: Any) -> Any:
            if (error := error_for(self._fits)) is None:
                return super()._take(*arguments)
            dead.append(weakref.ref(self))
            raise error

    monkeypatch.setattr(descent, "GpuSteps", Failing)
    return sizes


def test_a_group_that_does_not_fit_into_memory_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [imputer(seed).fit_transform(table(seed)) for seed in range(3)]
    full = lambda fits: torch.OutOfMemoryError("CUDA out of memory") if len(fits) > 1 else None  # noqa: E731
    sizes = failing(monkeypatch, full)
    found = fit_transform_many([imputer(seed) for seed in range(3)], [table(seed) for seed in range(3)])
    assert sizes == [3, 1, 2, 1, 1]
    np.testing.assert_array_equal(found, expected)


def test_a_fit_that_diverges_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [table(0), table(1, rate=0.4), table(2)]
    n_bad = np.isnan(tables[1]).sum()
    sizes = failing(
        monkeypatch, lambda fits: DivergedError("infinite") if any(fit.free.sum() == n_bad for fit in fits) else None
    )
    several = [imputer(seed) for seed in range(3)]
    with pytest.raises(DivergedError, match="infinite"):
        fit_transform_many(several, tables)
    assert sizes == [3, 1, 2, 1, 1]
    assert [each.__sklearn_is_fitted__() for each in several] == [True, False, True]


def test_where_the_gpu_fails_auto_falls_back_each_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, lambda _: RuntimeError("CUDA error: an illegal memory access was encountered"))
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    monkeypatch.setattr(device, "interpreted", lambda: False)
    several = [imputer(seed, device="auto") for seed in range(2)]
    with pytest.warns(OtimputeWarning, match="the CPU takes over") as caught:
        found = fit_transform_many(several, [table(0), table(1)])
    assert sum("the CPU takes over" in str(each.message) for each in caught) == 2
    for seed, X_imputed in enumerate(found):
        assert several[seed].device_ == "cpu"
        np.testing.assert_array_equal(X_imputed, imputer(seed, device="cpu").fit_transform(table(seed)))
    with pytest.raises(GpuError, match="the GPU failed during a fit of 12 × 3 values"):
        fit_transform_many([imputer(0), imputer(1)], [table(0), table(1)])


def test_an_interrupt_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "descend_on_gpu", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_transform_many([imputer(0), imputer(1)], [table(0), table(1)])
    monkeypatch.setattr(side_by_side, "descend_on_gpu", no_work)
    assert imputer(0).fit(table(0)).device_ == "cuda"


def test_so_many_fits_descend_together_as_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(side_by_side, "descend_on_gpu", lambda group: (sizes.append(len(group)), no_work(group))[1])
    fit_transform_many([imputer(seed) for seed in range(70)], [table(0)] * 70)
    assert sizes == [32, 32, 6]


def test_without_a_gpu_it_is_a_loop(group_sizes: list[int]) -> None:
    generators = [np.random.default_rng(0) for _ in range(2)]
    frames = [pd.DataFrame(table(seed), columns=["a", "b", "c"]) for seed in range(3)]
    found = fit_transform_many([imputer(device="auto", random_state=generators[0]) for _ in range(3)], frames)
    for frame, completed in zip(frames, found, strict=True):
        expected = imputer(device="auto", random_state=generators[1]).fit_transform(frame)
        pd.testing.assert_frame_equal(completed, expected)
    assert group_sizes == []


def test_what_cannot_be_fitted_is_refused() -> None:
    one = imputer()
    with pytest.raises(ValueError, match=r"got the same one twice; pass copies made by sklearn\.base\.clone"):
        fit_transform_many([one, one], [table(0), table(1)])
    with pytest.raises(ValueError, match="got 1 imputers and 2 tables"):
        fit_transform_many([one], [table(0), table(1)])
