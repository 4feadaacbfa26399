"""Do intervals from pooled tables contain the truth as often as they say? The results are in multiple_imputation.md.

    python docs/studies/multiple_imputation.py coverage --jobs 2 --out FOLDER    # simulated tables with a known truth
    python docs/studies/multiple_imputation.py scores --data FOLDER              # draws of hidden values of real tables

R's mice is a peer where Rscript and mice are installed (Debian: r-base-core, r-cran-mice). Both see the same tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

import otimpute
from otimpute import MultipleImputer, SinkhornImputer
from otimpute.baselines import GaussianEMImputer

Estimates = dict[str, tuple[float, float]]  # by name, an estimate and its variance
N_DRAWS = 10
R_SCRIPT = Path(__file__).with_suffix(".R")


# --- tables -----------------------------------------------------------------------------------------------------------


def normal(d: int, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Columns with correlations of .5."""
    covariance = np.full((d, d), 0.5) + 0.5 * np.eye(d)
    return pd.DataFrame(rng.multivariate_normal(np.zeros(d), covariance, size=n), columns=[*"xzw"[: d - 1], "y"])


def skewed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A positive column with a long tail that depends on another one."""
    x, z = rng.normal(size=(2, n))
    return pd.DataFrame({"x": x, "z": 0.5 * x + z, "y": np.exp(0.5 * x + 0.25 * z + 0.5 * rng.normal(size=n))})


def curved(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A parabola."""
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": x**2 + rng.normal(size=n)})


def curved_both(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A parabola of which both coordinates may be missing: the hardest one, since y does not tell the sign of x."""
    w = rng.normal(size=n)
    x = 0.5 * w + rng.normal(size=n)
    return pd.DataFrame({"w": w, "x": x, "y": x**2 + rng.normal(size=n)})


def mixed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A category with three classes, a count and a share, which depend on a complete column and on each other."""
    x = rng.normal(size=n)
    chances = np.exp(np.column_stack([np.zeros(n), 0.8 * x - 0.3, -0.8 * x - 0.8]))
    below = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    group = (rng.random((n, 1)) > below).sum(axis=1)
    count = rng.poisson(np.exp(0.8 + 0.3 * x + 0.4 * (group == 1)))
    share = expit(0.5 * x - 0.7 * (group == 2) + 0.8 * rng.normal(size=n))
    return pd.DataFrame({"x": x, "group": np.array(["a", "b", "c"])[group], "count": count, "share": share})


def holes(table: pd.DataFrame, mechanism: str, rate: float, rng: np.random.Generator, strength: float = 1.5) -> np.ndarray:
    """Where values are missing, in all columns but the first: at random, or the more likely the larger the first column is."""
    missing = np.zeros(table.shape, dtype=bool)
    first = table.iloc[:, 0].to_numpy()
    level = brentq(lambda c: expit(strength * first + c).mean() - rate, -20, 20) if mechanism == "MAR" else 0.0
    for k in range(1, table.shape[1]):
        chance = expit(strength * first + level) if mechanism == "MAR" else rate
        missing[:, k] = rng.random(len(table)) < chance
    return missing


# --- analyses -----------------------------------------------------------------------------------------------------------


def regression(y: np.ndarray, robust: bool = False, **inputs: np.ndarray) -> Estimates:
    """Slopes by least squares."""
    X = np.column_stack([np.ones(len(y)), *inputs.values()])
    inverse = np.linalg.inv(X.T @ X)
    slopes = inverse @ X.T @ y
    residuals = y - X @ slopes
    if robust:  # HC3
        leverage = np.einsum("ij,jk,ik->i", X, inverse, X)
        inside = X * (residuals / (1 - leverage))[:, None]
        covariance = inverse @ (inside.T @ inside) @ inverse
    else:
        covariance = inverse * (residuals @ residuals) / (len(y) - X.shape[1])
    return {f"slope {name}": (slopes[k], covariance[k, k]) for k, name in enumerate(inputs, start=1)}


def share(name: str, is_in: np.ndarray) -> Estimates:
    p = is_in.mean()
    return {name: (p, max(p * (1 - p), 1 / len(is_in)) / len(is_in))}


def mean(name: str, y: np.ndarray) -> Estimates:
    return {name: (y.mean(), y.var(ddof=1) / len(y))}


def analyse_normal(table: pd.DataFrame) -> Estimates:
    y, n = table["y"].to_numpy(), len(table)
    spread, at = y.std(ddof=1), stats.norm.ppf(0.9)
    others = {name: table[name].to_numpy() for name in table.columns[:-1]}
    correlation = np.corrcoef(others["x"], y)[0, 1]
    return {
        **mean("mean", y),
        "log sd": (np.log(spread), 1 / (2 * (n - 1))),
        "90 % quantile": (np.quantile(y, 0.9), spread**2 * 0.09 / n / stats.norm.pdf(at) ** 2),
        "correlation (z)": (np.arctanh(correlation), 1 / (n - 3)),
        **regression(y, **others),
    }


def analyse_skewed(table: pd.DataFrame) -> Estimates:
    y = table["y"].to_numpy()
    return {
        **mean("mean", y), **share("share above 2", y > 2),
        **regression(y, robust=True, x=table["x"].to_numpy(), z=table["z"].to_numpy()),
    }  # fmt: skip


def analyse_curved(table: pd.DataFrame) -> Estimates:
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    return {**mean("mean", y), **regression(y, x=x, square=x**2)}


def analyse_mixed(table: pd.DataFrame) -> Estimates:
    group = table["group"].to_numpy()
    found: Estimates = {}
    for label in "abc":
        found |= share(f"share {label}", group == label)
    is_b, is_c, x = (group == "b") * 1.0, (group == "c") * 1.0, table["x"].to_numpy()
    found |= mean("mean count", table["count"].to_numpy()) | mean("mean share", table["share"].to_numpy())
    found |= regression(table["share"].to_numpy(), robust=True, x=x, b=is_b, c=is_c)
    of_count = regression(table["count"].to_numpy(), robust=True, x=x, b=is_b)
    return found | {f"count: {name}": each for name, each in of_count.items()}


@dataclass(frozen=True)
class Design:
    """How tables are made and what is asked of them."""

    make: Callable[[int, np.random.Generator], pd.DataFrame]
    analyse: Callable[[pd.DataFrame], Estimates]
    rate: float = 0.45
    strength: float = 1.5


DESIGNS = {
    "bivariate": Design(partial(normal, 2), analyse_normal),
    "trivariate": Design(partial(normal, 3), analyse_normal),
    "skewed": Design(skewed, analyse_skewed, 0.3, 1.0),
    "curved": Design(curved, analyse_curved, 0.3, 1.0),
    "curved, both missing": Design(curved_both, analyse_curved, 0.3, 1.0),
    "mixed": Design(mixed, analyse_mixed, 0.3, 1.0),
}
NORMAL = ("bivariate", "trivariate")
N_PARAMETERS = 3  # of the largest regression, roughly: for complete-data degrees of freedom


@cache
def truth(design: str) -> dict[str, float]:
    """What the estimates tend to: their values on a very long table."""
    long = [DESIGNS[design].analyse(DESIGNS[design].make(400_000, np.random.default_rng([99, k]))) for k in range(10)]
    return {name: float(np.mean([each[name][0] for each in long])) for name in long[0]}


# --- methods ------------------------------------------------------------------------------------------------------------

OURS = {
    "MultipleImputer": None,
    "Gaussian EM, bootstrap": GaussianEMImputer(),
    "Sinkhorn, bootstrap": SinkhornImputer(device="cpu"),
}
PEERS = {"mice norm": "norm", "mice pmm": "pmm"}


def completed_by_mice(tables: dict[int, pd.DataFrame], method: str, folder: Path) -> dict[int, list[pd.DataFrame]]:
    given, out = folder / "given.csv", folder / "out.csv"
    pd.concat([table.assign(table=number)[["table", *table.columns]] for number, table in tables.items()]).to_csv(
        given, index=False, na_rep="NA"
    )
    subprocess.run(["Rscript", str(R_SCRIPT), str(given), str(out), method, str(N_DRAWS)], check=True, capture_output=True)
    found = pd.read_csv(out)
    return {
        number: [one.drop(columns=["table", "imp"]).reset_index(drop=True) for _, one in each.groupby("imp")]
        for number, each in found.groupby("table")
    }


@dataclass(frozen=True)
class Case:
    design: str
    mechanism: str
    n: int
    method: str

    @property
    def key(self) -> str:
        return f"{self.design}-{self.mechanism}-{self.n}-{self.method}".replace(" ", "_").replace(",", "")


def table_of(case: Case, number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A complete table and the same with missing values; they depend on the design only, not on the method."""
    design = DESIGNS[case.design]
    rng = np.random.default_rng([number, case.n, *case.design.encode(), *case.mechanism.encode()])
    complete = design.make(case.n, rng)
    return complete, complete.mask(holes(complete, case.mechanism, design.rate, rng, design.strength))


def run_case(case: Case, n_tables: int, out: Path) -> Path:
    """For every table and estimand: the pooled estimate, its standard error, half the width of its interval, the truth."""
    path = out / f"{case.key}.json"
    if path.exists() and len(json.loads(path.read_text())["tables"]) >= n_tables:
        return path
    tables = {number: table_of(case, number)[1] for number in range(n_tables)}
    if case.method in PEERS:
        with tempfile.TemporaryDirectory() as folder:
            completed: dict[int, Any] = completed_by_mice(tables, PEERS[case.method], Path(folder))
    else:
        completed = {
            number: MultipleImputer(OURS[case.method], N_DRAWS, random_state=number).fit(table).tables_
            for number, table in tables.items()
        }
    analyse, true, rows = DESIGNS[case.design].analyse, truth(case.design), []
    for each in completed.values():
        found = [analyse(table) for table in each]
        names = list(found[0])
        estimates, variances = (np.array([[one[name][k] for name in names] for one in found]) for k in (0, 1))
        pooled = otimpute.pool_estimates(estimates, variances, names=names, df_complete=case.n - N_PARAMETERS)
        rows.append(
            {name: (q, se, (high - low) / 2, true[name]) for name, q, se, low, high in zip(
                names, pooled.estimate, pooled.std_error, pooled.low, pooled.high, strict=True)}
        )  # fmt: skip
    path.write_text(json.dumps({"case": vars(case), "tables": rows}))
    return path


def cases(designs: list[str], sizes: list[int], methods: list[str]) -> Iterator[Case]:
    for design in designs:
        for mechanism in ("MCAR", "MAR"):
            for n in sizes:
                for method in methods:
                    is_normal = design in NORMAL
                    if is_normal or (n > 50 and method in ("MultipleImputer", "mice pmm")):
                        yield Case(design, mechanism, n, method)


def show(paths: list[Path]) -> None:
    found = [json.loads(path.read_text()) for path in paths]
    widths = {}
    for each in found:
        for name in each["tables"][0]:
            key = each["case"]["design"], each["case"]["mechanism"], each["case"]["n"], name
            widths[(*key, each["case"]["method"])] = np.mean([row[name][2] for row in each["tables"]])
    print("| table | missing | rows | method | coverage, % | largest bias / se | width / mice norm (pmm) |")
    print("|" + "---|" * 7)
    for each in found:
        case, rows = each["case"], each["tables"]
        names = list(rows[0])
        cover, bias, ratio = [], [], []
        for name in names:
            q, se, half, true = np.array([row[name] for row in rows]).T
            cover.append(100 * np.mean(np.abs(q - true) <= half))
            bias.append((q - true).mean() / se.mean())
            peer = "mice norm" if case["design"] in NORMAL else "mice pmm"
            base = widths.get((case["design"], case["mechanism"], case["n"], name, peer))
            ratio.append(half.mean() / base if base else np.nan)
        worst = int(np.argmax(np.abs(bias)))
        print(
            f"| {case['design']} | {case['mechanism']} | {case['n']} | {case['method']} | {min(cover):.0f}–{max(cover):.0f} "
            f"({', '.join(f'{name} {c:.0f}' for name, c in zip(names, cover, strict=True))}) "
            f"| {bias[worst]:+.2f} ({names[worst]}) | "
            f"{np.nanmin(ratio):.2f}–{np.nanmax(ratio):.2f} |"
        )
    n = len(found[0]["tables"])
    print(f"\n{n} tables each: the standard error of a coverage of 95 % is {100 * np.sqrt(0.95 * 0.05 / n):.1f} %.")


def coverage(given: argparse.Namespace) -> None:
    given.out.mkdir(parents=True, exist_ok=True)
    methods = [*OURS, *PEERS] if given.methods is None else given.methods
    if shutil.which("Rscript") is None:
        methods = [method for method in methods if method not in PEERS]
    todo = list(cases(given.designs, given.sizes, methods))
    with ProcessPoolExecutor(given.jobs) as pool:
        paths = list(pool.map(partial(run_case, n_tables=given.tables, out=given.out), todo))
    show(paths)


# --- draws of hidden values -----------------------------------------------------------------------------------------------

# The smallest sets first; mice leaves values missing where columns repeat each other, so those sets are not among them.
SETS = ("iris", "wine", "seeds", "glass", "ecoli", "yacht_hydrodynamics", "concrete_compression", "yeast",
        "connectionist_bench_vowel", "airfoil_self_noise", "wine_quality_red", "planning_relax")  # fmt: skip


def scores(given: argparse.Namespace) -> None:
    from otimpute.datasets import load_dataset
    from otimpute.metrics import crps

    print("| | CRPS, MultipleImputer | mice pmm | ratio |\n|---|---|---|---|")
    ratios = []
    for name in SETS:
        ours, theirs = [], []
        for seed in given.seeds:
            rng = np.random.default_rng(seed)
            values = np.asarray(load_dataset(name, data_home=given.data).values, dtype=float)
            values = values[rng.permutation(len(values))[:1000]]
            values = values[:, values.std(axis=0) > 0]
            values = (values - values.mean(axis=0)) / values.std(axis=0)
            missing = rng.random(values.shape) < 0.3
            table = pd.DataFrame(np.where(missing, np.nan, values), columns=[f"v{k}" for k in range(values.shape[1])])
            draws = [each.to_numpy() for each in MultipleImputer(m=N_DRAWS, random_state=seed).fit(table).tables_]
            ours.append(crps(values, np.array(draws), missing))
            with tempfile.TemporaryDirectory() as folder:
                (peer,) = completed_by_mice({0: table}, "pmm", Path(folder)).values()
            peers = np.array([each.to_numpy() for each in peer])
            if np.isnan(peers).any():
                break
            theirs.append(crps(values, peers, missing))
        if len(theirs) < len(given.seeds):
            print(f"| {name} | {np.mean(ours):.4f} | left values missing | – |", flush=True)
            continue
        ratios.append(np.mean(ours) / np.mean(theirs))
        print(f"| {name} | {np.mean(ours):.4f} | {np.mean(theirs):.4f} | {ratios[-1]:.3f} |", flush=True)
    print(f"| **geometric mean of {len(ratios)}** | | | **{np.exp(np.mean(np.log(ratios))):.3f}** |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("coverage")
    one.add_argument("--designs", nargs="+", default=list(DESIGNS))
    one.add_argument("--sizes", nargs="+", type=int, default=[50, 200, 1000])
    one.add_argument("--methods", nargs="+")
    one.add_argument("--tables", type=int, default=200)
    one.add_argument("--jobs", type=int, default=1)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=coverage)
    two = parts.add_parser("scores")
    two.add_argument("--data", type=Path)
    two.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    two.set_defaults(run=scores)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
