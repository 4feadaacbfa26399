"""The study behind the defaults of RoundRobinImputer: change one setting at a time, in sample and on new rows.

    python docs/studies/round_robin.py --data FOLDER_OF_CSV --out FILE.jsonl [--models linear mlp] [--variants NAME ...]

Eleven UCI sets, MCAR 30 %. Fitted on 70 % of the rows, scored on those and on the other 30 %. A cell of the table is the
geometric mean over sets and seeds of the variant's score over Gaussian EM's. Continues FILE where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from otimpute import RoundRobinImputer
from otimpute.baselines import GaussianEMImputer, ICEImputer
from otimpute.metrics import energy_distance, mae, rmse

SETS = [
    "airfoil_self_noise", "breast_cancer_diagnostic", "concrete_compression", "connectionist_bench_vowel", "ecoli", "glass",
    "ionosphere", "parkinsons", "seeds", "wine", "yeast",
]  # fmt: skip
SCORES = [mae, rmse, energy_distance]
VARIANTS: dict[str, dict] = {
    "Gaussian EM": {},
    "ICE": {},
    "paper preset": {},
    "paper preset, observed against all rows": {"batches": "observed-all"},
    "**defaults**": {},
    "random weights (20 cycles of .01)": {"initial_weights": "random"},
    "random weights, 5 cycles of .001": {"initial_weights": "random", "learning_rate": 1e-3, "max_cycles": 5},
    "random weights, 5 cycles of .01": {"initial_weights": "random", "learning_rate": 1e-2, "max_cycles": 5},
    "Euclidean metric, EM start": {"metric": "euclidean", "initial": "em"},
    "observed against missing rows": {"batches": "observed-missing"},
    "observed against all rows": {"batches": "observed-all"},
    "random order": {"order": "random"},
    "1 cycle": {"max_cycles": 1},
    "3 cycles": {"max_cycles": 3},
    "10 cycles": {"max_cycles": 10},
    "20 cycles": {"max_cycles": 20},
    "learning rate .0003": {"learning_rate": 3e-4},
    "learning rate .003": {"learning_rate": 3e-3},
    "learning rate .01": {"learning_rate": 1e-2},
    "learning rate .003, step decay .1": {"learning_rate": 3e-3, "step_decay": 0.1},
    "1 pair": {"n_pairs": 1},
    "10 pairs": {"n_pairs": 10},
    "l2 .001": {"l2": 1e-3},
    "10 cycles, 10 % for validation": {"max_cycles": 10, "validation_fraction": 0.1},
}


def make(variant: str, model: str, seed: int):
    if variant == "Gaussian EM":
        return GaussianEMImputer()
    if variant == "ICE":
        return ICEImputer()
    if variant.startswith("paper preset"):
        return RoundRobinImputer.paper(model, random_state=seed, **VARIANTS[variant])
    return RoundRobinImputer(model, random_state=seed, **VARIANTS[variant])


def run(folder: Path, name: str, variant: str, model: str, seed: int) -> dict:
    X = np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    rng = np.random.default_rng([seed, 30])
    missing = rng.random(X.shape) < 0.3
    X_incomplete = np.where(missing, np.nan, X)
    test, train = np.split(rng.permutation(len(X)), [len(X) * 3 // 10])
    imputer = make(variant, model, seed)
    begun = time.perf_counter()
    imputed = {"fit": (train, imputer.fit_transform(X_incomplete[train]))}
    seconds = time.perf_counter() - begun
    imputed["new"] = test, imputer.transform(X_incomplete[test])
    scores = {part: [score(X[rows], Y, missing[rows]) for score in SCORES] for part, (rows, Y) in imputed.items()}
    return {"set": name, "variant": variant, "model": model, "seed": seed, "seconds": seconds, **scores}


def show(records: list[dict], model: str) -> None:
    found = {(r["set"], r["seed"], r["variant"]): r for r in records if r["model"] == model}
    print(f"\n| {model} | MAE | RMSE | energy | MAE, new rows | RMSE | energy | seconds |\n|---|---|---|---|---|---|---|---|")
    for variant in VARIANTS:
        keys = [key for key in found if key[2] == variant]
        if not keys:
            continue
        ratios = [
            np.log([found[key][part] for part in ("fit", "new")])
            - np.log([found[(*key[:2], "Gaussian EM")][part] for part in ("fit", "new")])
            for key in keys
        ]
        cells = " | ".join(f"{ratio:.3f}" for ratio in np.exp(np.mean(ratios, axis=0)).ravel())
        seconds = np.exp(np.mean([np.log(found[key]["seconds"]) for key in keys]))
        print(f"| {variant} | {cells} | {seconds:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="*", default=["linear", "mlp"])
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["set"], r["variant"], r["model"], r["seed"]) for r in records}
    with arguments.out.open("a") as file:
        for seed in range(arguments.seeds):
            for name in SETS:
                for model in arguments.models:
                    for variant in arguments.variants:
                        if (name, variant, model, seed) in done:
                            continue
                        records.append(run(arguments.data, name, variant, model, seed))
                        file.write(json.dumps(records[-1]) + "\n")
                        file.flush()
    for model in arguments.models:
        show(records, model)
