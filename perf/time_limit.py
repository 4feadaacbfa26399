"""Does `AutoImputer(max_seconds=...)` keep its limit, and is what it then says true?

    python perf/time_limit.py [ROWSxCOLUMNSxSECONDS ...]

Made-up tables with 20 % missing; in one run, the time taken, the true error, what the verdict says of it, and the errors of
column means and of the Gaussian alone. The limit counts as kept within 20 % and 2 seconds.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from otimpute import AutoImputer
from otimpute.baselines import GaussianEMImputer

SIZES = (
    "500x15x2",
    "500x15x10",
    "3000x60x6",
    "3000x60x60",
    "9857x20x60",
    "300x1000x20",
    "300x1000x60",
    "200000x20x20",
    "200000x20x60",
)


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n, min(6, d)))
    X = np.tanh(factors @ rng.normal(size=(factors.shape[1], d))) + 0.3 * rng.normal(size=(n, d))
    return X / X.std(axis=0), rng.random((n, d)) < 0.2


def main() -> None:
    AutoImputer(max_seconds=1, random_state=0).fit(np.where(table(40, 4)[1], np.nan, table(40, 4)[0]))  # compiles
    print("| rows × columns | limit | taken | kept | MAE | said | means | Gaussian alone | left out |\n|" + "---|" * 9)
    for size in sys.argv[1:] or SIZES:
        n, d, limit = (int(each) for each in size.split("x"))
        X, missing = table(n, d)
        incomplete = np.where(missing, np.nan, X)
        imputer = AutoImputer(max_seconds=limit, random_state=0)
        begun = time.perf_counter()
        filled = imputer.fit_transform(incomplete)
        taken = time.perf_counter() - begun
        gaussian = GaussianEMImputer().fit_transform(incomplete) if d <= 100 else None
        own, means = (np.abs(each - X)[missing].mean() for each in (filled, np.zeros(X.shape)))
        alone = "–" if gaussian is None else f"{np.abs(gaussian - X)[missing].mean():.3f}"
        said = next((f"{each.own:.2f}" for each in imputer.judgement_.overall if each.measure == "error"), "–")
        left_out = ", ".join(imputer.left_out_) or "nobody"
        kept = "yes" if taken <= 1.2 * limit + 2 else "no"
        errors = f"{own:.3f} | {said} | {means:.3f} | {alone}"
        print(f"| {n} × {d} | {limit} | {taken:.1f} | {kept} | {errors} | {left_out} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
