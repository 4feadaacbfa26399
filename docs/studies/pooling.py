"""Are errors right that are pooled over several draws? `python docs/studies/pooling.py`; the results are in pooling.md.

Many made-up tables with a known slope lose values; each is analysed as if complete, with the incomplete rows dropped, filled in
by guesses, by draws, and by ten draws pooled by Rubin's rules.
"""

from __future__ import annotations

import numpy as np

from otimpute import AutoImputer, pool_estimates

N_TABLES, N_ROWS, N_DRAWS, SLOPE = 100, 300, 10, 1.0

Estimate = tuple[float, float]  # a slope and its variance


def slope(table: np.ndarray) -> Estimate:
    x, y = (table - table.mean(axis=0)).T[:2]
    slope = x @ y / (x @ x)
    return slope, ((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)


def pool(estimates: list[Estimate]) -> Estimate:
    pooled = pool_estimates(*zip(*estimates, strict=True))
    return pooled.estimate[0], pooled.total[0]


def analyse(seed: int) -> dict[str, Estimate]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N_ROWS)
    X = np.column_stack([x, SLOPE * x + 0.5 * rng.normal(size=N_ROWS), rng.normal(size=N_ROWS)])
    missing = rng.random(X.shape) < 0.4
    missing[:, 0] = False
    X_incomplete = np.where(missing, np.nan, X)
    guesses = AutoImputer(["gaussian_em"], random_state=0).fit_transform(X_incomplete)
    draws = [
        slope(AutoImputer(["gaussian_em"], target="distribution", random_state=draw).fit_transform(X_incomplete))
        for draw in range(N_DRAWS)
    ]
    return {
        "nothing missing": slope(X),
        "incomplete rows dropped": slope(X_incomplete[~missing[:, 1]]),
        "one table of estimates": slope(guesses),
        "one table of draws": draws[0],
        "ten tables of draws, pooled": pool(draws),
    }


def main() -> None:
    found = [analyse(1000 + table) for table in range(N_TABLES)]
    print("| | mean slope | its spread over tables | error it claims | truth within ± 1.96 |")
    print("|---|---|---|---|---|")
    for way in found[0]:
        slopes, variances = np.array([each[way] for each in found]).T
        errors = np.sqrt(variances)
        inside = np.abs(slopes - SLOPE) <= 1.96 * errors
        print(f"| {way} | {slopes.mean():.3f} | {slopes.std():.3f} | {errors.mean():.3f} | {inside.mean():.0%} |")


if __name__ == "__main__":
    main()
