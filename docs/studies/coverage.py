"""Is what AutoImputer says about its errors true of values it could not see? Results: docs/studies/coverage.md.

    python docs/studies/coverage.py bars --data FOLDER --out bars.jsonl [--sets NAME ...] [--seeds 200 201] [--jobs 2]
    python docs/studies/coverage.py draws --data PACKAGES --out draws.jsonl [--jobs 2]
    python docs/studies/coverage.py show --out FILE

bars    values of complete data sets (folder of the UCI sets) are hidden in six ways; how many lie in the 90 % intervals, and
        how far off they are compared with what the verdict says
draws   categories and numbers of the mixed tables of docs/studies/mixed.py are hidden; do draws have the right spread, do
        categories occur as often as they should, and are the chances of being wrong right?

Runs resume where they stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from otimpute import AutoImputer
from otimpute.datasets import load_dataset
from otimpute.missingness import MCAR, LogisticMAR, LogisticMNAR

SETS = (
    "iris", "seeds", "glass", "ecoli", "wine", "concrete_slump", "yacht_hydrodynamics", "parkinsons", "blood_transfusion",
    "concrete_compression",
)  # fmt: skip
TABLES = ("Aids2", "Chile", "HI", "Housing", "Males", "cgd", "diamonds", "gbsg2", "mpg", "penguins")
HALF_WIDTH = 1.645


def strong_mar(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three times as steep as the logistic model of the benchmark."""
    n, d = X.shape
    z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    inputs = rng.choice(d, max(1, int(0.3 * d)), replace=False)
    missing = np.zeros(X.shape, dtype=bool)
    for j in np.setdiff1d(np.arange(d), inputs):
        score = z[:, inputs] @ rng.normal(size=len(inputs))
        score = 3 * (score - score.mean()) / max(score.std(), 1e-12)
        shift = brentq(lambda shift, score=score: expit(score + shift).mean() - 0.3, -50, 50)
        missing[:, j] = rng.random(n) < expit(score + shift)
    return missing


def blocks(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three columns (two of fewer than six) are missing together, in 30 % of the rows."""
    n, d = X.shape
    missing, order, size = np.zeros(X.shape, dtype=bool), rng.permutation(d), 3 if d >= 6 else 2
    for begin in range(0, d, size):
        missing[np.ix_(rng.random(n) < 0.3, order[begin : begin + size])] = True
    missing[missing.all(axis=1)] = False
    return missing


def half_rows(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """30 % of the rows lack half of their values, and 5 % of all values are missing by chance."""
    missing = rng.random(X.shape) < 0.05
    for row in np.flatnonzero(rng.random(len(X)) < 0.3):
        missing[row, rng.choice(X.shape[1], X.shape[1] // 2, replace=False)] = True
    return missing


MECHANISMS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "MCAR": lambda X, rng: MCAR(0.3).sample(X, rng),
    "MAR": lambda X, rng: LogisticMAR(0.3).sample(X, rng),
    "strong MAR": strong_mar,
    "MNAR": lambda X, rng: LogisticMNAR(0.3).sample(X, rng),
    "blocks": blocks,
    "half rows": half_rows,
}


def measure_bars(task: tuple[str, str, int], data: str) -> dict[str, Any]:
    name, mechanism, seed = task
    X = load_dataset(name, data_home=data).values.astype(float)
    missing = MECHANISMS[mechanism](X, np.random.default_rng([seed, zlib.crc32(f"{name} {mechanism}".encode())]))
    begun = time.perf_counter()
    imputer = AutoImputer(random_state=seed)
    filled = imputer.fit_transform(np.where(missing, np.nan, X))
    varies = (X.std(axis=0) > 0) & missing
    error, bar = np.abs(filled - X)[varies], imputer.imputation_std_[varies]
    spread = np.broadcast_to(X.std(axis=0), X.shape)[varies]
    relative = bar / spread
    tenth = np.minimum(np.argsort(np.argsort(relative)) * 10 // len(relative), 9)
    inside = error <= HALF_WIDTH * bar + 1e-9 * spread
    said = next((each.own for each in imputer.judgement_.overall if each.measure == "error"), None)
    return {
        "covered": float(inside.mean()),
        "by_tenth": [float(inside[tenth == k].mean()) for k in range(10)],
        "half": float((error <= 0.6745 * bar + 1e-9 * spread).mean()),
        "many_missing": _share(inside, (missing.mean(axis=1) > 0.6)[np.nonzero(varies)[0]]),
        "interval_score": float(np.mean((2 * HALF_WIDTH * bar + 20 * np.maximum(error - HALF_WIDTH * bar, 0)) / spread)),
        "said": said,
        "true": float((error / spread).mean()),
        "rmse": float(np.sqrt(((error / spread) ** 2).mean())),
        "extrapolation": bool(imputer.judgement_.unseen),
        "seconds": time.perf_counter() - begun,
    }


def _share(flags: np.ndarray, chosen: np.ndarray) -> float | None:
    return float(flags[chosen].mean()) if chosen.sum() >= 20 else None


def measure_draws(task: tuple[str, str, int], data: str) -> dict[str, Any]:
    import polars as pl
    from mixed import load

    name, target, seed = task
    complete = load(Path(data), name)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    missing = {column: rng.random(len(complete)) < 0.3 for column in complete.columns}
    incomplete = complete.with_columns(
        pl.when(pl.Series(missing[column.name])).then(None).otherwise(column).alias(column.name) for column in complete
    )
    imputer = AutoImputer(target=target, random_state=seed)
    filled = imputer.fit_transform(incomplete)
    spreads, shares, chances = {}, {}, []
    for column in complete:
        where = pl.Series(missing[column.name])
        truth, got = column.filter(where), filled[column.name].filter(where)
        if column.dtype.is_numeric():
            spreads[column.name] = float(got.std() / truth.std()), float(column.filter(~where).std() / truth.std())
            continue
        for label in column.unique().to_list():
            true, drawn = float((truth == label).mean()), float((got == label).mean())
            error = np.sqrt(2 * max(true * (1 - true), 1 / len(truth)) / len(truth))  # draws are random, and so is the truth
            shares[f"{column.name}={label}"] = (true, drawn, (drawn - true) / error)
        wrong = (truth != got).to_numpy()
        chances += list(zip(imputer.imputation_std_[column.name].filter(where).to_list(), wrong.tolist(), strict=True))
    return {"spreads": spreads, "shares": shares, "chances": chances if target == "values" else []}


def run(measure: Callable[..., dict[str, Any]], tasks: Iterable[tuple[str, str, int]], out: Path, jobs: int) -> None:
    done = {tuple(json.loads(line)["task"]) for line in out.read_text().splitlines()} if out.exists() else set()
    todo = [task for task in tasks if task not in done]
    with ProcessPoolExecutor(jobs) as pool, out.open("a") as file:
        for task, found in zip(todo, pool.map(measure, todo), strict=True):
            file.write(json.dumps({"task": task, **found}) + "\n")
            file.flush()
            print(*task, {key: value for key, value in found.items() if isinstance(value, (float, bool))}, flush=True)


def show(out: Path) -> None:
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    show_bars(rows) if "covered" in rows[0] else show_draws(rows)


def show_bars(rows: list[dict[str, Any]]) -> None:
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["task"][0], row["task"][1]].append(row)
    sets, mechanisms = list(dict.fromkeys(key[0] for key in found)), list(dict.fromkeys(key[1] for key in found))
    covered = {key: float(np.mean([one["covered"] for one in group])) for key, group in found.items()}
    print("| | " + " | ".join(mechanisms) + " |\n|---|" + "---|" * len(mechanisms))
    for name in sets:
        print(f"| {name} | " + " | ".join(f"{100 * covered[name, how]:.1f}" for how in mechanisms) + " |")
    print(
        "| **mean** | " + " | ".join(f"**{100 * np.mean([covered[n, how] for n in sets]):.1f}**" for how in mechanisms) + " |"
    )

    def mean(how: str, of: Callable[[dict[str, Any]], float | None]) -> float:
        values = [of(row) for row in rows if row["task"][1] == how]
        return float(np.mean([value for value in values if value is not None] or [np.nan]))

    lines: dict[str, Callable[[str], str]] = {
        "rows that lack more than 60 %": lambda how: f"{100 * mean(how, lambda row: row['many_missing']):.1f}",
        "50 % intervals": lambda how: f"{100 * mean(how, lambda row: row['half']):.1f}",
        "error said / true": lambda how: (
            f"{np.exp(mean(how, lambda row: np.log(row['said'] / row['true']) if row['said'] else None)):.2f}"
        ),
        "verdict speaks of unseen ranges": lambda how: f"{100 * mean(how, lambda row: row['extrapolation']):.0f} %",
    }
    for label, line in lines.items():
        print(f"| {label} | " + " | ".join(line(how) for how in mechanisms) + " |")
    tenths = np.mean([row["by_tenth"] for row in rows], axis=0)
    print("\nby tenth of the claimed width: " + ", ".join(f"{100 * each:.1f}" for each in tenths))
    for how in mechanisms:
        print(how, ", ".join(f"{100 * e:.1f}" for e in np.mean([r["by_tenth"] for r in rows if r["task"][1] == how], axis=0)))


def _geometric(ratios: list[float]) -> str:
    return f"{np.exp(np.mean(np.log(np.maximum(ratios, 0.01)))):.2f}"


def show_draws(rows: list[dict[str, Any]]) -> None:
    print(
        "| table | sd of draws / truth | of observed values / truth | worst column | classes within 2 standard errors | "
        "worst class |\n|---|---|---|---|---|---|"
    )
    for name in dict.fromkeys(row["task"][0] for row in rows):
        mine = [row for row in rows if row["task"][0] == name and row["task"][1] == "distribution"]
        spreads = {column: np.mean([row["spreads"][column][0] for row in mine]) for column in mine[0]["spreads"]}
        observed = [pair[1] for row in mine for pair in row["spreads"].values()]
        labels = {
            label: np.mean([row["shares"][label] for row in mine if label in row["shares"]], axis=0)
            for label in mine[0]["shares"]
        }
        z = [abs(row["shares"][label][2]) for row in mine for label in row["shares"]]
        far = max(spreads, key=lambda column: abs(np.log(spreads[column]))) if spreads else ""
        odd = max(labels, key=lambda label: abs(labels[label][1] - labels[label][0])) if labels else ""
        print(
            f"| {name} | {_geometric(list(spreads.values()))} | {_geometric(observed)} | {far} {spreads[far]:.2f} | "
            if spreads
            else f"| {name} | – | – | – | ",
            end="",
        )
        print(f"{np.mean(np.array(z) < 2):.0%} | {odd} {labels[odd][0]:.2f} → {labels[odd][1]:.2f} |" if labels else "– | – |")
    pairs = np.array([pair for row in rows for pair in row["chances"]], dtype=float)
    if len(pairs):
        order = np.argsort(pairs[:, 0])
        print("\nchance of being wrong, by fifth: said → true: " + ", ".join(
            f"{part[:, 0].mean():.2f} → {part[:, 1].mean():.2f}" for part in np.array_split(pairs[order], 5)
        ))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["bars", "draws", "show"])
    parser.add_argument("--data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[200, 201])
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.part == "bars":
        tasks = [(name, how, seed) for seed in args.seeds for name in args.sets for how in MECHANISMS]
        run(partial(measure_bars, data=args.data), tasks, args.out, args.jobs)
    elif args.part == "draws":
        tasks = [(name, target, seed) for seed in args.seeds for name in TABLES for target in ("distribution", "values")]
        run(partial(measure_draws, data=args.data), tasks, args.out, args.jobs)
    show(args.out)


if __name__ == "__main__":
    main()
