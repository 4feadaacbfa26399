"""The deep methods beside the column mean, MCAR 30 %: errors over five seeds and times of default fits.

python perf/deep.py --data FOLDER [--seeds 5] [--methods miwae,gain,vaeac]
"""

import argparse
import time

import numpy as np

from otimpute.baselines import GAINImputer, MIWAEImputer, VAEACImputer
from otimpute.datasets import load_dataset
from otimpute.missingness import MCAR, hide

METHODS = {"miwae": MIWAEImputer, "gain": GAINImputer, "vaeac": VAEACImputer}
MOST = {"connectionist_bench_vowel": 0.95, "wine": 0.9, "breast_cancer_diagnostic": 0.9}  # of the column mean's MAE

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", help="folder of the 23 CSV files")
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--methods", default=",".join(METHODS))
arguments = parser.parse_args()

print("| set | method | MAE over the column mean's (worst seed) | at most | seconds a fit | steps |\n|---|---|---|---|---|---|")
for dataset, most in MOST.items():
    X = load_dataset(dataset, data_home=arguments.data).values
    for method in arguments.methods.split(","):
        ratios, seconds, steps = [], [], []
        for seed in range(arguments.seeds):
            X_incomplete, missing = hide(X, MCAR(0.3), random_state=seed)
            imputer = METHODS[method](random_state=seed)
            begun = time.perf_counter()
            X_imputed = imputer.fit_transform(X_incomplete)
            seconds.append(time.perf_counter() - begun)
            steps.append(imputer.n_steps_)
            of_method, of_mean = (
                np.abs((each - X) / X.std(axis=0))[missing].mean() for each in (X_imputed, np.nanmean(X_incomplete, axis=0))
            )
            ratios.append(of_method / of_mean)
        print(
            f"| {dataset} | {method} | {np.mean(ratios):.3f} ({max(ratios):.3f}) | {most} | {np.median(seconds):.1f} | "
            f"{np.median(steps):.0f} |",
            flush=True,
        )
