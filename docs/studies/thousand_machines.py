"""What fitting and imputing large tables takes on many machines: on paper, and in a simulation of the measured parts.

    python docs/studies/thousand_machines.py [--rows 1e9]

Measured here: processor seconds per row of each pass, seconds to combine what two parts found, bytes of that, the fit to the
sample. Assumed: a network of 10 Gbit/s per machine, 8 cores, a millisecond of the driver per task, five seconds to start
workers. On paper a pass is the largest of what cores, network and driver take, and then the combining, level by level. The
simulation hands every task to the core that is free first; tasks take 20 % more or less, and one in a hundred thrice as long.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import time
from dataclasses import dataclass

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pyarrow as pa

from otimpute.baselines import GaussianEMImputer
from otimpute.estimator.scan_fit import SumPass
from otimpute.streams import Survey

N_COLUMNS, N_MEASURED, BATCH = 20, 200_000, 1 << 15
COMBINED = 16  # states that become one, as in otimpute.distributed.parts
CORES, BYTES_PER_SECOND, DISPATCH, START = 8, 1.25e9, 1e-3, 5.0
ROWS_PER_TASK = 1_000_000


@dataclass(frozen=True)
class Pass:
    """One reading of all rows."""

    name: str
    seconds_per_row: float  # of a core
    bytes_per_row: float  # through a machine's network
    state_bytes: float  # what is found in a part
    seconds_to_combine: float  # two of these


@dataclass(frozen=True)
class Parts:
    """What was measured."""

    passes: tuple[Pass, ...]
    sample_fit: float
    model_bytes: int


def measure() -> Parts:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_MEASURED, N_COLUMNS)) @ rng.normal(size=(N_COLUMNS, N_COLUMNS))
    table = pa.table({f"c{k}": pa.array(X[:, k], mask=rng.random(N_MEASURED) < 0.2) for k in range(N_COLUMNS)})
    batches, row_bytes = table.to_batches(max_chunksize=BATCH), table.nbytes / N_MEASURED

    survey = Survey(table.schema, marker=math.nan, seed=0, sample_rows=50_000, min_observed=1000)
    sample = table.slice(0, 50_000)
    imputer = GaussianEMImputer()
    fit = seconds(lambda: imputer.fit(sample))
    sums = SumPass(imputer, table.schema)
    passes = []
    for name, one in (("survey", survey), ("sums", sums)):
        state = one.fold(batches)
        combine = seconds(lambda one=one, state=state: one.combine([state] * 4)) / 4
        passes.append(Pass(name, seconds(lambda one=one: one.fold(batches)) / N_MEASURED, row_bytes, len(state), combine))
    impute = seconds(lambda: list(imputer.transform_batches(batches))) / N_MEASURED
    passes.append(Pass("impute", impute, 2 * row_bytes, 0, 0))  # read and written
    return Parts(tuple(passes), fit, len(imputer.to_bytes()))


def seconds(work: object, repeats: int = 3) -> float:
    """Of this process's processor, the least of a few."""
    work()  # type: ignore[operator]
    best = math.inf
    for _ in range(repeats):
        begun = time.process_time()
        work()  # type: ignore[operator]
        best = min(best, time.process_time() - begun)
    return best


def on_paper(one: Pass, n_rows: float, machines: int) -> float:
    """Seconds of a pass."""
    n_tasks = math.ceil(n_rows / ROWS_PER_TASK)
    rows_of_a_task = n_rows / n_tasks
    task = max(rows_of_a_task * one.seconds_per_row, CORES * rows_of_a_task * one.bytes_per_row / BYTES_PER_SECOND)
    took = max(math.ceil(n_tasks / (machines * CORES)) * task, n_tasks * DISPATCH + task)
    while one.state_bytes:
        at_once = min(n_tasks, COMBINED)
        n_tasks = math.ceil(n_tasks / COMBINED)
        waves = math.ceil(n_tasks / (machines * CORES))
        took += waves * at_once * (one.seconds_to_combine + one.state_bytes / BYTES_PER_SECOND)
        if n_tasks == 1:
            break
    return took


def simulated(one: Pass, n_rows: float, machines: int, seed: int = 0) -> float:
    """Seconds of a pass, task by task."""
    rng = np.random.default_rng(seed)
    n_tasks = math.ceil(n_rows / ROWS_PER_TASK)
    rows_of_a_task = n_rows / n_tasks
    task = max(rows_of_a_task * one.seconds_per_row, CORES * rows_of_a_task * one.bytes_per_row / BYTES_PER_SECOND)
    ready = _run(np.full(n_tasks, task), np.zeros(n_tasks), machines * CORES, rng)
    each = one.seconds_to_combine + one.state_bytes / BYTES_PER_SECOND
    while one.state_bytes and len(ready) > 1:
        groups = [np.sort(ready)[begin : begin + COMBINED] for begin in range(0, len(ready), COMBINED)]  # who is ready first
        waits, works = np.array([group.max() for group in groups]), np.array([len(group) * each for group in groups])
        ready = _run(works, waits, machines * CORES, rng)
    return float(ready.max())


def _run(works: np.ndarray, waits: np.ndarray, n_cores: int, rng: np.random.Generator) -> np.ndarray:
    """When tasks are done that wait for something, are handed out one by one, and take as long as they do."""
    works = works * rng.uniform(0.8, 1.2, len(works)) * np.where(rng.random(len(works)) < 0.01, 3, 1)
    free = [0.0] * min(n_cores, len(works))
    driver, done = 0.0, np.empty(len(works))
    for k in np.argsort(waits, kind="stable"):
        driver = max(driver, waits[k]) + DISPATCH
        done[k] = max(heapq.heappop(free), driver) + works[k]
        heapq.heappush(free, done[k])
    return done


def moved(parts: Parts, n_rows: float, machines: int) -> tuple[float, float]:
    """Bytes that go to and from machines other than rows: through all of them, and through the driver."""
    n_tasks = math.ceil(n_rows / ROWS_PER_TASK)
    everywhere, driver = 0.0, 2.0 * machines * parts.model_bytes  # the model goes out for the sums, and to impute
    for one in parts.passes:
        left = n_tasks
        while left > COMBINED:
            everywhere += left * one.state_bytes
            left = math.ceil(left / COMBINED)
        driver += left * one.state_bytes
    return everywhere + driver, driver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e9)
    n_rows = parser.parse_args().rows
    parts = measure()
    for one in parts.passes:
        print(
            f"{one.name}: {1e6 * one.seconds_per_row:.2f} µs of a core per row, {one.state_bytes / 1e6:.2f} MB per part, "
            f"combined in {1e3 * one.seconds_to_combine:.1f} ms"
        )
    print(f"fit to the sample: {parts.sample_fit:.1f} s; model: {parts.model_bytes / 1e6:.2f} MB\n")
    print(f"{n_rows:.0e} rows of {N_COLUMNS} doubles, {CORES} cores a machine; seconds on paper (simulated)")
    print("| machines | fit | impute | rows/s and core, both | bytes beside rows | of these through the driver |")
    print("|---|---|---|---|---|---|")
    for machines in (1, 10, 100, 1000, 10_000):
        times = []
        for how in (on_paper, simulated):
            *learn, impute = [how(one, n_rows, machines) for one in parts.passes]
            times.append((START + parts.sample_fit + sum(learn), START + impute))
        (fit, impute), (fit_simulated, impute_simulated) = times
        everything, driver = moved(parts, n_rows, machines)
        speed = n_rows / (fit + impute) / (machines * CORES)
        print(
            f"| {machines:,} | {fit:,.0f} ({fit_simulated:,.0f}) | {impute:,.0f} ({impute_simulated:,.0f}) | {speed:,.0f} "
            f"| {everything / 1e9:.1f} GB | {driver / 1e9:.2f} GB |"
        )


if __name__ == "__main__":
    main()
