"""What it costs to keep imputed values to edges that observed ones never cross: 0, the range 0 to 1, whole numbers.

    python docs/studies/edges.py      # data sets are fetched if they are not there; results in edges.md

30 % of the values of the paper's data sets are hidden at random, twice; the same guesses are scored as they are, brought back
to the range, and rounded. Errors are in standard deviations of the column.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any

import numpy as np

from otimpute import SinkhornImputer
from otimpute.baselines import GaussianEMImputer
from otimpute.datasets import list_datasets, load_dataset
from otimpute.table.extent import Extent, extents_of

N_SEEDS, MOST_ROWS, MOST_COLUMNS = 2, 1500, 60
SPREADS = (0.6, 1, 2, 5, 20, np.inf)
GROUPS = [*(f"sd up to {each:g}" for each in SPREADS), "two neighbouring numbers"]
METHODS: dict[str, Any] = {
    "Gaussian EM": GaussianEMImputer,
    "`SinkhornImputer`": lambda **k: SinkhornImputer(max_steps=400, random_state=0, **k),
}


def errors(guess: np.ndarray, truth: np.ndarray, spread: float) -> tuple[float, float]:
    off = (guess - truth) / spread
    return float(np.sqrt((off**2).mean())), float(np.abs(off).mean())


def spread_of(extent: Extent, spread: float) -> str:
    if extent.highest - extent.lowest <= 1:
        return GROUPS[-1]
    return GROUPS[next(k for k, each in enumerate(SPREADS) if spread <= each)]


def compare(X: np.ndarray, missing: np.ndarray, make: Any, moved: list[Any], rounded: dict[str, list[Any]]) -> None:
    incomplete = np.where(missing, np.nan, X)
    free = {k: {"bounds": (None, None), "integer": False} for k in range(X.shape[1])}
    guesses = make(constraints=free).fit_transform(incomplete)
    for k, extent in enumerate(extents_of(incomplete)):
        truth, guess, spread = X[missing[:, k], k], guesses[missing[:, k], k], np.nanstd(incomplete[:, k])
        if spread == 0 or not len(truth):
            continue
        low, high = extent.natural_range()
        kept, whole = np.clip(guess, low, high), np.clip(np.rint(guess), low, high)
        plain, bounded, round_ = (errors(each, truth, spread) for each in (guess, kept, whole))
        if np.isfinite(low) or np.isfinite(high):
            crossing = np.count_nonzero((truth < low) | (truth > high))
            moved.append((len(guess), np.count_nonzero(kept != guess), crossing, *np.divide(bounded, plain)))
        if extent.whole and min(bounded) > 0 and min(round_) > 0:
            rounded[spread_of(extent, spread)].append(np.divide(round_, bounded))


def main() -> None:
    warnings.simplefilter("ignore")
    for name, make in METHODS.items():
        moved: list[Any] = []
        rounded: dict[str, list[Any]] = defaultdict(list)
        for dataset in list_datasets():
            X = load_dataset(dataset).values[:MOST_ROWS, :MOST_COLUMNS]
            for seed in range(N_SEEDS):
                compare(X, np.random.default_rng(seed).random(X.shape) < 0.3, make, moved, rounded)
        n, n_moved, n_crossing, rmse, mae = np.array(moved).T
        some = n_moved > 0
        moved_share = n_moved.sum() / n.sum()
        print(f"{name}: {n_crossing.sum():.0f} of {n.sum():.0f} true values cross an edge, {moved_share:.1%} of guesses;")
        print(f"where one does: RMSE × {_mean(rmse[some])}, MAE × {_mean(mae[some])}, RMSE at worst × {rmse.max():.3f}")
        for group, ratios in sorted(rounded.items(), key=lambda item: GROUPS.index(item[0])):
            rmse, mae = np.array(ratios).T
            print(f"| {group} | {len(ratios) / N_SEEDS:g} | {_mean(rmse)} | {_mean(mae)} | {rmse.max():.2f} |")


def _mean(ratios: np.ndarray) -> str:
    return f"{np.exp(np.log(ratios).mean()):.3f}"


if __name__ == "__main__":
    main()
