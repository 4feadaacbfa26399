"""What `AutoImputer` costs: to fit, on several cores, to apply to new rows, to store, and to start.

    python perf/auto.py [fit cores apply start] [--old CHECKOUT] [--sizes 500x15 ...] [--no-peers]
    python perf/auto.py cores --sizes 20000x30 --threads 1 2 4 8 16 [--repeat 3]

fit     CPU seconds of a fit on one thread: ours, those of the version in CHECKOUT (``git worktree add CHECKOUT 0d07df2``),
        ICE's and missForest's (100 trees; only on tables where it takes minutes, not hours), and the RMSE of all
cores   seconds of a fit on so many threads, by default one and all cores (the shortest of ``--repeat`` fits); how many times as
        much the machine does with the most threads at best: as many fits on one thread each side by side, which share nothing
        but memory and caches; CPU seconds over those on one thread; the share of one thread's time that is spent outside of
        work that threads share; whether all give the same bits
apply   new rows a CPU second for a model of 3,000 × 20, beside ICE and Gaussian EM; their RMSE; the size of the model file
start   seconds of a first fit with nothing compiled, and of ``otimpute impute`` of a small CSV file, first and second run

Made-up tables (six factors, bent, with noise; 20 % missing), each measured in a process of its own, one after the other.
Limits of time are measured by perf/time_limit.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

SIZES = ("500x15", "2000x15", "8000x15", "1000x60", "2000x100")
LARGEST_FOR_MISSFOREST = 30_000  # cells
N_NEW = 20_000
SOURCES = Path(__file__).parents[1] / "src"


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A complete table and where it is incomplete."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n, min(6, d)))
    X = np.tanh(factors @ rng.normal(size=(factors.shape[1], d))) + 0.3 * rng.normal(size=(n, d))
    return X / X.std(axis=0), rng.random(X.shape) < 0.2


def make(name: str, **given: object) -> object:
    from otimpute import AutoImputer
    from otimpute.baselines import GaussianEMImputer, ICEImputer, MissForestImputer

    if name == "auto":
        return AutoImputer(random_state=0, **given)
    return {
        "ice": ICEImputer,
        "gaussian_em": GaussianEMImputer,
        "missforest": lambda: MissForestImputer(n_estimators=100, random_state=0),
    }[name]()


def compile_all(name: str) -> None:
    X, missing = table(60, 5)
    incomplete = np.where(missing, np.nan, X)
    make(name).fit(incomplete).transform(incomplete[:3])


def rmse(completed: np.ndarray, X: np.ndarray, missing: np.ndarray) -> float:
    return float(np.sqrt(((completed - X)[missing] ** 2).mean()))


def fit(name: str, n: int, d: int, n_jobs: int | None = None) -> dict[str, float]:
    compile_all(name)
    X, missing = table(n, d)
    imputer = make(name) if n_jobs is None else make(name, n_jobs=n_jobs)
    wall, cpu = time.perf_counter(), time.process_time()
    completed = imputer.fit_transform(np.where(missing, np.nan, X))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "rmse": rmse(completed, X, missing), "bits": hash(completed.tobytes())}


def outside_of_shared_work(n: int, d: int) -> dict[str, float]:
    """The share of a fit's time on one thread that other threads could not take over."""
    from otimpute._threads import Workers

    compile_all("auto")
    map_plainly, shared, inside = Workers.map, 0.0, [0]  # [-1]: jobs inside of the one that is being done

    def map_and_measure(workers: Workers, task: object, items: object, **most: int | None) -> list:
        nonlocal shared
        inside[-1] += 1
        inside.append(0)
        begun = time.thread_time()
        results = map_plainly(workers, task, items, **most)
        shared += 0.0 if inside.pop() else time.thread_time() - begun
        return results

    Workers.map = map_and_measure
    X, missing = table(n, d)
    begun = time.thread_time()
    make("auto", n_jobs=1).fit(np.where(missing, np.nan, X))
    return {"share": 1 - shared / (time.thread_time() - begun)}


def apply(name: str, n: int, d: int) -> dict[str, float]:
    compile_all(name)
    X, missing = table(n + N_NEW, d)
    incomplete = np.where(missing, np.nan, X)
    imputer = make(name).fit(incomplete[:n])
    new = slice(n, n + N_NEW)
    imputer.transform(incomplete[new][:10])
    cpu = time.process_time()
    completed = imputer.transform(incomplete[new])
    cpu = time.process_time() - cpu
    with tempfile.TemporaryDirectory() as folder:
        imputer.save(Path(folder) / "model.otimpute")
        size = (Path(folder) / "model.otimpute").stat().st_size
    return {"rows_per_second": N_NEW / cpu, "rmse": rmse(completed, X[new], missing[new]), "megabytes": size / 1e6}


def start() -> dict[str, float]:
    begun = time.perf_counter()
    from otimpute import AutoImputer

    X, missing = table(200, 4)
    AutoImputer(random_state=0).fit(np.where(missing, np.nan, X))
    return {"wall": time.perf_counter() - begun}


WORK = {"fit": fit, "outside": outside_of_shared_work, "apply": apply, "start": start}


def measure(what: str, *arguments: object, sources: Path = SOURCES, **more: str) -> dict[str, float]:
    """In a process of its own, with the sources of some version."""
    command = [sys.executable, __file__, "--work", json.dumps([what, *arguments])]
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONHASHSEED": "0", **more}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def show_fit(sizes: list[str], old: Path | None, with_peers: bool) -> None:
    print("\n| rows × columns | AutoImputer | before | before / now | ICE | missForest | RMSE now, before, ICE, missForest |")
    print("|" + "---|" * 7)
    ratios, wide = [], []
    for size in sizes:
        n, d = map(int, size.split("x"))
        found = {"now": measure("fit", "auto", n, d)}
        if old:
            found["before"] = measure("fit", "auto", n, d, sources=old / "src")
            ratios.append(found["before"]["cpu"] / found["now"]["cpu"])
            wide += ratios[-1:] if d > 50 else []
        if with_peers:
            found["ice"] = measure("fit", "ice", n, d)
            if n * d <= LARGEST_FOR_MISSFOREST:
                found["missforest"] = measure("fit", "missforest", n, d)
        seconds = {who: f"{each['cpu']:.2f} s" for who, each in found.items()}
        cells = [seconds.get("now"), seconds.get("before", "–"), f"{ratios[-1]:.1f}" if old else "–"]
        cells += [seconds.get("ice", "–"), seconds.get("missforest", "–")]
        errors = ", ".join(
            f"{found[who]['rmse']:.3f}" if who in found else "–" for who in ("now", "before", "ice", "missforest")
        )
        print(f"| {n:,} × {d} | " + " | ".join(map(str, cells)) + f" | {errors} |", flush=True)
    if old:
        print(f"\nbefore / now: geometric mean {_mean(ratios):.1f}" + (f", of the wide ones {_mean(wide):.1f}" if wide else ""))


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def show_cores(sizes: list[str], threads: list[int], repeat: int) -> None:
    columns = [f"{k} thread{'s' * (k > 1)}" for k in threads]
    print(
        f"\n| rows × columns | {' | '.join(columns)} | times as fast | at best | CPU | not shared | same bits |\n|"
        + "---|" * (len(threads) + 6)
    )
    for size in sizes:
        n, d = map(int, size.split("x"))
        fits = [[measure("fit", "auto", n, d, k) for k in threads] for _ in range(repeat)]  # in turn: a machine has its moods
        seconds = [min(each["wall"] for each in of_threads) for of_threads in zip(*fits, strict=True)]
        ratios = ", ".join(f"{seconds[0] / each:.2f}" for each in seconds[1:])
        same = "yes" if len({each["bits"] for one in fits for each in one}) == 1 else "no"
        cpu = [min(each["cpu"] for each in of_threads) for of_threads in zip(*fits, strict=True)]
        busier = ", ".join(f"× {each / cpu[0]:.2f}" for each in cpu[1:])
        outside = measure("outside", n, d)["share"]
        shown = " | ".join(f"{each:.2f} s" for each in seconds)
        best = at_best(n, d, threads[-1], seconds[0])
        print(f"| {n:,} × {d} | {shown} | {ratios} | {best:.2f} | {busier} | {outside:.1%} | {same} |", flush=True)


def at_best(n: int, d: int, k: int, alone: float) -> float:
    """How many times as much ``k`` processes with a fit each do as a single one, which takes ``alone`` seconds."""
    with ThreadPoolExecutor(k) as pool:
        side_by_side = list(pool.map(lambda _: measure("fit", "auto", n, d, 1)["wall"], range(k)))
    return alone * sum(1 / each for each in side_by_side)


def show_apply(old: Path | None) -> None:
    print("\n| model of 3,000 × 20 | new rows a CPU second | RMSE on them | file |\n|---|---|---|---|")
    versions = {"AutoImputer": ("auto", SOURCES), "ICE": ("ice", SOURCES), "Gaussian EM": ("gaussian_em", SOURCES)}
    if old:
        versions["AutoImputer before"] = ("auto", old / "src")
    for label, (name, sources) in versions.items():
        found = measure("apply", name, 3000, 20, sources=sources)
        cells = f"{found['rows_per_second']:,.0f} | {found['rmse']:.4f} | {found['megabytes']:.1f} MB"
        print(f"| {label} | {cells} |", flush=True)


def show_start(old: Path | None) -> None:
    print("\n| | first fit, nothing compiled | `otimpute impute`, first run | second run |\n|---|---|---|---|")
    X, missing = table(200, 4)
    for label, sources in {"now": SOURCES, **({"before": old / "src"} if old else {})}.items():
        with tempfile.TemporaryDirectory() as folder:
            first = measure("start", sources=sources, NUMBA_CACHE_DIR=str(Path(folder) / "fit"))["wall"]
            given, out = Path(folder) / "in.csv", Path(folder) / "out.csv"
            rows = [
                ",".join("" if m else f"{x:.4f}" for x, m in zip(*both, strict=True)) for both in zip(X, missing, strict=True)
            ]
            given.write_text("\n".join(["a,b,c,d", *rows]) + "\n")
            command = [sys.executable, "-m", "otimpute.cli", "impute", str(given), "-o", str(out), "--force"]
            environment = {**os.environ, "PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(Path(folder) / "shell")}
            runs = []
            for _ in range(2):
                begun = time.perf_counter()
                subprocess.run(command, env=environment, capture_output=True, check=True)
                runs.append(time.perf_counter() - begun)
        print(f"| {label} | {first:.1f} s | {runs[0]:.1f} s | {runs[1]:.1f} s |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["fit", "cores", "apply", "start"])
    parser.add_argument("--old", type=Path, help="a checkout of another version")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES))
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, os.cpu_count() or 1])
    parser.add_argument("--repeat", type=int, default=3, help="fits per number of threads")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        warnings.simplefilter("ignore")
        what, *arguments = json.loads(asked.work)
        print(json.dumps(WORK[what](*arguments)))
        return
    for part in asked.parts:
        if part == "fit":
            show_fit(asked.sizes, asked.old, not asked.no_peers)
        elif part == "cores":
            show_cores(asked.sizes, asked.threads, asked.repeat)
        elif part == "apply":
            show_apply(asked.old)
        elif part == "start":
            show_start(asked.old)
        else:
            parser.error(f"parts are fit, cores, apply and start, got {part!r}")


if __name__ == "__main__":
    main()
