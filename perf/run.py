"""Speed and quality of our imputers beside their peers, in one run, as ratios.

    python perf/run.py [step round_robin fit scale memory auto quality]
                       [--data FOLDER_OF_UCI_CSV] [--sets NAME ...] [--seeds 5] [--json FILE]

step     time per gradient step against the paper's loop on geomloss, one thread each
round_robin
         time per update of a column's model (10 pairs of batches) against the paper's Algorithm 3 on geomloss, likewise
fit      a whole fit on breast cancer against scikit-learn's IterativeImputer at its defaults
scale    time per step at 10⁶ rows over 10⁴ rows, same columns
memory   a 10⁶ × 30 table with 20 % missing: time and peak memory over the table's own size
auto     a whole AutoImputer fit against missForest with 100 trees, one thread each, on --sets (needs --data)
quality  our defaults and the paper preset against that loop at 2000 steps; bar 1.00 for each score of the defaults, goal .93
         for MAE and RMSE (needs --data, or the variable OTIMPUTE_DATA; about half an hour)
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from otimpute import AutoImputer, RoundRobinImputer, SinkhornImputer
from otimpute.baselines import MissForestImputer
from otimpute.metrics import energy_distance, mae, rmse, wasserstein2

QUALITY_SETS = [
    "airfoil_self_noise", "breast_cancer_diagnostic", "concrete_compression", "connectionist_bench_sonar",
    "connectionist_bench_vowel", "ecoli", "glass", "ionosphere", "iris", "wine",
]  # fmt: skip
SCORES = {"MAE": mae, "RMSE": rmse, "W2": wasserstein2, "energy": energy_distance}


def whiten(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)


def punch(X: np.ndarray, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    missing = np.random.default_rng([seed, round(100 * rate)]).random(X.shape) < rate
    return np.where(missing, np.nan, X), missing


def geometric_mean(ratios: list) -> np.ndarray:
    return np.exp(np.mean(np.log(ratios), axis=0))


def race(
    X: np.ndarray, ours: Callable[[int], BaseEstimator], peer: Callable[[np.ndarray, int], float], n_repeats: int = 5
) -> tuple[float, float]:
    """Interleave short runs of both, from seeds, and take the median time per step: a busy machine disturbs both alike."""
    ours(0).set_params(callbacks=[lambda _: True]).fit(X)  # compile, and stop at the first word
    our_times, peer_times = [], []
    for repeat in range(n_repeats):
        peer_times.append(peer(X, repeat))
        seen: list = []
        ours(repeat).set_params(callbacks=[seen.append]).fit(X)
        first, last = seen[len(seen) // 4], seen[-1]
        our_times.append((last.seconds - first.seconds) / (last.step - first.step))
    return float(np.median(our_times)), float(np.median(peer_times))


def measure_step() -> dict:
    from geomloss_loop import impute

    result = {}
    for name, load in {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}.items():
        X, _ = punch(whiten(load().data), 0.3, 0)
        ours, peer = race(
            X,
            lambda seed: SinkhornImputer.paper(max_steps=4000, random_state=seed),
            lambda X, seed: impute(X, 60, seed)[1],
        )
        result[name] = {"ours_us": 1e6 * ours, "peer_us": 1e6 * peer, "ratio": peer / ours}
        print(f"step, {name}: ours {1e6 * ours:.0f} µs, geomloss {1e6 * peer:.0f} µs, {peer / ours:.0f}×")
    result["geometric mean"] = float(geometric_mean([entry["ratio"] for entry in result.values()]))
    print(f"step, geometric mean: {result['geometric mean']:.0f}× (bar 100×, goal 200×)")
    return result


def measure_round_robin() -> dict:
    """Against the published loop, pair by pair, and against one that gives geomloss the pairs of an update together."""
    from geomloss_round_robin import impute

    result: dict = {}
    for how in ("pair by pair", "together"):
        result[how] = {}
        for name, load in {"wine": load_wine, "breast cancer": load_breast_cancer}.items():
            X, _ = punch(whiten(load().data), 0.3, 0)
            for model in ("linear", "mlp"):
                ours, peer = race(
                    X,
                    lambda seed, model=model: RoundRobinImputer.paper(model, max_cycles=2, random_state=seed),
                    lambda X, seed, model=model, how=how: impute(X, model, seed, 1, 3, 4, how == "together")[1],
                )
                case = f"{name}, {model}"
                result[how][case] = {"ours_ms": 1e3 * ours, "peer_ms": 1e3 * peer, "ratio": peer / ours}
                print(f"round_robin, {how}, {case}: ours {1e3 * ours:.2f} ms, geomloss {1e3 * peer:.0f} ms, {peer / ours:.0f}×")
        mean = float(geometric_mean([entry["ratio"] for entry in result[how].values()]))
        result[how]["geometric mean"] = mean
        print(f"round_robin, {how}, geometric mean: {mean:.0f}×" + (" (bar 30×)" if how == "pair by pair" else ""))
    return result


def measure_fit() -> dict:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    X, _ = punch(load_breast_cancer().data, 0.3, 0)
    SinkhornImputer(max_steps=5, random_state=0).fit(X)  # compile
    ours, theirs = [], []
    for repeat in range(3):
        for imputer, times in ((SinkhornImputer(random_state=repeat), ours), (IterativeImputer(random_state=repeat), theirs)):
            begun = time.perf_counter()
            imputer.fit_transform(X)
            times.append(time.perf_counter() - begun)
    result = {"ours_s": float(np.median(ours)), "peer_s": float(np.median(theirs))}
    result["ratio"] = result["ours_s"] / result["peer_s"]
    print(f"fit, breast cancer: ours {result['ours_s']:.2f} s, IterativeImputer {result['peer_s']:.2f} s: "
          f"{result['ratio']:.2f} of its time (bar 3)")  # fmt: skip
    return result


def long_table(n: int, d: int = 30, seed: int = 0) -> np.ndarray:
    """Correlated columns, 20 % missing, built in place so that the builder's own memory does not count."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d))
    loadings = rng.normal(size=(4, d))
    for begin in range(0, n, 50_000):
        block = X[begin : begin + 50_000]
        block[:] = rng.normal(size=(len(block), 4)) @ loadings + rng.normal(size=block.shape)
        block[rng.random(block.shape) < 0.2] = np.nan
    return X


def measure_scale() -> dict:
    """Medians of interleaved stretches of the same fits at both sizes."""
    tables = {n: long_table(n) for n in (10_000, 1_000_000)}
    times: dict[int, list] = {n: [] for n in tables}
    SinkhornImputer(max_steps=5, random_state=0).fit(tables[10_000])  # compile
    for _ in range(3):
        for n, X in tables.items():
            seen: list = []
            SinkhornImputer(
                random_state=0, max_steps=400_000, tol=0, callbacks=[seen.append, lambda progress: progress.seconds > 4]
            ).fit(X)
            later = [p for p in seen if p.step > 500]
            per_step = [(b.seconds - a.seconds) / (b.step - a.step) for a, b in itertools.pairwise(later)]
            times[n].append(np.median(per_step))
    small, large = (1e6 * float(np.median(times[n])) for n in tables)
    print(f"scale: {small:.0f} µs a step at 10⁴ rows, {large:.0f} µs at 10⁶: {large / small:.2f}× (bar 1.5, goal 1.2)")
    return {"small_us": small, "large_us": large, "ratio": large / small}


MEMORY = """
import json, pathlib, sys, time
sys.path.insert(0, {here!r})
from run import long_table
from otimpute import SinkhornImputer
X = long_table(1_000_000)
begun = time.perf_counter()
imputer = SinkhornImputer(random_state=0)
imputer.fit_transform(X)
# The kernel's high-water mark of this process alone (getrusage would inherit the parent's); Linux only.
status = pathlib.Path("/proc/self/status").read_text()
peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
print(json.dumps({{"seconds": time.perf_counter() - begun, "peak_bytes": peak, "table_bytes": X.nbytes,
                   "steps": imputer.n_steps_, "converged": imputer.converged_}}))
"""


def measure_memory() -> dict:
    code = MEMORY.format(here=str(Path(__file__).parent))
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    result["ratio"] = result["peak_bytes"] / result["table_bytes"]
    print(f"memory, 10⁶ × 30: {result['seconds']:.0f} s, {result['steps']} steps, peak {result['peak_bytes'] / 2**20:.0f} MiB, "
          f"{result['ratio']:.2f}× the table (bar 5)")  # fmt: skip
    return result


def measure_auto(folder: Path, names: list[str]) -> dict:
    """Both fill the same table in turn; a busy machine disturbs both alike."""
    tables = {name: np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1) for name in names}
    AutoImputer(random_state=0).fit(punch(load_iris().data, 0.3, 0)[0])  # compile
    result: dict = {}
    for name, X in tables.items():
        X_incomplete, _ = punch(whiten(X), 0.3, 0)
        seconds = {}
        for who, imputer in (("ours_s", AutoImputer(random_state=0)), ("peer_s", MissForestImputer(random_state=0))):
            begun = time.perf_counter()
            imputer.fit_transform(X_incomplete)
            seconds[who] = time.perf_counter() - begun
        result[name] = {**seconds, "ratio": seconds["ours_s"] / seconds["peer_s"]}
        print(f"auto, {name}: ours {seconds['ours_s']:.2f} s, missForest {seconds['peer_s']:.2f} s: "
              f"{result[name]['ratio']:.2f} of its time", flush=True)  # fmt: skip
    ratios = [entry["ratio"] for entry in result.values()]
    print(f"auto: {float(geometric_mean(ratios)):.2f} of missForest's time (geometric mean), at most {max(ratios):.2f} (bar 2)")
    return result


def measure_quality(folder: Path, seeds: int, names: list[str]) -> dict:
    """Our defaults and the paper preset over the loop, all on the same tables; the loop and the preset take 2000 steps."""
    from geomloss_loop import impute

    result: dict = {}
    for name in names:
        X = whiten(np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1))
        scores: dict[str, list] = {"defaults": [], "paper preset": [], "loop": []}
        for seed in range(seeds):
            X_incomplete, missing = punch(X, 0.3, seed)
            imputed = {
                "defaults": SinkhornImputer(random_state=seed).fit_transform(X_incomplete),
                "paper preset": SinkhornImputer.paper(random_state=seed, max_steps=2000).fit_transform(X_incomplete),
                "loop": impute(X_incomplete, 2000, seed)[0],
            }
            for who, table in imputed.items():
                scores[who].append([score(X, table, missing) for score in SCORES.values()])
        result[name] = {who: np.mean(values, axis=0).tolist() for who, values in scores.items()}
        for who in ("defaults", "paper preset"):
            show_quality(name, who, np.divide(result[name][who], result[name]["loop"]))
    overall = {}
    for who in ("defaults", "paper preset"):
        ratios = geometric_mean([np.divide(entry[who], entry["loop"]) for entry in result.values()])
        overall[who] = dict(zip(SCORES, ratios.tolist(), strict=True))
        show_quality("geometric mean", who, ratios)
    return {**result, "geometric mean": overall}


def show_quality(name: str, who: str, ratios: np.ndarray) -> None:
    parts = ", ".join(f"{score} {ratio:.3f}" for score, ratio in zip(SCORES, ratios, strict=True))
    print(f"quality, {name}, {who} / loop: {parts}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", default=["step", "round_robin", "fit", "scale", "memory"])
    parser.add_argument("--data", type=Path, default=os.environ.get("OTIMPUTE_DATA"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=QUALITY_SETS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    measures = {
        "step": measure_step,
        "round_robin": measure_round_robin,
        "fit": measure_fit,
        "scale": measure_scale,
        "memory": measure_memory,
    }
    results = {}
    for which in arguments.which:
        if which in ("auto", "quality"):
            if arguments.data is None:
                sys.exit(f"{which} needs the UCI tables: pass --data or set OTIMPUTE_DATA")
            folder = Path(arguments.data)
            results[which] = (
                measure_auto(folder, arguments.sets)
                if which == "auto"
                else measure_quality(folder, arguments.seeds, arguments.sets)
            )
        else:
            results[which] = measures[which]()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
