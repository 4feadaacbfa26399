"""Divergence and gradient on a GPU: the kernel "cuda" beside geomloss's tensorized backend, float32, at equal marginal error.

python perf/gpu_streaming.py [--points 1024 4096 8192 16384] [--tolerance 1e-4] [--repeats 9]

Two standard normal clouds in 64 dimensions, .5 apart, ε = 5 % of the median cost. Times are medians of CUDA events after a
warm-up, tensors already on the GPU. geomloss runs with the cheapest `scaling` whose potentials have marginals as good as the
tolerance, as measured by the same function for both. `--dry` runs it all in Triton's interpreter, for its syntax only.
"""

import argparse
import math
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--points", type=int, nargs="+", default=[1024, 4096, 8192, 16384])
parser.add_argument("--dimensions", type=int, default=64)
parser.add_argument("--tolerance", type=float, default=1e-4)
parser.add_argument("--repeats", type=int, default=9)
parser.add_argument("--dry", action="store_true", help="without a GPU, by Triton's interpreter")
arguments = parser.parse_args()
if arguments.dry:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import torch
from geomloss import SamplesLoss
from gpu_clock import BYTES, EXPONENTIALS, FLOPS, TF32_FLOPS, median_seconds
from torch import Tensor

from otimpute._gpu import tensors_on
from otimpute.transport.kernels import streaming

SCALINGS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
MAX_SWEEPS = 1000


def main() -> None:
    rows = [row for n_points in arguments.points for row in compare(n_points)]
    print("\n| points | who | ms | geomloss / ours | marginal error | error of value | error of gradient | peak MiB | notes |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


def compare(n: int) -> list[str]:
    x, y, epsilon = clouds(n)
    exact_value, exact_gradient, *_ = ours(x.double(), y.double(), epsilon, 1e-9)

    def row(who: str, run, errors: float, ratio: str, notes: str) -> str:
        value, gradient = run()[:2]
        value_error = abs(float(value - exact_value)) / abs(float(exact_value))
        gradient_error = float((gradient - exact_gradient).norm() / exact_gradient.norm())
        return (
            f"| {n} | {who} | {1e3 * times[who]:.3g} | {ratio} | {errors:.1e} | {value_error:.1e} | {gradient_error:.1e} | "
            f"{peak_memory(run) / 2**20:.0f} | {notes} |"
        )

    def run_ours() -> tuple:
        return ours(x, y, epsilon, arguments.tolerance)

    *_, potentials, n_softmins = run_ours()
    our_error = marginal_error(x, y, epsilon, *potentials)
    scaling, their_error = cheapest_scaling(x, y, epsilon)

    def run_geomloss() -> tuple:
        points = x.clone().requires_grad_()
        value = geomloss(epsilon, scaling)(points, y)
        return value.detach(), torch.autograd.grad(value, [points])[0]

    runs = {"otimpute": run_ours, "geomloss": run_geomloss}
    times = {who: median_seconds(run, arguments.repeats, dry=arguments.dry) for who, run in runs.items()}
    ratio = f"{times['geomloss'] / times['otimpute']:.1f}"
    return [
        row("otimpute", run_ours, our_error, ratio, f"{n_softmins} softmins, {floors(n, n_softmins, times['otimpute'])}"),
        row(
            "geomloss",
            run_geomloss,
            their_error,
            "1",
            f"scaling {scaling}{'' if their_error <= arguments.tolerance else ', too coarse'}",
        ),
    ]


def clouds(n: int) -> tuple[Tensor, Tensor, float]:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, arguments.dimensions, generator=generator) for _ in range(2))
    y[:, 0] += 0.5
    some = slice(0, 2000)
    epsilon = 0.05 * float((torch.cdist(x[some], y[some]).square() / 2).median())
    device = tensors_on("this benchmark")
    return x.to(device), y.to(device), epsilon


def ours(x: Tensor, y: Tensor, epsilon: float, tolerance: float) -> tuple:
    """Value, gradient in x, potentials of all three problems, and how many softmins they took."""
    x, y = scaled(x, y, epsilon)
    a = torch.full(x.shape[:2], 1 / x.shape[1], dtype=x.dtype, device=x.device)
    x_norms, y_norms = streaming.half_squared_norms(x), streaming.half_squared_norms(y)
    largest_cost = 2 * float(torch.maximum(x_norms.max(), y_norms.max()))
    cross = streaming.cross(x, y, a, a, largest_cost, tolerance, MAX_SWEEPS)
    self_x, self_y = (streaming.itself(points, a, tolerance, MAX_SWEEPS) for points in (x, y))
    value = epsilon * (a * (cross.F - self_x.F) + a * (cross.H - self_y.F)).sum()
    to_x, to_y = (streaming.project(x, points, H, a.log(), points) for points, H in ((x, self_x.F), (y, cross.H)))
    gradient = math.sqrt(epsilon) * (a[:, :, None] * (to_x - to_y))[0]
    potentials = cross.F + x_norms, cross.H + y_norms, self_x.F + x_norms, self_y.F + y_norms
    n_softmins = 2 * cross.n_sweeps + self_x.n_sweeps + self_y.n_sweeps
    return value, gradient, [epsilon * potential[0] for potential in potentials], n_softmins


def scaled(x: Tensor, y: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    centre = (x.mean(dim=0) + y.mean(dim=0)) / 2
    return tuple(((points - centre) / math.sqrt(epsilon))[None] for points in (x, y))


def marginal_error(x: Tensor, y: Tensor, epsilon: float, f: Tensor, g: Tensor, self_f: Tensor, self_g: Tensor) -> float:
    """The largest ℓ1 error of the marginals of the three plans, in float64."""
    x, y = scaled(x.double(), y.double(), epsilon)
    log_a = torch.full(x.shape[:2], -math.log(x.shape[1]), dtype=x.dtype, device=x.device)
    potentials = [potential.detach().double()[None] / epsilon for potential in (f, g, self_f, self_g)]
    F, H, self_F, self_H = (
        p - streaming.half_squared_norms(points) for p, points in zip(potentials, (x, y, x, y), strict=True)
    )
    sides = (x, y, F, H), (y, x, H, F), (x, x, self_F, self_F), (y, y, self_H, self_H)
    return max(float(((F - streaming.softmin(x, y, H, log_a)).exp() - 1).abs().mean()) for x, y, F, H in sides)


def geomloss(epsilon: float, scaling: float, **options) -> SamplesLoss:
    blur = math.sqrt(epsilon)
    return SamplesLoss("sinkhorn", p=2, blur=blur, scaling=scaling, backend="tensorized", **{"debias": True, **options})


def cheapest_scaling(x: Tensor, y: Tensor, epsilon: float) -> tuple[float, float]:
    """The first that is as good as the tolerance, or the last; and its marginal error.

    With debiasing geomloss returns differences of potentials only, so each problem is solved alone, with the same updates.
    """
    corners = torch.cat([x, y]).aminmax(dim=0)
    diameter = float((corners.max - corners.min).norm())  # of both clouds: where it starts to anneal in all three problems
    for scaling in SCALINGS:
        loss = geomloss(epsilon, scaling, debias=False, potentials=True, diameter=diameter)
        f, g = loss(x, y)
        # A self problem has two equal potentials, by the same averaged updates.
        self_f, self_g = (loss(points, points)[0] for points in (x, y))
        error = marginal_error(x, y, epsilon, f.flatten(), g.flatten(), self_f.flatten(), self_g.flatten())
        print(f"{len(x)} points: geomloss, scaling {scaling}: marginal error {error:.1e}", flush=True)
        if error <= arguments.tolerance:
            break
    return scaling, error


def peak_memory(run) -> int:
    if arguments.dry:
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated()


def floors(n: int, n_softmins: int, seconds: float) -> str:
    """How many times longer it took than each part of the hardware would need alone for its share of the softmins."""
    pairs, d = n_softmins * n**2, arguments.dimensions
    least = {
        "tf32x3": 3 * 2 * pairs * d / TF32_FLOPS,
        "float32": 2 * pairs * d / FLOPS,
        "exp": pairs / EXPONENTIALS,
        "bytes": n_softmins * 4 * 2 * n * (d + 1) / BYTES,
    }
    return "times the floor of " + ", ".join(f"{name}: {seconds / floor:.3g}" for name, floor in least.items())


main()
