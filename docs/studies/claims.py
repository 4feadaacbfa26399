"""The numbers behind docs/results/claims.md, from benchmark folders.

python docs/studies/claims.py BENCH --oos OOS --data FOLDER
"""

from __future__ import annotations

import argparse

import numpy as np

from otimpute.benchmark import Outcome, Store, outcomes_in, wins
from otimpute.benchmark.run_task import whiten
from otimpute.benchmark.summary import shared_blocks
from otimpute.benchmark.summary.cells import scores_by_seed
from otimpute.catalogue import make_mechanism
from otimpute.datasets import load_dataset

PAPER = "sinkhorn_paper"
OURS = (PAPER, "sinkhorn", "linear_rr_paper", "mlp_rr_paper", "linear_rr", "mlp_rr", "meta_sinkhorn")
CLASSICS = ("mean", "ice", "softimpute")  # the paper's, deep ones aside
DEEP = ("miwae", "gain", "vaeac")
SETTINGS = ("mcar-10", "mcar-30", "mcar-50", "logistic_mar-30", "logistic_mnar-30", "quantile_mnar-30")
SCORES = ("mae", "rmse", "wasserstein2", "energy_distance")


def ratio(outcomes: list[Outcome], score: str, setting: str, one: str, other: str, part: str = "train") -> float:
    """Geometric mean over data sets of one method's score over another's, each pair on the seeds both have."""
    scores = scores_by_seed([o for o in outcomes if o.setting == setting and o.method in (one, other)], score, part)
    if {method for *_, method in scores} != {one, other}:
        return float("nan")
    means = shared_blocks(scores, [one, other]).means
    return float(np.exp(np.log(means[:, 0] / means[:, 1]).mean()))


def ratios_to_others(outcomes: list[Outcome]) -> None:
    for one in OURS:
        print(f"\n## {one} relative to others (geometric mean over data sets; below 1: {one} is better)\n")
        others = [m for m in (*CLASSICS, "knn", "gaussian_em", "missforest", PAPER, "sinkhorn") if m != one]
        print("| score | setting |" + "".join(f" {m} |" for m in others) + "\n|---|---|" + "---|" * len(others))
        for score in SCORES:
            for setting in SETTINGS:
                print(f"| {score} | {setting} |" + "".join(f" {ratio(outcomes, score, setting, one, m):.3f} |" for m in others))


def hard_sets(outcomes: list[Outcome]) -> None:
    print("\n## where the paper preset does worst against the best of mean, ICE and softimpute (RMSE)\n")
    for setting in SETTINGS:
        blocks = shared_blocks(
            scores_by_seed([o for o in outcomes if o.setting == setting], "rmse", "train"), [PAPER, *CLASSICS]
        )
        excess = {key[0]: row[0] / row[1:].min() for key, row in zip(blocks.keys, blocks.means, strict=True)}
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
    print("\n## out of sample, geometric means over data sets: new rows over rows of the fit; new rows relative to ICE's\n")
    print("| setting | method | score | new / fitted | relative to ICE |\n|---|---|---|---|---|")
    for setting in sorted({outcome.setting for outcome in outcomes}):
        here = [outcome for outcome in outcomes if outcome.setting == setting]
        for method in sorted({outcome.method for outcome in here}):
            for score in ("mae", "rmse", "wasserstein2"):
                fitted, new = (scores_by_seed(here, score, part) for part in ("train", "test"))
                stable = [
                    np.mean(list(v.values())) / np.mean(list(fitted[k].values())) for k, v in new.items() if k[2] == method
                ]
                relative = ratio(outcomes, score, setting, method, "ice", "test") if method != "ice" else 1.0
                print(f"| {setting} | {method} | {score} | {np.exp(np.log(stable).mean()):.3f} | {relative:.3f} |")


def show_wins(outcomes: list[Outcome]) -> None:
    print("\n## wins / ties / losses over pairs of data set and setting\n")
    for score in SCORES:
        result = wins(outcomes, score)
        for one in (method for method in OURS if method in result.methods):
            i = result.methods.index(one)
            against = [
                f"{other} {result.wins[i, j]}/{result.ties[i, j]}/{result.losses[i, j]}"
                for j, other in enumerate(result.methods)
                if j != i
            ]
            print(f"{score}, {one} against: " + ", ".join(against))


def deep_methods(outcomes: list[Outcome]) -> None:
    methods = sorted({outcome.method for outcome in outcomes})
    for setting in sorted({outcome.setting for outcome in outcomes}):
        print(f"\n## {setting}: relative to the column mean, then to each deep method (geometric means over data sets)\n")
        print("| score | method | mean |" + "".join(f" {m} |" for m in DEEP) + "\n|---|---|---|" + "---|" * len(DEEP))
        for score in SCORES:
            for method in methods:
                cells = [
                    ratio(outcomes, score, setting, method, other) if other != method else 1.0 for other in ("mean", *DEEP)
                ]
                print(f"| {score} | {method} |" + "".join(f" {cell:.3f} |" for cell in cells))
    print("\n## spread over seeds: standard deviation over mean, averaged over data sets and settings\n")
    for score in SCORES:
        grouped: dict[tuple[str, str, str], list[float]] = {}
        for outcome in outcomes:
            if outcome.part == "train" and score in outcome.scores:
                grouped.setdefault((outcome.method, outcome.dataset, outcome.setting), []).append(outcome.scores[score])
        for method in methods:
            spreads = [np.std(v, ddof=1) / np.mean(v) for (m, *_), v in grouped.items() if m == method and len(v) > 1]
            print(f"{score} {method}: {np.mean(spreads):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--oos")
    parser.add_argument("--data")
    parser.add_argument("--deep", action="store_true", help="only the deep methods in this folder, beside the others")
    arguments = parser.parse_args()
    outcomes = outcomes_in(arguments.bench)
    if arguments.deep:
        deep_methods(outcomes)
        show_wins(outcomes)
        return
    ratios_to_others(outcomes)
    hard_sets(outcomes)
    show_wins(outcomes)
    wasserstein_is_squared_error(arguments.bench, arguments.data)
    if arguments.oos:
        out_of_sample(outcomes_in(arguments.oos))


if __name__ == "__main__":
    main()
