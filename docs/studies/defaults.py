"""The study behind the defaults of SinkhornImputer: change one setting at a time, compare with the paper's settings.

    python docs/studies/defaults.py --data FOLDER_OF_CSV [--variants name ...] [--seeds 5] [--jobs 2]
    python docs/studies/defaults.py --sets interest_rates --rates .2 .3 --base ICE --variants ICE "Gaussian EM" defaults

Every variant is run on twelve UCI sets, three MCAR rates, five seeds. A cell of the table is the geometric mean over sets and
rates of (mean over seeds of the variant's score) / (the same of the base: the paper preset, 2000 steps). The set
"interest_rates" is made up: columns that are nearly collinear.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.signal import lfilter

import otimpute.imputers.preparation.metric as metric_module
import otimpute.imputers.transport_imputer as transport_module
from otimpute import SinkhornImputer
from otimpute.baselines import GaussianEMImputer, ICEImputer
from otimpute.metrics import energy_distance, mae, rmse, wasserstein2

SETS = [
    "airfoil_self_noise", "breast_cancer_diagnostic", "concrete_compression", "connectionist_bench_sonar",
    "connectionist_bench_vowel", "ecoli", "glass", "ionosphere", "iris", "parkinsons", "wine", "yeast",
]  # fmt: skip
RATES = [0.1, 0.3, 0.5]
SCORES = {"mae": mae, "rmse": rmse, "w2": wasserstein2, "energy": energy_distance}
MOST_ROWS_SCORED = 400  # for the two distances between clouds, whose cost is cubic and quadratic

# name -> (parameters of SinkhornImputer, constants of its modules)
VARIANTS: dict[str, tuple[dict, dict]] = {
    "paper, 2000 steps": ({"paper": True, "max_steps": 2000}, {}),
    "defaults": ({}, {}),
    "epsilon .003": ({}, {"epsilon_share": 0.003}),
    "epsilon .03": ({}, {"epsilon_share": 0.03}),
    "epsilon .1": ({}, {"epsilon_share": 0.1}),
    "euclidean metric, em start": ({"metric": "euclidean", "initial": "em"}, {}),
    "euclidean metric, mean start": ({"metric": "euclidean"}, {}),
    "covariance metric, mean start": ({"initial": "mean"}, {}),
    "no noise": ({"noise": 0.0}, {}),
    "correlations to the power .3": ({}, {"_POWER_OF_CORRELATIONS": 0.3}),
    "correlations to the power .7": ({}, {"_POWER_OF_CORRELATIONS": 0.7}),
    "correlations as they are": ({}, {"_POWER_OF_CORRELATIONS": 1.0}),
    "correlations times .8": ({}, {"share": 0.2}),
    "correlations times .8, prior rows 3": ({}, {"share": 0.2, "_PRIOR_ROWS": np.inf}),
    "prior rows 3": ({}, {"_PRIOR_ROWS": np.inf}),
    "prior rows d/n": ({}, {"_PRIOR_ROWS": 1.0}),
    "Gaussian EM": ({}, {}),
    "ICE": ({}, {}),
    "5 cross iterations": ({}, {"N_CROSS_ITERATIONS": 5}),
    "10 cross iterations": ({}, {"N_CROSS_ITERATIONS": 10}),
    "60 cross iterations": ({}, {"N_CROSS_ITERATIONS": 60}),
    "500 steps": ({"max_steps": 500}, {}),
    "2000 steps": ({"max_steps": 2000}, {}),
    "4000 steps": ({"max_steps": 4000}, {}),
    "learning rate .005": ({"learning_rate": 0.005}, {}),
    "learning rate .02": ({"learning_rate": 0.02}, {}),
    "no step decay": ({"step_decay": 1.0}, {}),
    "no tail average": ({"tail_average": 0.0}, {}),
    "no decay, no tail": ({"step_decay": 1.0, "tail_average": 0.0}, {}),
    "batch 32": ({"batch_size": 32}, {}),
    "batch 64": ({"batch_size": 64}, {}),
    "4 pairs": ({"n_pairs": 4}, {}),
    "tol 0": ({"tol": 0.0}, {}),
    "tol .003": ({"tol": 0.003}, {}),
}


def interest_rates(seed: int, n: int = 480) -> np.ndarray:
    """Sixteen maturities a month: level, slope and curvature that wander, and a noise of two hundredths."""
    rng = np.random.default_rng(seed)
    years = np.array([1, 3, 6, 12, 18, 24, 36, 48, 60, 72, 84, 96, 120, 180, 240, 360]) / 12
    fading = (1 - np.exp(-0.6 * years)) / (0.6 * years)
    level = np.cumsum(0.2 * rng.normal(size=n))
    slope, curvature = (lfilter([0.25], [1, -0.97], rng.normal(size=n)) for _ in range(2))
    shapes = np.array([np.ones(16), fading, fading - np.exp(-0.6 * years)])
    return np.column_stack([level, slope, curvature]) @ shapes + 0.02 * rng.normal(size=(n, 16))


def hide(folder: Path | None, name: str, rate: float, seed: int):
    if name == "interest_rates":
        table = interest_rates(seed)
    else:
        table = np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1)
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1)
    missing = np.random.default_rng([seed, round(100 * rate)]).random(table.shape) < rate
    return table, missing


def mixed_with_identity(share: float):
    """How the metric was made before: a share of the identity mixed into the correlations."""

    def metric_of(covariance: np.ndarray, is_category: np.ndarray) -> np.ndarray:  # noqa: ARG001
        return metric_module._power((1 - share) * covariance + share * np.diag(np.diag(covariance)), -0.5)

    return metric_of


def make(variant: str, seed: int):
    if variant == "Gaussian EM":
        return GaussianEMImputer()
    if variant == "ICE":
        return ICEImputer()
    parameters = dict(VARIANTS[variant][0])
    kind = SinkhornImputer.paper if parameters.pop("paper", False) else SinkhornImputer
    return kind(random_state=seed, **parameters)


def run(folder: Path | None, variant: str, name: str, rate: float, seed: int) -> dict:
    constants = VARIANTS[variant][1]
    table, missing = hide(folder, name, rate, seed)
    for constant in ("_POWER_OF_CORRELATIONS", "_PRIOR_ROWS"):
        setattr(metric_module, constant, constants.get(constant, DEFAULTS[constant]))
    transport_module.metric_of = mixed_with_identity(constants["share"]) if "share" in constants else metric_module.metric_of
    transport_module.N_CROSS_ITERATIONS = constants.get("N_CROSS_ITERATIONS", DEFAULTS["N_CROSS_ITERATIONS"])
    import otimpute.transport.epsilon as epsilon_module

    epsilon_module._SHARE["auto"] = constants.get("epsilon_share", DEFAULTS["epsilon_share"])
    imputer = make(variant, seed)
    imputed = imputer.fit_transform(np.where(missing, np.nan, table))
    rows = np.flatnonzero(missing.any(axis=1))[:MOST_ROWS_SCORED]
    record = {"variant": variant, "set": name, "rate": rate, "seed": seed}
    for score in ("mae", "rmse"):
        record[score] = SCORES[score](table, imputed, missing)
    for score in ("w2", "energy"):
        record[score] = SCORES[score](table[rows], imputed[rows], missing[rows])
    return record


def _defaults() -> dict:
    import otimpute.transport.epsilon as epsilon_module

    return {
        "_POWER_OF_CORRELATIONS": metric_module._POWER_OF_CORRELATIONS,
        "_PRIOR_ROWS": metric_module._PRIOR_ROWS,
        "N_CROSS_ITERATIONS": transport_module.N_CROSS_ITERATIONS,
        "epsilon_share": epsilon_module._SHARE["auto"],
    }


DEFAULTS = _defaults()


def table_of(records: list[dict], base: str) -> str:
    lines = ["| variant | MAE | RMSE | W2 | energy |", "|---|---|---|---|---|"]
    mean = {}
    for record in records:
        mean.setdefault((record["variant"], record["set"], record["rate"]), []).append([record[s] for s in SCORES])
    mean = {key: np.mean(scores, axis=0) for key, scores in mean.items()}
    for variant in dict.fromkeys(key[0] for key in mean):
        ratios = [np.log(scores / mean[base, *key[1:]]) for key, scores in mean.items() if key[0] == variant]
        lines.append(f"| {variant} | " + " | ".join(f"{r:.3f}" for r in np.exp(np.mean(ratios, axis=0))) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rates", nargs="*", type=float, default=RATES)
    parser.add_argument("--base", default=next(iter(VARIANTS)))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("defaults.jsonl"))
    arguments = parser.parse_args()
    known = [json.loads(line) for line in arguments.output.read_text().splitlines()] if arguments.output.exists() else []
    done = {(r["variant"], r["set"], r["rate"], r["seed"]) for r in known}
    for variant in dict.fromkeys([arguments.base, *arguments.variants]):
        tasks = [(variant, s, r, k) for s in arguments.sets for r in arguments.rates for k in range(arguments.seeds)]
        todo = [task for task in tasks if task not in done]
        new = Parallel(arguments.jobs)(delayed(run)(arguments.data, *task) for task in todo)
        known += new
        with arguments.output.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in new)
        shown = [r for r in known if r["variant"] in (arguments.base, variant)]
        print(table_of(shown, arguments.base).splitlines()[-1], flush=True)
    print(table_of(known, arguments.base))
