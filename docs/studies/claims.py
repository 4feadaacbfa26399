"""The numbers behind docs/results/claims.md, from benchmark folders.

python docs/studies/claims.py BENCH --oos OOS --data FOLDER
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from otimpute.benchmark import Outcome, Store, outcomes_in, wins
from otimpute.benchmark.run_task import whiten
from otimpute.datasets import load_dataset
from otimpute.registry import make_mechanism

PAPER = "sinkhorn_paper"
CLASSICS = ("mean", "ice", "softimpute")  # the paper's, deep ones aside
SETTINGS = ("mcar-10", "mcar-30", "mcar-50", "logistic_mar-30", "logistic_mnar-30", "quantile_mnar-30")
SCORES = ("mae", "rmse", "wasserstein2", "energy_distance")


def cells(outcomes: Iterable[Outcome], part: str = "train") -> dict[tuple[str, str, str, str], float]:
    """Mean over seeds by (score, setting, data set, method)."""
    values = defaultdict(list)
    for outcome in outcomes:
        if outcome.part == part:
            for score, value in outcome.scores.items():
                values[score, outcome.setting, outcome.dataset, outcome.method].append(value)
    return {key: float(np.mean(value)) for key, value in values.items()}


def ratio(found: dict[tuple[str, str, str, str], float], score: str, setting: str, one: str, other: str) -> float:
    """Geometric mean over data sets of one method's score over another's."""
    logs = [
        np.log(value / found[score, setting, dataset, other])
        for (s, t, dataset, method), value in found.items()
        if (s, t, method) == (score, setting, one) and (score, setting, dataset, other) in found
    ]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def ratios_to_others(found: dict[tuple[str, str, str, str], float]) -> None:
    for one in (PAPER, "sinkhorn"):
        print(f"\n## {one} relative to others (geometric mean over data sets; below 1: {one} is better)\n")
        others = [m for m in (*CLASSICS, "knn", "gaussian_em", "missforest", PAPER) if m != one]
        print("| score | setting |" + "".join(f" {m} |" for m in others) + "\n|---|---|" + "---|" * len(others))
        for score in SCORES:
            for setting in SETTINGS:
                print(f"| {score} | {setting} |" + "".join(f" {ratio(found, score, setting, one, m):.3f} |" for m in others))


def hard_sets(found: dict[tuple[str, str, str, str], float]) -> None:
    print("\n## where the paper preset does worst against the best of mean, ICE and softimpute (RMSE)\n")
    for setting in SETTINGS:
        excess = {}
        for (score, t, dataset, method), value in found.items():
            if (score, t, method) == ("rmse", setting, PAPER):
                excess[dataset] = value / min(found["rmse", setting, dataset, m] for m in CLASSICS)
        worst = sorted(excess, key=lambda dataset: -excess[dataset])[:6]
        print(f"{setting}: " + ", ".join(f"{d} {excess[d]:.2f}" for d in worst))


def wasserstein_is_squared_error(folder: str, data: str | None) -> None:
    """W2 over (squared error per incomplete row), by number of columns: 1 means the best coupling is the identity."""
    print("\n## W2 over the squared error per row with a hole, MCAR 30 %, seed 0\n")
    rows = []
    for record in Store(folder).read().records.values():
        task = record.task
        if task.setting == "mcar-30" and task.seed == 0 and task.method in ("ice", "sinkhorn") and record.status == "ok":
            scores = record.scores["train"]
            if "wasserstein2" not in scores:
                continue
            X = whiten(load_dataset(task.dataset, data_home=data).values)
            missing = make_mechanism(task.mechanism, task.rate, task.options).sample(X, task.generator_of_holes())
            error = scores["rmse"] ** 2 * missing.sum() / missing.any(axis=1).sum()
            rows.append((record.d, task.dataset, task.method, scores["wasserstein2"] / error))
    for d, dataset, method, value in sorted(rows):
        print(f"{d:3d} columns  {dataset:28s} {method:9s} {value:.3f}")


def out_of_sample(outcomes: list[Outcome]) -> None:
    train, test = cells(outcomes), cells(outcomes, "test")
    print("\n## out of sample, geometric means over data sets: test rows over training rows; test rows relative to ICE\n")
    print("| setting | method | score | test / train | test / ICE's test |\n|---|---|---|---|---|")
    for setting in sorted({outcome.setting for outcome in outcomes}):
        for method in sorted({outcome.method for outcome in outcomes}):
            for score in ("mae", "rmse", "energy_distance"):
                pairs = [(v, train[k]) for k, v in test.items() if k[:2] == (score, setting) and k[3] == method]
                stable = np.exp(np.mean([np.log(a / b) for a, b in pairs]))
                print(f"| {setting} | {method} | {score} | {stable:.3f} | {ratio(test, score, setting, method, 'ice'):.3f} |")


def show_wins(outcomes: list[Outcome]) -> None:
    print("\n## wins / ties / losses over pairs of data set and setting\n")
    for score in SCORES:
        result = wins(outcomes, score)
        for one in (PAPER, "sinkhorn"):
            i = result.methods.index(one)
            against = [
                f"{other} {result.wins[i, j]}/{result.ties[i, j]}/{result.losses[i, j]}"
                for j, other in enumerate(result.methods)
                if j != i
            ]
            print(f"{score}, {one} against: " + ", ".join(against))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--oos")
    parser.add_argument("--data")
    arguments = parser.parse_args()
    outcomes = outcomes_in(arguments.bench)
    found = cells(outcomes)
    ratios_to_others(found)
    hard_sets(found)
    show_wins(outcomes)
    wasserstein_is_squared_error(arguments.bench, arguments.data)
    if arguments.oos:
        out_of_sample(outcomes_in(arguments.oos))


if __name__ == "__main__":
    main()
