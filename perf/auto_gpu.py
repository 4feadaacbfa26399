"""`AutoImputer` on the CPU and on a GPU: seconds, errors, and how long each expert took.

    python perf/auto_gpu.py [--sizes 20000x30 1000000x30] [--jobs -1] [--devices cpu cuda]

The tables of perf/auto.py (six factors, bent, with noise; 20 % missing). Both devices first fit a small table, so that code
is compiled and the GPU started. Experts run side by side: their seconds add up to more than the fit takes. Without a GPU,
TRITON_INTERPRET=1 has torch's CPU stand in for one, which tests the script and measures nothing.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

from auto import rmse, table  # isort: skip (it sets the threads of BLAS, before NumPy is loaded)

import numpy as np

from otimpute import AutoImputer
from otimpute.auto import _experts

SIZES = ("20000x30", "1000000x30")
SMALL = 2000  # rows of the table fitted first


def note_seconds() -> dict[str, list[float]]:
    """By expert, the seconds of its fits from now on: those of the trial, then that to the whole table."""
    seconds: dict[str, list[float]] = defaultdict(list)
    fit_expert = _experts._fit_expert

    def noting(task, clock):
        fit = fit_expert(task, clock)
        seconds[task.key if isinstance(task.key, str) else task.key[0]].append(fit.seconds)
        return fit

    _experts._fit_expert = noting
    return seconds


def peak_of_gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        return "–"
    peak = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return f"{peak:.1f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    seconds = note_seconds()
    print(
        "| rows × columns | device | first fit | fit and impute | CPU | RMSE | memory of the GPU | experts: trial, in the end |"
    )
    print("|" + "---|" * 8)
    for size in asked.sizes:
        n, d = map(int, size.split("x"))
        X, missing = table(n, d)
        incomplete = np.where(missing, np.nan, X)
        found = {}
        for device in asked.devices:
            begun = time.perf_counter()
            AutoImputer(random_state=0, n_jobs=asked.jobs, device=device).fit_transform(incomplete[:SMALL])
            first = time.perf_counter() - begun
            seconds.clear()
            if device == "cuda":
                peak_of_gpu()
            wall, cpu = time.perf_counter(), time.process_time()
            found[device] = AutoImputer(random_state=0, n_jobs=asked.jobs, device=device).fit_transform(incomplete)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            experts = "; ".join(f"{who} {', '.join(f'{each:.2f}' for each in taken)}" for who, taken in seconds.items())
            memory = peak_of_gpu() if device == "cuda" else "–"
            cells = f"{first:.2f} s | {wall:.2f} s | {cpu:.1f} s | {rmse(found[device], X, missing):.5f} | {memory} | {experts}"
            print(f"| {n:,} × {d} | {device} | {cells} |", flush=True)
        if len(found) == 2:
            one, other = found.values()
            apart = np.abs(one - other)[missing]
            print(f"\nimputed values apart: {np.sqrt((apart**2).mean()):.1e} (root mean square), at most {apart.max():.1e}\n")


if __name__ == "__main__":
    main()
