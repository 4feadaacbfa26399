"""What the benchmarks on a GPU share: how they take the time, and what the card could do."""

import statistics
import time
from collections.abc import Callable

import torch

# An H200, per second: float32 outside tensor cores, tf32 inside, exponentials, bytes of memory.
FLOPS, TF32_FLOPS, EXPONENTIALS, BYTES = 67e12, 400e12, 16 * 132 * 1.75e9, 4.8e12


def median_seconds(run: Callable[[], object], repeats: int, *, dry: bool) -> float:
    """By CUDA events, after two runs to warm up; ``dry`` runs it once, by the clock on the wall."""
    if dry:
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun
    times = []
    for _ in range(repeats + 2):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        run()
        ended.record()
        ended.synchronize()
        times.append(begun.elapsed_time(ended) / 1e3)
    return statistics.median(times[2:])
