"""Algorithm 1 on a GPU: time per step, pairs per second, a table of ten million rows; beside geomloss, POT and the CPU.

python perf/gpu_steps.py step throughput scale --data FOLDER

Times of kernels are medians of CUDA events after a warm-up; times of fits are wall clock, kernels compiled before. `--dry` runs
everything small, in Triton's interpreter, for its syntax only.
"""

import argparse
import os
import resource
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("parts", nargs="+", choices=["step", "throughput", "scale"])
parser.add_argument("--data", type=Path, help="folder of the data sets")
parser.add_argument("--pairs", type=int, default=8192)
parser.add_argument("--rows", type=int, default=10_000_000)
parser.add_argument("--dry", action="store_true", help="without a GPU, by Triton's interpreter")
arguments = parser.parse_args()
if arguments.dry:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import geomloss_loop
import numpy as np
import torch
from geomloss import SamplesLoss
from gpu_clock import BYTES, EXPONENTIALS, FLOPS, TF32_FLOPS, median_seconds

from otimpute import SinkhornImputer
from otimpute.datasets import load_dataset
from otimpute.imputers.batches.divergence import make_geometry
from otimpute.imputers.gpu.gpu_steps import GpuSteps
from otimpute.imputers.gpu.gpu_tables import GpuTables
from otimpute.missingness import MCAR, hide

N_CROSS, N_SELF = 20, 3
DEVICE = "cpu" if arguments.dry else "cuda"


class Watch:
    """Seconds spent in steps, which end with a look from the host."""

    def __init__(self) -> None:
        self.seconds, self.n_steps, self._take = 0.0, 0, GpuSteps.take

    def __enter__(self) -> "Watch":
        def take(steps, first, rates, window_start):
            begun = time.perf_counter()
            found = self._take(steps, first, rates, window_start)
            self.seconds, self.n_steps = self.seconds + time.perf_counter() - begun, self.n_steps + len(rates)
            return found

        GpuSteps.take = take
        return self

    def __exit__(self, *_) -> None:
        GpuSteps.take = self._take


def step() -> None:
    """One fit of breast cancer, one pair of 128 rows a step."""
    X = load_dataset("breast_cancer_diagnostic", data_home=arguments.data).values
    X_incomplete, _ = hide((X - X.mean(axis=0)) / X.std(axis=0), MCAR(0.3), random_state=0)
    if arguments.dry:
        X_incomplete = X_incomplete[:40]
    print("\n| who | µs a step | whole fit, s | steps |\n|---|---|---|---|")
    for kind in (torch.float64, torch.float32):
        for n_steps in (5, 2 if arguments.dry else 100):  # the first to warm up
            seconds = geomloss_loop.impute(X_incomplete, n_steps, 0, device=DEVICE, kind=kind)[1]
        print(f"| published loop on geomloss, {kind}, GPU | {1e6 * seconds:.0f} | | |", flush=True)
    for name, make in {"paper preset": SinkhornImputer.paper, "our defaults": SinkhornImputer}.items():
        size = {"max_steps": 12} if arguments.dry else {}
        for device in ("cuda", "cpu"):
            make(random_state=0, device=device, **size).fit(X_incomplete)  # compiles
            begun = time.perf_counter()
            with Watch() as watch:
                imputer = make(random_state=0, device=device, **size).fit(X_incomplete)
            whole = time.perf_counter() - begun
            per_step = watch.seconds / watch.n_steps if device == "cuda" else whole / imputer.n_steps_
            print(f"| ours, {name}, {device} | {1e6 * per_step:.1f} | {whole:.2f} | {imputer.n_steps_} |", flush=True)


def throughput() -> None:
    """Debiased divergence and gradient of independent pairs, 128 × 128 × 30, 20 cross and 3 self iterations from nothing."""
    m, d, n_pairs = (16, 5, 3) if arguments.dry else (128, 30, arguments.pairs)
    rng = np.random.default_rng(0)
    clouds = rng.normal(size=(n_pairs, 2, m, d)).astype(np.float32)
    clouds[:, 1, :, 0] += 0.5
    epsilon = 0.05 * d
    tables = GpuTables([make_geometry(np.zeros((0, 0)), epsilon, d, d + 1)], n_pairs * 2 * m, 1, m, n_pairs, (N_CROSS, N_SELF))
    tables.values[0, :, :d] = torch.from_numpy(clouds).flatten(0, 2)
    tables.map_all()
    rows = torch.arange(tables.n_rows, dtype=torch.int32, device=tables.device)[None]

    def ours() -> None:
        tables.compare(rows, 0)

    seconds = {"ours": median_seconds(ours, 20, dry=arguments.dry) / n_pairs}
    some = min(n_pairs, 256)  # what the peers' memory holds
    x, y = (torch.tensor(clouds[:some, side], device=DEVICE) for side in range(2))
    gradient = (tables.projected[0, :, 0] - tables.projected[0, :, 1])[:some, 0, :, :d] * tables.from_metric[0]
    error = (gradient.double() - exact_gradient(x.double(), y.double(), epsilon)).norm() / gradient.double().norm()

    def geomloss() -> None:
        points = x.clone().requires_grad_(), y.clone().requires_grad_()
        torch.autograd.grad(loss(*points).sum(), points)

    for scaling in (0.5, 0.9):
        loss = SamplesLoss("sinkhorn", p=2, blur=epsilon**0.5, scaling=scaling, backend="tensorized")
        seconds[f"geomloss, tensorized, scaling {scaling}"] = median_seconds(geomloss, 20, dry=arguments.dry) / some
    try:
        from ot.batch import solve_sample_batch
    except ImportError:
        print("POT has no ot.batch here")
    else:

        def pot() -> None:
            points = x.clone().requires_grad_(), y.clone().requires_grad_()
            parts = [
                solve_sample_batch(*pair, reg=2 * epsilon, max_iter=n, tol=0, method="log_sinkhorn").value.sum()
                for pair, n in ((points, N_CROSS), (points[:1] * 2, N_SELF), (points[1:] * 2, N_SELF))
            ]
            torch.autograd.grad(parts[0] - (parts[1] + parts[2]) / 2, points)

        seconds["POT, ot.batch, as many iterations"] = median_seconds(pot, 20, dry=arguments.dry) / some
    print("\n| who | pairs / s | ours over theirs |\n|---|---|---|")
    for who, each in seconds.items():
        print(f"| {who} | {1 / each:.3g} | {each / seconds['ours']:.0f} |")
    products, sweeps = 7 * 2 * m * m * d, 2 * (2 * N_CROSS + N_SELF + 6) * m * m
    floors = {
        "products in float32, sweeps": (products + sweeps) / FLOPS,
        "products in three passes of tf32, sweeps in float32": 3 * products / TF32_FLOPS + sweeps / FLOPS,
        "exponentials": 5 * m * m / EXPONENTIALS,
        "bytes": 4 * (4 * m * d + 4 * m * tables.stride) / BYTES,
    }
    print("\nTimes the floor of " + ", ".join(f"{what}: {seconds['ours'] / floor:.1f}" for what, floor in floors.items()))
    print(f"Gradient against the same iterations in float64: relative error {error:.1e}")


def exact_gradient(x: torch.Tensor, y: torch.Tensor, epsilon: float) -> torch.Tensor:
    """With respect to x, m times as large, by the same number of iterations in the log domain."""

    def softmin(cost: torch.Tensor, potential: torch.Tensor) -> torch.Tensor:
        return -torch.logsumexp(potential[:, None, :] - cost, dim=2) + np.log(cost.shape[2])

    own, cross = (torch.cdist(x, other) ** 2 / (2 * epsilon) for other in (x, y))
    f = torch.zeros_like(x[..., 0])
    for _ in range(N_SELF):
        f = (f + softmin(own, f)) / 2
    g = softmin(cross.mT, torch.zeros_like(f))
    for _ in range(N_CROSS):
        g = softmin(cross.mT, softmin(cross, g))
    return torch.softmax(f[:, None, :] - own, dim=2) @ x - torch.softmax(g[:, None, :] - cross, dim=2) @ y


def scale() -> None:
    """A long table with 20 % missing, fitted and imputed; how good that is beside a fit of a sample on the CPU."""
    n, d, n_pairs = (300, 5, 2) if arguments.dry else (arguments.rows, 50, 256)
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, d)).astype(np.float32)
    X = np.empty((n, d))
    for begin in range(0, n, 10**6):
        rows = slice(begin, begin + 10**6)
        size = len(X[rows])
        X[rows] = np.tanh(rng.standard_normal((size, 5), np.float32)) @ loadings + 0.5 * rng.standard_normal(
            (size, d), np.float32
        )
    missing = rng.random(X.shape, np.float32) < 0.2
    X_incomplete = np.where(missing, np.nan, X)
    size = {"max_steps": 12, "batch_size": 16} if arguments.dry else {}
    SinkhornImputer(random_state=0, device="cuda", n_pairs=n_pairs, **{"max_steps": 20, **size}).fit(
        X_incomplete[:20_000]
    )  # compiles
    begun = time.perf_counter()
    with Watch() as watch:
        imputer = SinkhornImputer(random_state=0, device="cuda", n_pairs=n_pairs, n_jobs=-1, **size)
        X_imputed = imputer.fit_transform(X_incomplete)
    whole = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    on_gpu = 0.0 if arguments.dry else torch.cuda.max_memory_allocated() / 2**30
    print(
        f"\n{n} × {d}: {whole:.1f} s, of which {watch.seconds:.1f} s in {imputer.n_steps_} steps of {n_pairs} pairs "
        f"({imputer.stop_reason_}); {on_gpu:.1f} GiB on the GPU, {peak:.1f} GiB beside it, table {X.nbytes / 2**30:.1f} GiB"
    )
    some = slice(0, min(n, 100_000))
    on_cpu = SinkhornImputer(random_state=0, device="cpu", n_jobs=-1, **size).fit_transform(X_incomplete[some])
    for who, values in (("on the GPU", X_imputed[some]), ("of these rows alone, on the CPU", on_cpu)):
        off = np.sqrt(np.mean((values - X[some])[missing[some]] ** 2))
        print(f"RMSE of the hidden values in the first {len(values)} rows, fit {who}: {off:.4f}")
    print(f"column mean: {np.sqrt(np.mean((np.nanmean(X_incomplete[some], axis=0) - X[some])[missing[some]] ** 2)):.4f}")


if __name__ == "__main__":
    for part in arguments.parts:
        {"step": step, "throughput": throughput, "scale": scale}[part]()
