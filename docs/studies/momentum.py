"""Does momentum hurt Algorithm 1, as the paper says? The paper's loop, written plainly, with and without it.

    python docs/studies/momentum.py --data FOLDER

SinkhornImputer has no momentum (a row's state would no longer be a function of when it was last drawn), so the loop is
spelled out here on `sinkhorn_divergence`.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from otimpute import sinkhorn_divergence
from otimpute.benchmark.run_task import whiten
from otimpute.datasets import load_dataset
from otimpute.exceptions import NotConvergedWarning
from otimpute.metrics import energy_distance, mae, rmse
from otimpute.missingness import MCAR
from otimpute.transport import epsilon_from_rule

DATASETS = ["iris", "seeds", "glass", "ecoli", "wine", "concrete_slump"]
# A step with momentum is as long as 1 / (1 − momentum) steps without: the last one gives that back.
VARIANTS = {"none": (0.0, 1e-2), "0.5": (0.5, 1e-2), "0.9": (0.9, 1e-2), "0.9, step × 0.1": (0.9, 1e-3)}
STEPS = 2000


def impute(X: np.ndarray, missing: np.ndarray, momentum: float, learning_rate: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = len(X)
    m = 128 if n > 256 else 2 ** int(np.log2(n / 2))
    means = np.array([X[~missing[:, k], k].mean() for k in range(X.shape[1])])
    work = np.where(missing, means, X)
    epsilon = epsilon_from_rule(work, "authors", rng)
    work[missing] += 0.1 * rng.normal(size=missing.sum())
    squares, velocity = np.zeros(X.shape), np.zeros(X.shape)
    for _ in range(STEPS):
        k, other = rng.choice(n, m, replace=False), rng.choice(n, m, replace=False)
        divergence = sinkhorn_divergence(work[k], work[other], epsilon=epsilon, tol=1e-2, max_iter=100)
        gradient = np.zeros(X.shape)
        gradient[k] += divergence.gradient_x
        gradient[other] += divergence.gradient_y
        gradient[~missing] = 0
        squares = 0.99 * squares + 0.01 * gradient**2
        velocity = momentum * velocity + gradient / (np.sqrt(squares) + 1e-8)
        work -= learning_rate * velocity
    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of data sets as CSV files")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NotConvergedWarning)
    ratios: dict[str, list[list[float]]] = {name: [] for name in VARIANTS}
    for dataset in DATASETS:
        X = whiten(load_dataset(dataset, data_home=arguments.data).values)
        for seed in range(arguments.seeds):
            missing = MCAR(0.3).sample(X, seed)
            scores = {}
            for name, (momentum, rate) in VARIANTS.items():
                X_imputed = impute(X, missing, momentum, rate, seed)
                scores[name] = np.array([score(X, X_imputed, missing) for score in (mae, rmse, energy_distance)])
                ratios[name].append(list(scores[name] / scores["none"]))
            print(dataset, seed, *(f"{name}: {s.round(3)}" for name, s in scores.items()), flush=True)
    print(f"\nrelative to no momentum, geometric means over {len(DATASETS)} sets and {arguments.seeds} seeds, {STEPS} steps")
    print("| momentum | MAE | RMSE | energy distance |\n|---|---|---|---|")
    for name, values in ratios.items():
        print(f"| {name} |" + "".join(f" {value:.3f} |" for value in np.exp(np.log(values).mean(axis=0))))


if __name__ == "__main__":
    main()
