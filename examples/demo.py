"""`make demo`: fill the holes of a real table, then draw what optimal transport does.

Everything is embedded (scikit-learn ships the data); pictures go to demo-output/.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_circles, make_moons, make_s_curve
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

from otimpute import SinkhornImputer
from otimpute.metrics import energy_distance, mae, rmse

OUTPUT = Path("demo-output")
OBSERVED, IMPUTED = "#8a8f98", "#d1495b"  # told apart in grey and by the colour-blind


def fill_a_table() -> None:
    wine = load_wine()
    X, names = wine.data, wine.feature_names
    missing = np.random.default_rng(0).random(X.shape) < 0.3
    X_incomplete = np.where(missing, np.nan, X)

    imputer = SinkhornImputer(random_state=0, verbose=1)
    begun = time.perf_counter()
    X_imputed = imputer.fit_transform(X_incomplete)
    seconds = time.perf_counter() - begun
    X_mean = SimpleImputer().fit_transform(X_incomplete)

    spread = X.std(axis=0)
    scored = [(table / spread) for table in (X, X_imputed, X_mean)]
    print(f"\nWine: {X.shape[0]} rows × {X.shape[1]} columns, {missing.sum()} of {missing.size} values missing.")
    print(f"Filled in {seconds:.1f} s ({imputer.n_steps_} steps, {'settled' if imputer.converged_ else 'not settled'}).")
    print(f"Observed values untouched: {bool((X_imputed[~missing] == X[~missing]).all())}\n")
    print(f"{'error against the hidden truth':34}{'otimpute':>10}{'column mean':>14}")
    for label, score in {
        "mean absolute, in sd": mae,
        "root mean squared, in sd": rmse,
        "energy distance between rows": energy_distance,
    }.items():
        print(f"{label:34}{score(scored[0], scored[1], missing):10.3f}{score(scored[0], scored[2], missing):14.3f}")
    draw_densities(X, X_imputed, missing, names)


def draw_densities(X: np.ndarray, X_imputed: np.ndarray, missing: np.ndarray, names: list[str]) -> None:
    shown = range(8)
    figure, axes = plt.subplots(2, 4, figsize=(13, 5.2), layout="constrained")
    for axis, k in zip(axes.flat, shown, strict=True):
        grid = np.linspace(X[:, k].min(), X[:, k].max(), 200)
        holes = missing[:, k]
        for values, colour, style, label in (
            (X[~holes, k], OBSERVED, "-", "observed"),
            (X_imputed[holes, k], IMPUTED, "-", "imputed"),
            (X[holes, k], "black", ":", "truth behind the holes"),
        ):
            axis.plot(grid, smooth(values, grid), style, color=colour, lw=2 if style == "-" else 1.5, label=label)
        axis.set(title=names[k].replace("_", " "), yticks=[])
        axis.spines[["left", "right", "top"]].set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Observed against imputed: the wine table with 30 % of its values missing")
    save(figure, "densities.png")


def smooth(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    width = 1.06 * values.std() * len(values) ** -0.2
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
        "otimpute": SinkhornImputer(**bold),
        "otimpute, one-sided": SinkhornImputer(**bold, one_sided=True),
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
    figure.suptitle("Rows with a missing coordinate (red) filled in by four methods, 20 % missing completely at random")
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
    print(f"picture: {OUTPUT / name}")


if __name__ == "__main__":
    fill_a_table()
    draw_toys()
