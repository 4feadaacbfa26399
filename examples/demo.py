"""`make demo`: fill the holes of a real table, write a report on it, then draw what optimal transport does.

Everything is embedded (scikit-learn ships the data); pictures and the report go to demo-output/.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from otimpute import SinkhornImputer, report
from otimpute.baselines import ICEImputer, KNNImputer, MeanImputer
from otimpute.datasets import load_dataset, make_toy
from otimpute.metrics import energy_distance, mae, rmse
from otimpute.missingness import MCAR, hide

OUTPUT = Path("demo-output")
OBSERVED, IMPUTED = "#8a8f98", "#d1495b"  # told apart in grey and by the colour-blind


def fill_a_table() -> None:
    wine = load_dataset("wine")
    X, names = wine.values, wine.card.columns
    X_incomplete, missing = hide(X, MCAR(0.3), 0)
    incomplete = pd.DataFrame(X_incomplete, columns=names)

    print("Compiling, once on a new machine (20–40 s) ...", flush=True)
    SinkhornImputer(max_steps=1).fit(X_incomplete)
    imputer = SinkhornImputer(random_state=0, verbose=1)
    begun = time.perf_counter()
    completed = imputer.fit_transform(incomplete)
    seconds = time.perf_counter() - begun
    X_imputed = completed.to_numpy()
    print(f"\nWine: {X.shape[0]} rows × {X.shape[1]} columns, {missing.sum()} of {missing.size} values missing.")
    print(f"Filled in {seconds:.1f} s ({imputer.n_steps_} steps, {'settled' if imputer.converged_ else 'not settled'}).")
    print(f"Observed values untouched: {bool((X_imputed[~missing] == X[~missing]).all())}\n")
    spread = X.std(axis=0)  # scores are in standard deviations
    tables = {
        "otimpute": X_imputed,
        "KNN": KNNImputer().fit_transform(X_incomplete),
        "ICE (scikit-learn's IterativeImputer)": ICEImputer().fit_transform(X_incomplete),
        "column mean": MeanImputer().fit_transform(X_incomplete),
    }
    print(f"{'error against the hidden truth':40}{'MAE':>7}{'RMSE':>8}{'energy distance':>18}")
    for method, table in tables.items():
        values = [score(X / spread, table / spread, missing) for score in (mae, rmse, energy_distance)]
        print(f"{method:40}{values[0]:7.3f}{values[1]:8.3f}{values[2]:18.3f}")
    print()
    draw_densities(X, tables, missing, names)
    report(imputer, incomplete, OUTPUT / "report.html", X_imputed=completed)
    print(f"look at {OUTPUT / 'report.html'}")


def draw_densities(X: np.ndarray, tables: dict[str, np.ndarray], missing: np.ndarray, names: tuple[str, ...]) -> None:
    shown = range(8)
    figure, axes = plt.subplots(2, 4, figsize=(13, 5.2), layout="constrained")
    for axis, k in zip(axes.flat, shown, strict=True):
        grid = np.linspace(X[:, k].min(), X[:, k].max(), 200)
        holes = missing[:, k]
        width = 1.06 * X[:, k].std() * len(X) ** -0.2
        for values, colour, style, label in (
            (X[~holes, k], OBSERVED, "-", "observed"),
            (tables["otimpute"][holes, k], IMPUTED, "-", "imputed by otimpute"),
            (tables["column mean"][holes, k], "#3d6fb4", "--", "imputed by the column mean"),
            (X[holes, k], "black", ":", "truth behind the holes"),
        ):
            axis.plot(grid, smooth(values, grid, width), style, color=colour, lw=2 if style == "-" else 1.5, label=label)
        axis.set_ylim(0, 1.4 * smooth(X[:, k], grid, width).max())
        axis.set(title=names[k].replace("_", " "), yticks=[])
        axis.spines[["left", "right", "top"]].set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(
        "Observed against imputed: the first 8 columns of the wine table, 30 % missing (guesses spread less than truth)"
    )
    save(figure, "densities.png")


def smooth(values: np.ndarray, grid: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((grid[:, None] - values[None]) / width) ** 2).mean(axis=1) / width


def draw_toys() -> None:
    # Curves in the plane: plain distances, the paper's ε, and large first steps that let points change branches.
    bold = {"metric": "euclidean", "epsilon": "authors", "learning_rate": 0.1, "step_decay": 0.01, "noise": 0.3}
    bold |= {"max_steps": 5000, "random_state": 0}
    methods = {
        "column mean": MeanImputer(),
        "ICE (linear chains)": ICEImputer(),
        "otimpute, set for curves": SinkhornImputer(**bold),
        "the same, one-sided": SinkhornImputer(**bold, one_sided=True),
    }
    names = {"s_curve": "S-curve", "half_moon": "half-moon", "two_moons": "two half-moons", "circles": "circles"}
    clouds = {title: make_toy(name, 500, 0) for name, title in names.items()}
    figure, axes = plt.subplots(len(clouds), len(methods) + 1, figsize=(13, 10), layout="constrained")
    for row, (name, X) in zip(axes, clouds.items(), strict=True):
        missing = MCAR(0.2).sample(X, 1)
        kept = ~missing.all(axis=1)  # rows that lost everything say nothing
        X, missing = X[kept], missing[kept]
        X_incomplete = np.where(missing, np.nan, X)
        holes = missing.any(axis=1)
        draw_cloud(row[0], X, holes, "truth" if name == "S-curve" else None)
        row[0].set_ylabel(name, fontsize=12)
        for axis, (method, imputer) in zip(row[1:], methods.items(), strict=True):
            draw_cloud(axis, imputer.fit_transform(X_incomplete), holes, method if name == "S-curve" else None, row[0])
    figure.suptitle("Rows that lost a coordinate in red, 20 % missing completely at random: truth, and four ways to fill in")
    save(figure, "toy.png")


def draw_cloud(axis: plt.Axes, X: np.ndarray, holes: np.ndarray, title: str | None, like: plt.Axes | None = None) -> None:
    axis.scatter(*X[~holes].T, s=5, color=OBSERVED, linewidths=0)
    axis.scatter(*X[holes].T, s=9, color=IMPUTED, linewidths=0)
    axis.set(xticks=[], yticks=[])
    if title:
        axis.set_title(title)
    if like is not None:
        axis.set(xlim=like.get_xlim(), ylim=like.get_ylim())


def save(figure: plt.Figure, name: str) -> None:
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / name, dpi=110)
    plt.close(figure)
    print(f"look at {OUTPUT / name}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # scikit-learn's ICE says it at its defaults
    fill_a_table()
    draw_toys()
