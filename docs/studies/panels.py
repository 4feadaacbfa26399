"""What groups and times of panel data are worth: `python docs/studies/panels.py`; the results are in panels.md.

Values of five panels are hidden, one by one or in runs of time, and imputed by the same imputers with and without `groups=` and
`time=`, by interpolation within groups, and by qolmat. Needs statsmodels, linearmodels, and qolmat (left out if not installed).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pandas as pd

from otimpute import AutoImputer
from otimpute.baselines import GaussianEMImputer

SHARE, SEEDS = 0.25, (0, 1)
Panel = tuple[pd.DataFrame, str, str, list[str]]  # table, group, time, columns that lose values
Fill = Callable[[pd.DataFrame, str, str, list[str]], pd.DataFrame]


def grunfeld() -> Panel:
    """Investment of 11 firms over 20 years."""
    import statsmodels.api as sm

    table = sm.datasets.grunfeld.load_pandas().data[["firm", "year", "invest", "value", "capital"]]
    return table.astype({"firm": object}), "firm", "year", ["invest", "value", "capital"]


def munnell() -> Panel:
    """Productivity of 48 states over 17 years."""
    from linearmodels.datasets import munnell

    columns = ["P_CAP", "HWY", "WATER", "UTIL", "PC", "GSP", "EMP", "UNEMP"]
    return munnell.load()[["ST_ABB", "YR", *columns]].astype({"ST_ABB": object}), "ST_ABB", "YR", columns


def wages() -> Panel:
    """Every third of 545 men over 8 years; some columns never change."""
    from linearmodels.datasets import wage_panel

    table = wage_panel.load()
    table = table[table["nr"].isin(sorted(table["nr"].unique())[::3])]
    kept = ["nr", "year", "black", "hisp", "educ", "exper", "hours", "married", "union", "lwage"]
    return table[kept].astype({"nr": int, "year": int}), "nr", "year", ["hours", "union", "married", "lwage"]


def training() -> Panel:
    """157 firms over 3 years; many values are missing from the beginning."""
    from linearmodels.datasets import jobtraining

    columns = ["lemploy", "lsales", "lavgsal", "lscrap", "hrsemp"]
    return jobtraining.load()[["fcode", "year", "union", "grant", *columns]], "fcode", "year", columns


def simulated() -> Panel:
    """150 groups over 8 times: groups differ, what all share moves, and the rest remembers its past (correlation .8)."""
    rng, n_groups, n_times = np.random.default_rng(5), 150, 8

    def series(between: float, within: float) -> np.ndarray:
        rest = rng.normal(size=(n_groups, n_times))
        for k in range(1, n_times):
            rest[:, k] = 0.8 * rest[:, k - 1] + 0.6 * rest[:, k]
        return between * rng.normal(size=(n_groups, 1)) + within * rest + 0.3 * rng.normal(size=n_times)

    x, z = series(1, 1), series(0.5, 1)
    y = 0.6 * x - 0.4 * z + series(1, 0.7)
    w = 0.5 * y + series(0.7, 0.7)
    table = pd.DataFrame({name: each.ravel() for name, each in zip("xzyw", (x, z, y, w), strict=True)})
    table.insert(0, "time", np.tile(np.arange(n_times), n_groups))
    table.insert(0, "group", np.repeat(np.arange(n_groups), n_times))
    return table, "group", "time", list("xzyw")


def one_by_one(panel: Panel, rng: np.random.Generator) -> np.ndarray:
    return rng.random((len(panel[0]), len(panel[3]))) < SHARE


def in_runs(panel: Panel, rng: np.random.Generator) -> np.ndarray:
    """About three tenths of a group's times in a row, column by column."""
    table, group, moment, columns = panel
    hidden = np.zeros((len(table), len(columns)), dtype=bool)
    for k in range(len(columns)):
        for rows in table.groupby(group, sort=False).indices.values():
            rows = rows[np.argsort(table[moment].to_numpy()[rows])]
            length = max(2, round(len(rows) * 0.3))
            if rng.random() < SHARE * len(rows) / length:
                begin = rng.integers(0, len(rows) - length + 1)
                hidden[rows[begin : begin + length], k] = True
    return hidden


def by(imputer: Callable[..., object], *, groups: bool = False, moments: bool = False) -> Fill:
    def fill(table: pd.DataFrame, group: str, moment: str, columns: list[str]) -> pd.DataFrame:  # noqa: ARG001
        return imputer(groups=group if groups else None, time=moment if moments else None).fit_transform(table)

    return fill


def interpolated(table: pd.DataFrame, group: str, moment: str, columns: list[str]) -> pd.DataFrame:
    """Straight lines between a group's values, its first and last one beyond; the mean where it has none."""
    ordered = table.sort_values([group, moment])
    filled = ordered.groupby(group)[columns].transform(lambda one: one.interpolate(limit_direction="both"))
    return table.assign(**filled.fillna(table[columns].mean()).reindex(table.index))


def by_qolmat(name: str, **given: object) -> Fill:
    def fill(table: pd.DataFrame, group: str, moment: str, columns: list[str]) -> pd.DataFrame:
        from qolmat.imputations import imputers

        indexed = table.sort_values([group, moment]).set_index([group, moment], append=True)
        numbers = indexed[columns].astype(float).droplevel(0)
        found = getattr(imputers, name)(groups=(group,), **given).fit_transform(numbers)
        filled = pd.DataFrame(np.asarray(found), columns=columns, index=indexed.index.get_level_values(0))
        return table.assign(**filled.fillna(table[columns].mean()).reindex(table.index))

    return fill


AUTO = lambda **given: AutoImputer(random_state=0, n_jobs=2, **given)  # noqa: E731
WAYS: dict[str, Fill] = {
    "AutoImputer": by(AUTO),
    "… groups": by(AUTO, groups=True),
    "… groups and time": by(AUTO, groups=True, moments=True),
    "Gaussian": by(GaussianEMImputer),
    "… of groups and time": by(GaussianEMImputer, groups=True, moments=True),
    "interpolation": interpolated,
}
if find_spec("qolmat"):
    WAYS |= {
        "qolmat interpolation": by_qolmat("ImputerInterpolation", method="linear"),
        "qolmat EM (VAR)": by_qolmat("ImputerEM", model="VAR", method="mle", random_state=0),
    }


def error(filled: pd.DataFrame, complete: pd.DataFrame, hidden: np.ndarray, columns: list[str]) -> float:
    """RMSE in standard deviations of the columns, each of which counts the same."""
    squares = []
    for k, name in enumerate(columns):
        truth, holes = complete[name].to_numpy(float), hidden[:, k]
        if holes.any():
            squares.append(np.mean((filled[name].to_numpy(float) - truth)[holes] ** 2) / np.nanvar(truth))
    return float(np.sqrt(np.mean(squares)))


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    panels = {each.__name__: each for each in (grunfeld, munnell, wages, training, simulated)}
    print("| |", " | ".join(WAYS), "| with / without |")
    print("|---|" + "---|" * (len(WAYS) + 1))
    ratios = []
    for name in names or panels:
        panel = panels[name]()
        complete, group, moment, columns = panel[0].reset_index(drop=True), *panel[1:]
        for hide in (one_by_one, in_runs):
            errors = np.zeros((len(SEEDS), len(WAYS)))
            for s, seed in enumerate(SEEDS):
                hidden = hide((complete, *panel[1:]), np.random.default_rng(seed)) & complete[columns].notna().to_numpy()
                table = complete.copy()
                table[columns] = complete[columns].astype(float).mask(hidden)
                for k, fill in enumerate(WAYS.values()):
                    begun = time.perf_counter()
                    try:
                        errors[s, k] = error(fill(table, group, moment, columns), complete, hidden, columns)
                    except Exception as failure:
                        print(f"{list(WAYS)[k]} failed on {name}: {failure}", file=sys.stderr)
                        errors[s, k] = np.nan
                    print(f"{name} {hide.__name__} {list(WAYS)[k]} {time.perf_counter() - begun:.1f} s", file=sys.stderr)
            means = np.exp(np.log(errors).mean(axis=0))
            ratios.append(means[2] / means[0])
            cells = " | ".join(f"{each:.3f}" for each in means)
            print(f"| {name}, {hide.__name__.replace('_', ' ')} | {cells} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nGeometric mean of with / without: {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
