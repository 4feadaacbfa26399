"""Moving imputed cells as little as rules ask for: every row alone, all rows at once.

A rule is met by a step of Newton's in which every movable column takes the same share of its size: of the cell where the column
holds sizes (a sum is then met in proportion, a product on the scale of logarithms), of the column's spread elsewhere. Rules are
met in turn until all hold. Then what must be whole is rounded, column after column, and those left make up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .inverse import gradient_of, numbers_of, solve_for
from .natures import Nature
from .rules import Rule
from .values import ValueKind, Values

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SWEEPS = 16  # over all rules
_STEPS = 20  # of one rule
_HALVINGS = 8
_PATIENCE = 3  # sweeps after which inequalities are met with room to spare, so that the end is reached
_ROOM, _MOST_ROOM = 1e-7, 1e-2  # relative to the numbers; more with every sweep
_TINY = 1e-200
_SINGULAR = 1e-9
_MOVABLE = (ValueKind.NUMBER, ValueKind.DATE)
RELATIVE = 1e-9  # what rounding may do to numbers
_RELATIVE_OF_DATES = 1e-14  # days since 1970 are large numbers


def tolerance_of(rule: Rule, table: Mapping[str, Values], natures: Mapping[str, Nature], *, rounded: bool = True) -> Numbers:
    """By how much a rule may be off: what computing does to the last digits, and half of what the target is rounded to."""
    own = [natures[name] for name in rule.columns]
    dates = any(nature.kind == ValueKind.DATE for nature in own)
    coarsest = max((nature.precision for nature in own), default=0.0)
    relative = _RELATIVE_OF_DATES if dates else max(RELATIVE, 8 * coarsest if coarsest > 2.0**-52 else 0.0)
    rounding = natures[rule.target].half_unit if rule.target and rounded else 0.0
    return rounding * (1 + RELATIVE) + relative * rule.size(table)


def is_broken(rule: Rule, table: Mapping[str, Values], natures: Mapping[str, Nature]) -> Flags:
    """Where a rule is known not to hold, or is not defined though everything it needs is known."""
    excess = rule.excess(table)
    known = np.logical_and.reduce([table[name].known for name in rule.columns])
    room = tolerance_of(rule, table, natures)
    wrong = excess >= 0 if rule.sign == "<" else (np.abs(excess) if rule.sign == "==" else excess) > room
    return np.asarray(known & (wrong | np.isnan(excess)))


class Adjustment:
    """Some rows of a table in which cells may be moved."""

    def __init__(
        self, rules: Sequence[Rule], natures: Mapping[str, Nature], table: Mapping[str, Values], movable: Mapping[str, Flags]
    ) -> None:
        self.rules, self.natures = rules, natures
        self.room = 0.0  # by which inequalities are more than met
        self.table = {name: Values(each.kind, each.values.copy(), each.known.copy()) for name, each in table.items()}
        self.computed = {rule.target: movable[rule.target] for rule in rules if rule.target}
        still = {name: name in self.computed or natures[name].kind not in _MOVABLE for name in movable}
        self.movable = {
            name: np.zeros_like(flags) if still[name] else flags & table[name].known for name, flags in movable.items()
        }

    def run(self) -> dict[str, Values]:
        """The table with all rules met where they can be."""
        everything = np.arange(len(next(iter(self.table.values())).known))
        self.compute_targets(everything)
        rows = everything[self.any_broken(everything)]
        if not len(rows):
            return self.table
        before, n_broken = self.some(rows), self.count_broken(rows)
        self.meet_rules(rows)
        loose = self.movable
        for name in sorted(loose, key=lambda name: (-self.natures[name].step, name)):
            cells = rows[loose[name][rows]]
            if self.natures[name].is_discrete and len(cells):  # rounded, these stay; the others make up for it
                self.put(name, cells, self.natures[name].nearest(self.table[name].values[cells]))
                self.movable = {**self.movable, name: np.zeros_like(loose[name])}
                self.compute_targets(rows)
                self.meet_rules(rows)
        self.movable = loose
        self.meet_exactly(rows)
        in_vain = self.count_broken(rows) >= n_broken
        for name, column in self.table.items():
            column.values[rows[in_vain]] = before[name].values[in_vain]
        return self.table

    def some(self, rows: NDArray[np.int64]) -> dict[str, Values]:
        """Some rows, copied."""
        return {name: Values(each.kind, each.values[rows], each.known[rows]) for name, each in self.table.items()}

    def put(self, name: str, rows: NDArray[np.int64], values: Numbers) -> None:
        """Write values that the column's bounds allow."""
        column, nature = self.table[name], self.natures[name]
        column.values[rows] = np.clip(values, nature.low, nature.high)

    def compute_targets(self, rows: NDArray[np.int64]) -> None:
        """Write the targets that may be written."""
        for rule in self.rules:
            if rule.target and self.computed[rule.target][rows].any():
                values = numbers_of(rule.right, self.some(rows))
                chosen = self.computed[rule.target][rows] & ~np.isnan(values)
                self.table[rule.target].values[rows[chosen]] = self.natures[rule.target].nearest(values[chosen])
                self.table[rule.target].known[rows[chosen]] = True

    def broken(self, rule: Rule, rows: NDArray[np.int64]) -> Flags:
        """In which of some rows a rule does not hold."""
        return is_broken(rule, self.some(rows), self.natures)

    def any_broken(self, rows: NDArray[np.int64]) -> Flags:
        """In which of some rows some rule does not hold."""
        return self.count_broken(rows) > 0

    def meet_rules(self, rows: NDArray[np.int64]) -> None:
        """Meet one rule after the other until all hold or nothing moves any more; rules that fight each other, together."""
        for sweep in range(_SWEEPS):
            patient = sweep < _PATIENCE
            self.room = 0.0 if patient else min(_ROOM * 16 ** (sweep - _PATIENCE), _MOST_ROOM)
            moved = np.zeros(len(rows), dtype=bool) if patient else self.meet_together(rows)
            for rule in self.rules:
                wrong = self.broken(rule, rows)
                if wrong.any():
                    moved[wrong] |= self.meet(rule, rows[wrong])
            rows = rows[moved & self.any_broken(rows)]
            if not len(rows):
                return

    def meet(self, rule: Rule, rows: NDArray[np.int64]) -> Flags:
        """Bring one rule about in some rows; where anything moved."""
        moved = np.zeros(len(rows), dtype=bool)
        active = np.arange(len(rows))
        for _ in range(_STEPS):
            here = rows[active]
            table = self.some(here)
            aim = self.aim_of(rule, table) * np.ones(len(here))
            gap = rule.excess(table) - aim
            step = self.step_of(rule, table, here, gap)

            def gap_in(k: NDArray[np.int64], here: NDArray[np.int64] = here, aim: Numbers = aim) -> Numbers:
                return np.asarray(np.abs(rule.excess(self.some(here[k])) - aim[k]))

            came_nearer = self.move(here, step, gap_in, np.abs(gap))
            moved[active[came_nearer]] = True
            active = active[came_nearer]
            active = active[self.is_off(rule, rows[active])]
            if not len(active):
                break
        return moved

    def meet_together(self, rows: NDArray[np.int64]) -> Flags:
        """Bring all rules about at once: steps of Newton's that change the cells by the least sum of squared shares."""
        moved = np.zeros(len(rows), dtype=bool)
        active = np.arange(len(rows))
        for _ in range(_STEPS):
            here = rows[active]
            gaps, slopes, sizes, names = self.all_gaps(here)
            steps = _least_squares(slopes * sizes[:, None, :], -gaps) * sizes
            values = np.stack([self.table[name].values[here] for name in names], axis=1)
            low, high = (np.array([getattr(self.natures[name], end) for name in names]) for end in ("low", "high"))
            free = ~(((values <= low) & (steps < 0)) | ((values >= high) & (steps > 0)))
            sizes = sizes * free
            steps = _least_squares(slopes * sizes[:, None, :], -gaps) * sizes
            norms = np.maximum(np.linalg.norm(slopes * sizes[:, None, :], axis=2), _TINY)

            def gap_in(k: NDArray[np.int64], here: NDArray[np.int64] = here, norms: Numbers = norms) -> Numbers:
                return np.asarray((np.abs(self.all_gaps(here[k])[0]) / norms[k]).sum(axis=1))

            by_name = {name: steps[:, k] for k, name in enumerate(names)}
            came_nearer = self.move(here, by_name, gap_in, (np.abs(gaps) / norms).sum(axis=1))
            moved[active[came_nearer]] = True
            active = active[came_nearer]
            active = active[np.logical_or.reduce([self.is_off(rule, rows[active]) for rule in self.rules])]
            if not len(active):
                break
        return moved

    def all_gaps(self, rows: NDArray[np.int64]) -> tuple[Numbers, Numbers, Numbers, list[str]]:
        """How far rules are from being met, how that changes with cells that may move, and the sizes of these.

        ``[n, rules]``, ``[n, rules, names]``, ``[n, names]`` and the names.
        """
        table = self.some(rows)
        names = [name for name in self.movable if self.natures[name].kind in _MOVABLE]
        gaps, slopes = np.zeros((len(rows), len(self.rules))), np.zeros((len(rows), len(self.rules), len(names)))
        for k, rule in enumerate(self.rules):
            gap = rule.excess(table) - self.aim_of(rule, table)
            counts = np.isfinite(gap) if rule.sign == "==" else self.broken(rule, rows)
            gaps[:, k] = np.where(counts, gap, 0.0)
            own = self.slopes_of(rule, table, rows)
            slopes[:, k] = np.where(counts[:, None], np.nan_to_num(np.stack([own[name] for name in names], axis=1)), 0.0)
        return gaps, slopes, np.stack([self.size_of(name, table, rows) for name in names], axis=1), names

    def size_of(self, name: str, table: Mapping[str, Values], rows: NDArray[np.int64]) -> Numbers:
        """By what the cells of a column are measured when they move; 0 where they may not."""
        nature = self.natures[name]
        size = np.abs(table[name].values) if nature.is_one_signed else nature.spread
        return np.asarray(np.where(self.movable[name][rows] & table[name].known, size, 0.0), dtype=np.float64)

    def is_off(self, rule: Rule, rows: NDArray[np.int64]) -> Flags:
        """Whether a rule can be met better still: an equation is, even where its result is rounded."""
        if rule.sign != "==":
            return self.broken(rule, rows)
        table = self.some(rows)
        return np.asarray(np.abs(rule.excess(table)) > tolerance_of(rule, table, self.natures, rounded=False))

    def aim_of(self, rule: Rule, table: Mapping[str, Values]) -> Numbers:
        """What the excess is to be: 0, and below it where a rule says less or rules stand in each other's way."""
        if rule.sign == "==":
            return np.zeros(1)
        size = rule.size(table)
        scale = max(self.natures[name].spread for name in rule.columns)
        room = self.room * np.maximum(size, scale)
        if rule.sign == "<":
            steps = [self.natures[name].step for name in rule.columns]
            room = np.maximum(room, max(steps) or _ROOM * scale)
        return -room

    def step_of(self, rule: Rule, table: Mapping[str, Values], rows: NDArray[np.int64], gap: Numbers) -> dict[str, Numbers]:
        """How far each column goes to close a gap."""
        slopes = self.slopes_of(rule, table, rows)
        sizes: list[dict[str, Numbers]] = [{}, {}]  # of the cells; of the columns, where those are all 0
        for name, slope in slopes.items():
            nature, values = self.natures[name], table[name].values
            downwards = np.sign(gap) * np.sign(slope) > 0
            stuck = np.where(downwards, values <= nature.low, values >= nature.high)
            free = self.movable[name][rows] & table[name].known & ~stuck & np.isfinite(slope)
            sizes[0][name] = np.where(free, self.size_of(name, table, rows), 0.0)
            sizes[1][name] = np.where(free, nature.spread, 0.0)
        reach = [
            sum((size[name] * np.abs(np.nan_to_num(slopes[name])) for name in slopes), np.zeros(len(rows))) for size in sizes
        ]
        with np.errstate(all="ignore"):
            shares = [np.where(each > 0, gap / each, 0.0) for each in reach]
        chosen = {name: np.where(reach[0] > 0, shares[0] * sizes[0][name], shares[1] * sizes[1][name]) for name in slopes}
        return {name: -np.sign(np.nan_to_num(slopes[name])) * amount for name, amount in chosen.items()}

    def slopes_of(self, rule: Rule, table: Mapping[str, Values], rows: NDArray[np.int64]) -> dict[str, Numbers]:
        """How fast the excess changes with every cell that may move, also by way of targets that are computed anew."""
        slopes = {name: np.zeros(len(rows)) for name in self.table}
        for sign, side in ((1, rule.left), (-1, rule.right)):
            for name, slope in gradient_of(side, table).items():
                slopes[name] = slopes[name] + sign * slope
        for each in reversed(self.rules):
            if each.target and (slopes[each.target] != 0).any():
                own = np.where(self.computed[each.target][rows], slopes[each.target], 0.0)
                slopes[each.target] = slopes[each.target] - own
                for name, slope in gradient_of(each.right, table).items():
                    slopes[name] = slopes[name] + np.where(own != 0, own * slope, 0.0)
        return {name: slope for name, slope in slopes.items() if self.natures[name].kind in _MOVABLE}

    def move(
        self,
        rows: NDArray[np.int64],
        step: Mapping[str, Numbers],
        gap_in: Callable[[NDArray[np.int64]], Numbers],
        gap: Numbers,
    ) -> Flags:
        """Take the step, or half of it, or a quarter, until the gap is smaller; where it is.

        ``gap_in`` gives the gap in some of the rows, by their places among them, as the table is then.
        """
        before = {name: column.values[rows].copy() for name, column in self.table.items()}
        done, share = np.zeros(len(rows), dtype=bool), 1.0
        going = np.logical_or.reduce([amount != 0 for amount in step.values()])
        for _ in range(_HALVINGS):
            trying = np.flatnonzero(going & ~done)
            if not len(trying):
                break
            for name, amount in step.items():
                changed = trying[amount[trying] != 0]
                self.put(name, rows[changed], before[name][changed] + share * amount[changed])
            self.compute_targets(rows[trying])
            done[trying] = gap_in(trying) < gap[trying] * (1 - 1e-3)
            share /= 2
        for name, values in before.items():
            self.table[name].values[rows[~done]] = values[~done]
        return done

    def meet_exactly(self, rows: NDArray[np.int64]) -> None:
        """Let single cells make up for what rounding has left."""
        for rule in self.rules:
            for name in sorted(rule.columns, key=lambda name: (self.natures[name].step, name)):
                wrong = rows[self.broken(rule, rows)]
                wrong = wrong[self.movable[name][wrong]]
                if len(wrong):
                    self.try_values(name, wrong, self.solutions(rule, name, wrong))

    def solutions(self, rule: Rule, name: str, rows: NDArray[np.int64]) -> Iterator[Numbers]:
        """Cells with which a rule just holds, if cells like that can be had."""
        table, nature = self.some(rows), self.natures[name]
        here, there = (rule.left, rule.right) if name in rule.left.columns else (rule.right, rule.left)
        if name in there.columns:
            return
        solved = solve_for(here, name, numbers_of(there, table), table, nature.low, nature.high)
        exact = np.where(solved.known, solved.values, np.nan)
        for side in (-1, 1):
            yield nature.beside(exact, side)
        if rule.sign == "<":
            for side in (-1, 1):
                yield nature.beside(exact, side) + side * (nature.step or np.abs(exact) * RELATIVE + _ROOM * nature.spread)

    def try_values(self, name: str, rows: NDArray[np.int64], candidates: Iterator[Numbers]) -> None:
        """Take values that leave fewer rules broken."""
        for values in candidates:
            before = {each: column.values[rows].copy() for each, column in self.table.items()}
            count = self.count_broken(rows)
            known = np.flatnonzero(np.isfinite(values))
            self.put(name, rows[known], values[known])
            self.compute_targets(rows)
            worse = self.count_broken(rows) >= count
            for each, old in before.items():
                self.table[each].values[rows[worse]] = old[worse]

    def count_broken(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many rules do not hold in each of some rows."""
        return np.asarray(np.sum([self.broken(rule, rows) for rule in self.rules], axis=0))


def _least_squares(matrices: Numbers, goals: Numbers) -> Numbers:
    """The shortest vectors that matrices ``[n, m, d]`` bring nearest to goals ``[n, m]``; rows of any size count alike."""
    norms = np.maximum(np.linalg.norm(matrices, axis=2), _TINY)
    inverses = np.linalg.pinv(matrices / norms[:, :, None], rcond=_SINGULAR)
    return np.asarray(np.einsum("ndm,nm->nd", inverses, np.where(norms > _TINY, goals / norms, 0.0)))
