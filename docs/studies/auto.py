"""How AutoImputer was put together (docs/studies/auto.md), and how it does against its peers (docs/results/auto.md).

    python docs/studies/auto.py choices --data FOLDER --out FOLDER [--sets NAME ...] [--seeds 100]
    python docs/studies/auto.py show --out FOLDER
    python docs/studies/auto.py bars BENCH [--figure docs/results/auto.svg]

choices   lets all experts fill hidden and missing values of each set and keeps their guesses: `show` then combines them in
          many ways without fitting anything again
show      what the combinations are worth, and what one would get by choosing one of them on other sets
bars      AutoImputer over the best peer of each set and setting, from the records of ``otimpute benchmark auto``
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from otimpute import AutoImputer
from otimpute.auto import _trial, _weights
from otimpute.auto._columns import Columns
from otimpute.auto._experts import read_experts
from otimpute.auto._panel import fit_experts
from otimpute.auto._trial import try_experts
from otimpute.benchmark import Store, load_suite
from otimpute.benchmark.run_task import whiten
from otimpute.benchmark.task import Task
from otimpute.catalogue import make_mechanism
from otimpute.datasets import load_dataset

PEERS = ("knn", "ice", "gaussian_em", "missforest", "sinkhorn_paper")
SINGLE = ("gaussian_mixture", "extra_trees", "kernel_ridge", "sinkhorn")
OURS = ("auto", "auto_distribution")
SCORES = ("rmse", "mae", "energy_distance")
SETTINGS = ("mcar", "logistic_mar", "logistic_mnar")
ASKED = ["gaussian_em", "gaussian_mixture", "sinkhorn", "knn", "extra_trees", "kernel_ridge"]
N_SPLITS = 6
NARROW_TICKS, WIDE_TICKS = (0.7, 0.8, 0.9, 1, 1.1, 1.2), (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3)


def table_with_holes(dataset: str, mechanism: str, seed: int, data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """As in the benchmark."""
    X = whiten(load_dataset(dataset, data_home=data).values)
    task = Task(dataset, mechanism, 0.3, "-", "-", seed)
    return X, make_mechanism(mechanism, 0.3, {}).sample(X, task.generator_of_holes())


def collect(dataset: str, mechanism: str, seed: int, data: str | None, out: Path) -> None:
    path = out / f"{dataset}-{mechanism}-{seed}.npz"
    if path.exists():
        return
    X, missing = table_with_holes(dataset, mechanism, seed, data)
    imputer = AutoImputer(random_state=seed)
    table = imputer._read(np.where(missing, np.nan, X), reset=True)  # what fit() does before any expert is asked
    imputer._empty = missing.all(axis=0)
    imputer._kept, imputer._n_rows, imputer._n_holes = np.ones(X.shape[1], dtype=bool), len(X), missing.sum(axis=0)
    imputer._groups, imputer._scaled = imputer._encoding.groups, imputer._encoding.scaled
    columns = Columns.of(table.values, missing, imputer._groups, imputer._scaled)
    values = columns.clip_outliers(table.values, missing)
    experts = read_experts(ASKED)
    trial = try_experts(
        experts, imputer, values, missing, columns, n_splits=N_SPLITS, seed=seed, n_threads=1
    )  # fmt: skip
    everyone = np.full((columns.n_groups, len(trial.names)), 1.0)
    final = fit_experts(experts, imputer, values, missing, columns, trial, everyone, seed=seed, n_threads=1)
    final_guesses = final.guesses[:, [final.names.index(name) for name in trial.names]]
    column = np.nonzero(missing)[1]
    np.savez_compressed(
        path, names=np.array(trial.names), guesses=trial.guesses, truth=trial.truth, column=trial.column, split=trial.split,
        final=final_guesses, final_truth=columns.standardise(X[missing], column), final_column=column,
        unit=columns.scaler.unit, group=columns.group,
    )  # fmt: skip


Way = Callable[[dict[str, np.ndarray]], tuple[list[str], np.ndarray]]


def way(leave_out: tuple[str, ...] = (), n_splits: int = N_SPLITS, borrowed: float = 50.0, large: float = 0.7) -> Way:
    def weigh(bank: dict[str, np.ndarray]) -> tuple[list[str], np.ndarray]:
        names = [name for name in bank["names"].tolist() if name not in leave_out]
        chosen = [bank["names"].tolist().index(name) for name in names]
        cells = bank["split"] < n_splits
        _weights._BORROWED, _weights._LARGE = borrowed, large
        nothing = np.empty(0)
        trial = _trial.Trial(
            tuple(names), len(names), nothing, bank["guesses"][cells][:, chosen], bank["truth"][cells], bank["column"][cells],
            nothing, bank["split"][cells], nothing, nothing, {}, nothing, {}, {},
        )  # fmt: skip
        columns = Columns(None, bank["group"], None, None)  # type: ignore[arg-type]
        return names, _trial.weigh(trial, columns).weights

    return weigh


def single(name: str) -> Way:
    return lambda bank: ([name], np.ones((int(bank["group"].max()) + 1, 1)))


# Neighbours were asked too; the default leaves them out.
WAYS: dict[str, Way] = {
    **{f"{name} alone": single(name) for name in ("mean", *ASKED)},
    "default (6 splits)": way(("knn",)),
    "and neighbours": way(),
    **{f"without {name}": way(("knn", name)) for name in ("mean", *ASKED) if name not in ("knn", "mean")},
    "without trees and kernel": way(("knn", "extra_trees", "kernel_ridge")),
    "1 split": way(("knn",), n_splits=1),
    "3 splits": way(("knn",), n_splits=3),
    "borrowing 10 cells": way(("knn",), borrowed=10),
    "borrowing 200 cells": way(("knn",), borrowed=200),
    "one weight for all columns": way(("knn",), borrowed=1e9),
    "squared error": way(("knn",), large=1e9),
    "large from 2": way(("knn",), large=2.0),
    "large from 0.3": way(("knn",), large=0.3),
    "large from 0.1": way(("knn",), large=0.1),
}


def scores_of(out: Path) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """RMSE and MAE by way and set, over all its settings and seeds, each over those of the column mean."""
    scores: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(out.glob("*.npz")):
        bank = dict(np.load(path))
        for label, weigh in WAYS.items():
            names, weights = weigh(bank)
            places = [bank["names"].tolist().index(name) for name in names]
            guess = (bank["final"][:, places] * weights[bank["group"][bank["final_column"]]]).sum(axis=1)
            unit = bank["unit"][bank["final_column"]]
            error, mean = (guess - bank["final_truth"]) * unit, bank["final_truth"] * unit
            pair = np.sqrt((error**2).mean() / (mean**2).mean()), np.abs(error).mean() / np.abs(mean).mean()
            scores[label][path.stem.split("-")[0]].append(pair)
    return scores


def show(out: Path) -> None:
    scores = scores_of(out)
    sets = sorted(scores["mean alone"])
    logs = {label: np.array([np.log(by_set[s]).mean(axis=0) for s in sets]) for label, by_set in scores.items()}
    base = logs["default (6 splits)"]
    print(f"{len(sets)} sets, {sum(map(len, scores['mean alone'].values()))} tables\n")
    print("| | RMSE / mean's | MAE / mean's | RMSE / default's | MAE / default's | worst set |\n|---|---|---|---|---|---|")
    for label, log in logs.items():
        over = np.exp(log - base)
        row = [*np.exp(log.mean(axis=0)), *np.exp((log - base).mean(axis=0)), over[:, 0].max()]
        print(f"| {label} | " + " | ".join(f"{number:.3f}" for number in row) + " |")
    combined = [label for label in logs if "alone" not in label]
    rng = np.random.default_rng(0)
    lost = []
    for _ in range(200):  # choose on half of the sets, look at the other half
        order = rng.permutation(len(sets))
        choose, look = order[: len(sets) // 2], order[len(sets) // 2 :]
        best = min(combined, key=lambda label: float(logs[label][choose].sum()))
        lost.append((logs[best][look] - base[look]).mean(axis=0))
    print(
        f"\nchosen on half of the sets, over the default on the other half: RMSE, MAE {np.exp(np.mean(lost, axis=0)).round(4)}"
    )


Ratios = dict[tuple[str, str], tuple[float, str]]  # by set and setting: over the best peer, and who that is


def ratios_to_best_peer(bench: str) -> tuple[dict[tuple[str, str], Ratios], int]:
    """By method and score; and the fewest seeds that all have."""
    scores: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    wanted = {task.key for task in load_suite("auto").tasks()}
    for record in Store(bench).read().records.values():
        task = record.task
        if record.status == "ok" and task.key in wanted:
            for score in SCORES:
                scores[score, task.dataset, task.setting][task.method][task.seed] = record.scores["train"][score]
    ratios: dict[tuple[str, str], Ratios] = defaultdict(dict)
    n_seeds = []
    for (score, dataset, setting), by_method in scores.items():
        for method in (*OURS, *SINGLE):
            if method in by_method:
                seeds = set(by_method[method]).intersection(*(by_method[peer] for peer in PEERS))
                mean = {m: float(np.mean([by_method[m][seed] for seed in seeds])) for m in (*PEERS, method)}
                best = min(PEERS, key=lambda peer: mean[peer])
                ratios[method, score][dataset, setting] = mean[method] / mean[best], best
                n_seeds.append(len(seeds))
    return ratios, min(n_seeds)


def overall(ratios: Ratios, setting: str | None = None) -> float:
    return float(np.exp(np.mean([np.log(ratio) for (_, s), (ratio, _) in ratios.items() if setting in (None, s)])))


def bars(bench: str, figure: Path | None) -> None:
    ratios, n_seeds = ratios_to_best_peer(bench)
    print(f"at least {n_seeds} draws of holes\n\n| | " + " | ".join(SCORES) + " | worst RMSE |\n|---|---|---|---|---|")
    for method in (*OURS, *SINGLE):
        if (method, "rmse") in ratios:
            worst = max(ratios[method, "rmse"].items(), key=lambda item: item[1][0])
            cells = [f"{overall(ratios[method, score]):.3f}" for score in SCORES]
            print(f"| {method} | " + " | ".join(cells) + f" | {worst[1][0]:.3f} ({worst[0][0]}, {worst[0][1]}) |")
    for method, score in (("auto", "rmse"), ("auto", "mae"), ("auto_distribution", "energy_distance")):
        mine = ratios[method, score]
        settings = sorted({setting for _, setting in mine})
        print(f"\n| {method}: {score} over the best peer's | " + " | ".join(settings) + " |\n|---|" + "---|" * len(settings))
        for dataset in sorted({dataset for dataset, _ in mine}):
            cells = [mine.get((dataset, setting)) for setting in settings]
            print(f"| {dataset} | " + " | ".join(f"{c[0]:.3f} ({c[1]})" if c else "" for c in cells) + " |")
        print("| **all** | " + " | ".join(f"**{overall(mine, setting):.3f}**" for setting in settings) + " |")
    if figure is not None:
        draw(ratios, figure)


def draw(ratios: dict[tuple[str, str], Ratios], figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    panels = (
        ("auto", "rmse", "RMSE"),
        ("auto", "mae", "MAE"),
        ("auto_distribution", "energy_distance", "energy distance of draws"),
    )
    sets = sorted(
        {d for d, _ in ratios["auto", "rmse"]},
        key=lambda d: -np.mean([r for (e, _), (r, _) in ratios["auto", "rmse"].items() if e == d]),
    )
    fig, axes = plt.subplots(1, 3, figsize=(11, 6), sharey=True, layout="constrained")
    for ax, (method, score, label) in zip(axes, panels, strict=True):
        for setting, marker, color in (
            ("mcar-30", "o", "#2486bd"),
            ("logistic_mar-30", "s", "#e0772d"),
            ("logistic_mnar-30", "^", "#921331"),
        ):
            x = [ratios[method, score][d, setting][0] for d in sets]
            ax.plot(
                x,
                range(len(sets)),
                marker,
                color=color,
                markersize=5,
                label=setting.replace("logistic_", "").upper().replace("-30", " 30 %"),
            )
        ax.axvline(1, color="#888888", linewidth=1)
        ax.axvline(overall(ratios[method, score]), color="#000000", linewidth=1, linestyle="--")
        ax.set_title(f"{label}: {overall(ratios[method, score]):.3f}", fontsize=10)
        ax.grid(axis="x", color="#e5e5e5")
        ax.set_xscale("log")
        lowest, highest = ax.get_xlim()
        ticks = WIDE_TICKS if highest > 4 * lowest else NARROW_TICKS
        ax.set_xticks([tick for tick in ticks if lowest <= tick <= highest])
        ax.set_xticks([], minor=True)
        ax.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        ax.tick_params(axis="x", labelsize=7)
    axes[0].set_yticks(range(len(sets)), [d.replace("_", " ") for d in sets], fontsize=8)
    axes[0].legend(fontsize=8, loc="lower left")
    fig.supxlabel(
        "score relative to the best of five other methods per data set (left of the grey line: better); dashes: geometric mean",
        fontsize=9,
    )
    figure.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(figure, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["choices", "show", "bars"])
    parser.add_argument("bench", nargs="?", help="folder of the benchmark's records")
    parser.add_argument("--data", help="folder of the UCI sets")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(load_suite("auto").datasets))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100])
    given = parser.parse_args()
    if given.part == "choices":
        given.out.mkdir(parents=True, exist_ok=True)
        for one in given.sets:
            for how in SETTINGS:
                for seed in given.seeds:
                    collect(one, how, seed, given.data, given.out)
    elif given.part == "show":
        show(given.out)
    else:
        bars(given.bench, given.figure)
