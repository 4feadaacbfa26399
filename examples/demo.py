"""`make demo`: fill the holes of a real table, then draw what optimal transport does.

Everything is embedded (scikit-learn ships the data); pictures go to demo-output/.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_circles, make_moons, make_s_curve
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from otimpute import SinkhornImputer
from otimpute.metrics import energy_distance, mae, rmse

OUTPUT = Path("demo-output")
OBSERVED, IMPUTED = "#8a8f98", "#d1495b"  # told apart in grey and by the colour-blind


def fill_a_table() -> None:
    wine = load_wine()
    X, names = wine.data, wine.feature_names
    missing = np.random.default_rng(0).random(X.shape) < 0.3
    X_incomplete = np.where(missing, np.nan, X)

    print("Compiling, once on a new machine (20–40 s) ...", flush=True)
    SinkhornImputer(max_steps=1).fit(X_incomplete)
    imputer = SinkhornImputer(random_state=0, verbose=1)
    begun = time.perf_counter()
    X_imputed = imputer.fit_transform(X_incomplete)
    seconds = time.perf_counter() - begun
    print(f"\nWine: {X.shape[0]} rows × {X.shape[1]} columns, {missing.sum()} of {missing.size} values missing.")
    print(f"Filled in {seconds:.1f} s ({imputer.n_steps_} steps, {'settled' if imputer.converged_ else 'not settled'}).")
    print(f"Observed values untouched: {bool((X_imputed[~missing] == X[~missing]).all())}\n")
    # Scored in standard deviations; KNN needs comparable columns, so it gets them.
    spread = X.std(axis=0)
    scaler = StandardScaler()
    knn = make_pipeline(scaler, KNNImputer()).fit_transform(X_incomplete)
    tables = {
        "otimpute": X_imputed,
        "KNN": scaler.inverse_transform(knn),
        "ICE (scikit-learn's IterativeImputer)": IterativeImputer(random_state=0).fit_transform(X_incomplete),
        "column mean": SimpleImputer().fit_transform(X_incomplete),
    }
    print(f"{'error against the hidden truth':40}{'MAE':>7}{'RMSE':>8}{'energy distance':>18}")
    for method, table in tables.items():
        values = [score(X / spread, table / spread, missing) for score in (mae, rmse, energy_distance)]
        print(f"{method:40}{values[0]:7.3f}{values[1]:8.3f}{values[2]:18.3f}")
    print()
    draw_densities(X, tables, missing, names)


def draw_densities(X: np.ndarray, tables: dict[str, np.ndarray], missing: np.ndarray, names: list[str]) -> None:
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


def toy_clouds(n: int = 500) -> dict[str, np.ndarray]:
    s_curve = make_s_curve(n, noise=0.05, random_state=0)[0][:, [0, 2]]
    half_moon, which = make_moons(2 * n, noise=0.05, random_state=0)
    return {
        "S-curve": s_curve,
        "half-moon": half_moon[which == 0],
        "two half-moons": make_moons(n, noise=0.05, random_state=1)[0],
        "circles": make_circles(n, noise=0.03, factor=0.5, random_state=0)[0],
    }


def draw_toys() -> None:
    # Curves in the plane: plain distances, the paper's ε, and large first steps that let points change branches.
    bold = {"metric": "euclidean", "epsilon": "authors", "learning_rate": 0.1, "step_decay": 0.01, "noise": 0.3}
    bold |= {"max_steps": 5000, "random_state": 0}
    methods = {
        "column mean": SimpleImputer(),
        "ICE (linear chains)": IterativeImputer(random_state=0),
        "otimpute, set for curves": SinkhornImputer(**bold),
        "the same, one-sided": SinkhornImputer(**bold, one_sided=True),
    }
    clouds = toy_clouds()
    figure, axes = plt.subplots(len(clouds), len(methods) + 1, figsize=(13, 10), layout="constrained")
    for row, (name, X) in zip(axes, clouds.items(), strict=True):
        missing = np.random.default_rng(1).random(X.shape) < 0.2
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
