"""Sums that are exact, so that no order of the rows and no partitioning of them can change a bit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled

_N_LIMBS = 68  # of 32 bits: from the smallest number there is to the largest, and carries
_ROWS_PER_CARRY = 1 << 28
_GRID = 1 << 16  # steps to a unit; centred values of up to so many units are added up by so many rows at a time:
_NEAR, _ROWS_OF_NEAR = 8.0, 1 << 15  # 8² · 2³² · 2¹⁵ = 2⁵³, up to where float64 holds every whole number
_FAR, _ROWS_OF_FAR = 512.0, 1 << 3
_GROUPS = 1 << 9  # of such sums that an int64 holds
_LOW_HALF = (1 << 32) - 1


class ColumnSums:
    """The sum of each column and how many values it has, in integers wide enough for any double.

    >>> sums = ColumnSums.empty(1)
    >>> sums.add(np.array([[1e300], [1.0], [-1e300]]), np.zeros((3, 1), bool))
    >>> sums.means().tolist()
    [0.3333333333333333]
    """

    def __init__(self, n: NDArray[np.int64], limbs: NDArray[np.int64]):
        self.n, self.limbs = n, limbs  # [d], [d, _N_LIMBS]
        self._since_carry = 0

    @classmethod
    def empty(cls, n_columns: int) -> ColumnSums:
        """Of no rows."""
        return cls(np.zeros(n_columns, np.int64), np.zeros((n_columns, _N_LIMBS), np.int64))

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows ``[n, d]``."""
        for k in range(len(self.n)):
            column = values[~missing[:, k], k].astype(np.float64)
            self.n[k] += len(column)
            _add_up(column.view(np.uint64), self.limbs[k])
        self._carry(len(values))

    def merge(self, other: ColumnSums) -> None:
        """Add what another one has seen."""
        self.n += other.n
        for each in (self, other):
            each._carry(_ROWS_PER_CARRY)
        self.limbs += other.limbs
        self._carry(_ROWS_PER_CARRY)

    def means(self) -> NDArray[np.float64]:
        """The mean of each column, the double that is nearest to it; NaN where there is no value."""
        unit = Fraction(1, 1 << 1074)
        totals = [sum(int(limb) << (32 * place) for place, limb in enumerate(limbs)) for limbs in self.limbs]
        return np.array([float(total * unit / int(n)) if n else np.nan for total, n in zip(totals, self.n, strict=True)])

    def as_data(self) -> dict[str, Any]:
        """The same as plain data."""
        self._carry(_ROWS_PER_CARRY)
        return {"n": self.n.tolist(), "limbs": self.limbs.tolist()}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> ColumnSums:
        """What `as_data` returned."""
        return cls(np.array(data["n"], np.int64), np.array(data["limbs"], np.int64).reshape(len(data["n"]), _N_LIMBS))

    def _carry(self, n_rows: int) -> None:
        self._since_carry += n_rows
        if self._since_carry < _ROWS_PER_CARRY:
            return
        self._since_carry = 0
        for place in range(_N_LIMBS - 1):
            carry = self.limbs[:, place] >> 32
            self.limbs[:, place] -= carry << 32
            self.limbs[:, place + 1] += carry


@compiled
def _add_up(bits, limbs):  # type: ignore[no-untyped-def]
    """Add doubles, given as bits, to a number in limbs of 32 bits, of which the first counts steps of 2⁻¹⁰⁷⁴."""
    low = np.uint64(0xFFFFFFFF)
    for i in range(bits.shape[0]):
        exponent = np.int64((bits[i] >> np.uint64(52)) & np.uint64(0x7FF))
        digits = bits[i] & np.uint64(0xFFFFFFFFFFFFF)
        if exponent > 0:
            digits |= np.uint64(1) << np.uint64(52)
            exponent -= 1
        place, shift = exponent >> 5, np.uint64(exponent & 31)
        first = (digits & low) << shift
        second = ((digits >> np.uint64(32)) << shift) + (first >> np.uint64(32))
        sign = 1 if bits[i] >> np.uint64(63) == np.uint64(0) else -1
        limbs[place] += sign * np.int64(first & low)
        limbs[place + 1] += sign * np.int64(second & low)
        limbs[place + 2] += sign * np.int64(second >> np.uint64(32))


class ScatterSums:
    """Sums of centred rows and of their products, on a grid of 2⁻¹⁶, so that they are sums of whole numbers.

    Entries farther than 512 units from the centre count as 512.
    """

    def __init__(self, n: int, drift: NDArray[Any], scatter: NDArray[Any]):
        self.n, self._drift, self._scatter = n, drift, scatter  # Python's integers, which have no largest one

    @classmethod
    def empty(cls, n_columns: int) -> ScatterSums:
        """Of no rows."""
        return cls(0, np.zeros(n_columns, object), np.zeros((n_columns, n_columns), object))

    def add(self, centred: NDArray[np.float64]) -> None:
        """Add rows ``[n, d]``."""
        grid = np.rint(np.clip(centred, -_FAR, _FAR) * _GRID)
        self.n += len(grid)
        self._drift = self._drift + grid.astype(np.int64).sum(axis=0).astype(object)
        far = (np.abs(grid) > _NEAR * _GRID).any(axis=1)
        for rows, at_a_time in ((grid if not far.any() else grid[~far], _ROWS_OF_NEAR), (grid[far], _ROWS_OF_FAR)):
            for begin in range(0, len(rows), at_a_time * _GROUPS):
                some = rows[begin : begin + at_a_time * _GROUPS]
                whole = len(some) // at_a_time * at_a_time
                blocks = some[:whole].reshape(-1, at_a_time, some.shape[1])
                products = (blocks.transpose(0, 2, 1) @ blocks).astype(np.int64).sum(axis=0)
                rest = some[whole:]
                self._scatter = self._scatter + (products + (rest.T @ rest).astype(np.int64)).astype(object)

    def merge(self, other: ScatterSums) -> None:
        """Add what another one has seen."""
        self.n += other.n
        self._drift, self._scatter = self._drift + other._drift, self._scatter + other._scatter

    def totals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The sums ``[d]`` and the products ``[d, d]``."""
        return _over(self._drift, _GRID), _over(self._scatter, _GRID**2)

    def as_data(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"n": self.n, "drift": self._drift.tolist(), "scatter": self._scatter.tolist()}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> ScatterSums:
        """What `as_data` returned."""
        d = len(data["drift"])
        scatter = np.array(data["scatter"], dtype=object).reshape(d, d)
        return cls(data["n"], np.array(data["drift"], dtype=object), scatter)


class WholeSums:
    """Sums of arrays of whole numbers, in two int64 each: one int64 has not enough digits for all rows of a large table."""

    def __init__(self, halves: NDArray[np.int64]):
        self._halves = halves  # [2, ...]: multiples of 2³², and from 0 to 2³² − 1 what is left

    @classmethod
    def empty(cls, *shape: int) -> WholeSums:
        """Of no arrays."""
        return cls(np.zeros((2, *shape), np.int64))

    def add(self, whole: NDArray[np.int64]) -> None:
        """Add an array."""
        self.merge(WholeSums(np.stack([whole >> 32, whole & _LOW_HALF])))

    def merge(self, other: WholeSums) -> None:
        """Add what another one has seen."""
        self._halves += other._halves
        self._halves[0] += self._halves[1] >> 32
        self._halves[1] &= _LOW_HALF

    def totals(self) -> NDArray[Any]:
        """The sums, as Python's integers, which have no largest one."""
        high, low = self._halves.astype(object)
        return np.asarray(high * (1 << 32) + low)

    def as_data(self) -> list[Any]:
        """The same as plain data."""
        return self._halves.ravel().tolist()

    @classmethod
    def from_data(cls, data: list[Any], *shape: int) -> WholeSums:
        """What `as_data` returned, of arrays of a shape."""
        return cls(np.array(data, np.int64).reshape(2, *shape))


def _over(whole: NDArray[Any], unit: int) -> NDArray[np.float64]:
    """Python's integers over a unit, rounded once."""
    flat: Sequence[Any] = whole.ravel().tolist()
    return np.array([each / unit for each in flat], dtype=np.float64).reshape(whole.shape)
