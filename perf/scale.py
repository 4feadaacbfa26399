"""Tables larger than memory: what fitting and imputing them costs, side by side in one run.

    python perf/scale_data.py DATA 1e7         # writes about 1.5 GB
    python perf/scale.py local DATA            # rows a second, one worker and two, a fit beside reading the table
    python perf/scale.py engines [ray spark dask]  # the same on engines, beside local streams
    python perf/scale.py memory DATA           # peak memory of a fit to a hundred files (linked, if DATA has fewer)

Times of a busy machine say little: ratios of processor seconds are printed beside them, and the best of several repeats.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import scale_engines

import otimpute
from otimpute import AutoImputer
from otimpute.baselines import GaussianEMImputer, GaussianMixtureImputer, MeanImputer
from otimpute.distributed import impute_files

REPEATS = 3
BATCH = 1 << 17
FILES_OF_WORKERS = {"gaussian_em": 64, "auto": 10}  # enough that the start of a process, some two seconds, does not decide


def timed(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, float, Any]:
    """The fewest seconds that work took, by the clock and of processors (those of children too)."""
    best = [float("inf")] * 2
    result = None
    for _ in range(repeats):
        begun = time.perf_counter(), _processor()
        result = work()
        best = [
            min(least, now - then) for least, now, then in zip(best, (time.perf_counter(), _processor()), begun, strict=True)
        ]
    return best[0], best[1], result


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def read(data: Any) -> int:
    return sum(batch.num_rows for batch in data.to_batches(batch_size=BATCH))


def local(folder: Path) -> None:
    files = sorted(folder.glob("part-*.parquet"))
    first = pq.read_table(files[0])
    models = {
        "mean": MeanImputer(),
        "gaussian_em": GaussianEMImputer(),
        "auto": AutoImputer(random_state=0),
    }
    batches = first.slice(0, 4 * BATCH).to_batches(max_chunksize=BATCH)
    n_rows = sum(batch.num_rows for batch in batches)
    print(f"transform_batches, {len(first.column_names)} columns, one core")
    for name, imputer in models.items():
        imputer.fit(first.slice(0, 20_000))
        some = batches if name != "auto" else batches[:1]
        _, seconds, _ = timed(lambda some=some, imputer=imputer: list(imputer.transform_batches(some)))
        print(f"  {name:12} {sum(batch.num_rows for batch in some) / seconds:12,.0f} rows a second and core")

    for name, n_files in FILES_OF_WORKERS.items():
        two_workers(name, models[name].to_bytes(), files, n_files)

    data = ds.dataset([str(file) for file in files])
    wall, processor, n_rows = timed(lambda: read(data))
    print(f"reading {n_rows:,} rows: {wall:.2f} s, {processor:.2f} processor seconds")
    sample = pq.read_table(files[0]).slice(0, 50_000)
    for name, imputer, rounds in (
        ("mean", MeanImputer(), 0), ("mean", MeanImputer(), 1),
        ("gaussian_em", GaussianEMImputer(), 0), ("gaussian_em", GaussianEMImputer(), 1),
        ("gaussian_mixture", GaussianMixtureImputer(random_state=0), 0),
        ("gaussian_mixture", GaussianMixtureImputer(random_state=0), 1),
    ):  # fmt: skip
        alone = timed(lambda imputer=imputer: imputer.fit(sample), 2)
        whole = timed(lambda imputer=imputer, rounds=rounds: imputer.fit(otimpute.scan(data, rounds=rounds)), 2)
        ratios = [(total - part) / once for total, part, once in zip(whole[:2], alone[:2], (wall, processor), strict=True)]
        print(
            f"  fit of {name}, rounds={rounds}: {whole[0]:.1f} s, {whole[1]:.1f} processor seconds; without the sample's, "
            f"{ratios[0]:.1f} times reading by the clock, {ratios[1]:.1f} times in processor seconds"
        )


def two_workers(name: str, model: bytes, files: list[Path], n_files: int) -> None:
    """Seconds that one worker and two take for some files, links to the same ones where there are not as many."""
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / "in"
        source.mkdir()
        for k in range(n_files):
            (source / f"part-{k:04}.parquet").symlink_to(files[k % len(files)].resolve())
        walls = {}
        for n_workers in (1, 2):
            out = Path(temporary) / f"out-{n_workers}"
            wall, processor, summary = timed(
                lambda out=out, n_workers=n_workers: impute_files(model, str(source / "*"), out, n_workers=n_workers), 1
            )
            walls[n_workers] = wall
            n_rows = sum(outcome.n_rows for outcome in summary.done)
            print(f"  {name}, {n_workers} workers: {wall:.1f} s, {processor:.1f} processor seconds, {n_rows:,} rows")
        print(f"  {name}: two workers are {walls[1] / walls[2]:.2f} times as fast as one")


def memory(folder: Path, n_files: int = 100) -> None:
    files = sorted(folder.glob("part-*.parquet"))
    code = (
        "import sys, resource, time, otimpute, pyarrow.dataset as ds; from otimpute.baselines import GaussianEMImputer\n"
        "files = open(sys.argv[1]).read().split()[:int(sys.argv[2])]; begun = time.perf_counter()\n"
        "imputer = GaussianEMImputer().fit(ds.dataset(files))\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        "print(f'{imputer.scan_summary_.n_rows:,} rows: at most {peak:.2f} GiB, {time.perf_counter() - begun:.0f} s')"
    )
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        linked = []
        for k in range(n_files):
            path = Path(temporary) / f"{k:04}.parquet"
            path.hardlink_to(files[k % len(files)])
            linked.append(str(path))
        (Path(temporary) / "list").write_text("\n".join(linked))
        print(f"{len(files)} different files, linked where more are asked for")
        for n in (n_files // 10, n_files):
            subprocess.run([sys.executable, "-c", code, str(Path(temporary) / "list"), str(n)], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "engines":
        scale_engines.main(sys.argv[2:])
        sys.exit()
    {"local": local, "memory": memory}[sys.argv[1]](Path(sys.argv[2]))
