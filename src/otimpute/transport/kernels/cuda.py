"""The GPU kernel: softmins are streamed tile by tile, so that memory grows with points, not with pairs. Maths in README.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._gpu import gpu_failures, tensors_on
from ..._optional import require
from .contract import Array, Potentials, precision

if TYPE_CHECKING:
    from torch import Tensor

    from .streaming import Solution

name = "cuda"

# What a projection may lose: it does not know the tolerance of the potentials it is given.
_PROJECTION_ERROR = 1e-4


def cross(x: Array, y: Array, a: Array, b: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Alternating log-domain updates, over-relaxed."""
    with _clouds(x, y, epsilon, tolerance) as clouds:
        from . import streaming

        weights = clouds.tensor(a), clouds.tensor(b)
        solution = streaming.cross(clouds.x, clouds.y, *weights, clouds.largest_exponent, tolerance, max_iterations)
        return clouds.potentials(solution)


def itself(x: Array, a: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Averaged symmetric updates."""
    with _clouds(x, x, epsilon, tolerance) as clouds:
        from . import streaming

        return clouds.potentials(streaming.itself(clouds.x, clouds.tensor(a), tolerance, max_iterations))


def project(x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
    """Row-normalised plan times the target points."""
    with _clouds(x, y, epsilon, _PROJECTION_ERROR) as clouds:
        from . import streaming

        h = clouds.tensor(g / epsilon - clouds.y_norms)
        projected = streaming.project(clouds.x, clouds.y, h, clouds.tensor(b).log(), clouds.y)
        return clouds.centre + float(np.sqrt(epsilon)) * _array(projected)


class _Clouds(NamedTuple):
    """Two clouds on the device, centred, in units of √ε, and what leads back to the caller's units."""

    x: Tensor
    y: Tensor
    x_norms: Array  # half squared, float64
    y_norms: Array
    centre: Array
    epsilon: float

    @property
    def largest_exponent(self) -> float:
        return _largest_exponent(self.x_norms, self.y_norms)

    def tensor(self, array: Array) -> Tensor:
        return self.x.new_tensor(array)

    def potentials(self, solution: Solution) -> Potentials:
        f, g = (_array(solution.F) + self.x_norms) * self.epsilon, (_array(solution.H) + self.y_norms) * self.epsilon
        return Potentials(f, g, _array(solution.error), np.full(len(f), solution.n_sweeps))


@contextmanager
def _clouds(x: Array, y: Array, epsilon: float, tolerance: float) -> Iterator[_Clouds]:
    """Both clouds where they are needed; while they are, failures of the GPU are explained."""
    where, torch = tensors_on('kernel="cuda"'), require("torch", 'kernel="cuda"', "gpu")
    centre = (x.mean(axis=1, keepdims=True) + y.mean(axis=1, keepdims=True)) / 2
    x_centred, y_centred = ((points - centre) / np.sqrt(epsilon) for points in (x, y))
    x_norms, y_norms = (np.einsum("bnd,bnd->bn", points, points) / 2 for points in (x_centred, y_centred))
    kind = precision(x_norms, y_norms, _largest_exponent(x_norms, y_norms) / 2, tolerance)
    with gpu_failures(f"transport between clouds of shapes {x.shape} and {y.shape}"):
        x_there, y_there = (
            torch.tensor(points, dtype=getattr(torch, kind.name), device=where) for points in (x_centred, y_centred)
        )
        yield _Clouds(x_there, y_there, x_norms, y_norms, centre, epsilon)


def _largest_exponent(x_norms: Array, y_norms: Array) -> float:
    """The size of the largest products x·y, and of the largest costs, between clouds around the same centre."""
    return float(2 * max(x_norms.max(), y_norms.max()))


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.double().cpu().numpy()
    return array
