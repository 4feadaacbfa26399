"""Algorithms 2 and 3 compare their batches on a GPU and come to what they come to on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from otimpute import MetaSinkhornImputer, RoundRobinImputer
from otimpute import _device as device
from otimpute.exceptions import GpuError, OtimputeWarning
from otimpute.imputers.gpu.gpu_batches import GpuBatches, _Pairs

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # of the interpreter; a GPU says nothing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 1)) * [1.0, 2.0, -1.0] + 0.3 * RNG.normal(size=(40, 3))
X_incomplete = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


def module(n_inputs: int) -> Any:
    return torch.nn.Linear(n_inputs, 1)


CASES = {
    "linear": (RoundRobinImputer, {"model": "linear", "max_cycles": 1, "n_updates": 2}),
    "mlp, observed against missing": (
        RoundRobinImputer,
        {"model": "mlp", "max_cycles": 1, "n_updates": 2, "batches": "observed-missing"},
    ),
    "linear, observed against all": (RoundRobinImputer, {"max_cycles": 1, "n_updates": 2, "batches": "observed-all"}),
    "module, euclidean": (RoundRobinImputer, {"model": module, "max_cycles": 1, "n_updates": 1, "metric": "euclidean"}),
    "meta": (MetaSinkhornImputer, {"max_steps": 3}),
}


def make(case: str, **parameters: Any) -> Any:
    kind, own = CASES[case]
    return kind(**{"random_state": 0, "batch_size": 8, "n_pairs": 2, **own, **parameters})


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_the_cpu(case: str) -> None:
    fitted = {device: make(case, device=device) for device in ("cpu", "cuda")}
    cpu, gpu = (imputer.fit_transform(X_incomplete) for imputer in fitted.values())
    np.testing.assert_allclose(gpu, cpu, atol=2e-4)
    assert np.abs(cpu - make(case, device="cpu", random_state=1).fit_transform(X_incomplete)).max() > 1e-3  # not by chance
    assert [imputer.device_ for imputer in fitted.values()] == ["cpu", "cuda"]
    for name, values in fitted["cpu"].history_.items():
        np.testing.assert_allclose(fitted["cuda"].history_[name], values, rtol=1e-2, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("case", ["linear", "meta"])
def test_a_gpu_that_fails_is_an_error_or_a_stated_fall_back(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare, calls = _Pairs.compare, []

    def fail_later(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compare(self, *arguments)

    monkeypatch.setattr(_Pairs, "compare", fail_later)
    with pytest.raises(GpuError, match="the comparison of 2 pairs of 8 rows does not fit"):
        make(case, device="cuda").fit(X_incomplete)
    calls.clear()
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    monkeypatch.setattr(device, "interpreted", lambda: False)
    with pytest.warns(OtimputeWarning, match='With device="auto" the CPU takes over'):
        imputer = make(case, device="auto")
        imputed = imputer.fit_transform(X_incomplete)
    np.testing.assert_allclose(imputed, make(case, device="cpu").fit_transform(X_incomplete), atol=2e-4)
    assert len(calls) == 2
    assert imputer.device_ == "cpu"


def test_short_trainings_do_not_look_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpu_trouble", lambda: pytest.fail("looked"))
    monkeypatch.setattr(GpuBatches, "__init__", lambda *_: pytest.fail("used"))
    assert make("linear").fit(X_incomplete).device_ == "cpu"
