"""Seeds of an experiment side by side on a GPU: the paper's preset on the smaller of the 23 data sets, MCAR 30 %.

python perf/gpu_seeds.py --data FOLDER [--seeds 30] [--sets 20] [--cpu-every 4]

Tables are whitened, and holes drawn, as in the benchmark. Before it is timed, every set is fitted for a few steps, so that code
for its width is compiled; how long that took is told apart. The CPU fits the first seed of every fourth set, on one thread.
`--steps 2 --dry` runs it all in Triton's interpreter, for its syntax only.
"""

import argparse
import os
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", required=True, help="a folder of data sets as CSV files")
parser.add_argument("--seeds", type=int, default=30)
parser.add_argument("--sets", type=int, default=20)
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--cpu-every", type=int, default=4, help="compare every so many sets with the CPU")
parser.add_argument("--dry", action="store_true", help="without a GPU, by Triton's interpreter")
arguments = parser.parse_args()
if arguments.dry:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import numpy as np

from otimpute import SinkhornImputer, fit_transform_many
from otimpute.benchmark import Task
from otimpute.benchmark.run_task import whiten
from otimpute.datasets import dataset_card, list_datasets, load_dataset
from otimpute.imputers import side_by_side
from otimpute.imputers.sinkhorn import sinkhorn_imputer
from otimpute.metrics import mae
from otimpute.missingness import MCAR

WARM_UP_STEPS = 20  # more than a graph of steps has
RATE = 0.3


def main() -> None:
    smallest = sorted(list_datasets(), key=lambda name: dataset_card(name).n * dataset_card(name).d)[: arguments.sets]
    SinkhornImputer._compile()  # the CPU's code
    clock, warm_up, fits, differences = DescentClock(), 0.0, 0.0, []
    print("| set | rows × columns | seconds, all seeds | of that in descents | MAE | CPU: seconds, one seed | its MAE |")
    print("|---|---|---|---|---|---|---|")
    for k, name in enumerate(smallest):
        X = whiten(load_dataset(name, data_home=arguments.data).values)
        missing = [MCAR(RATE).sample(X, holes_of(name, seed)) for seed in range(arguments.seeds)]
        tables = [np.where(holes, np.nan, X) for holes in missing]
        seconds, _ = timed(lambda tables=tables: fit_all(tables, min(arguments.steps, WARM_UP_STEPS)))
        warm_up += seconds
        before = clock.seconds
        seconds, imputed = timed(lambda tables=tables: fit_all(tables, arguments.steps))
        fits += seconds
        errors = [mae(X, each, holes) for each, holes in zip(imputed, missing, strict=True)]
        on_cpu = " | "
        if k % arguments.cpu_every == 0:
            cpu_seconds, alone = timed(lambda table=tables[0]: imputer(0, arguments.steps, "cpu").fit_transform(table))
            error = mae(X, alone, missing[0])
            differences.append(abs(error - errors[0]))
            on_cpu = f"{cpu_seconds:.2f} | {error:.4f} (GPU: {errors[0]:.4f})"
        print(
            f"| {name} | {X.shape[0]} × {X.shape[1]} | {seconds:.2f} | {clock.seconds - before:.2f} | {np.mean(errors):.4f} "
            f"| {on_cpu} |",
            flush=True,
        )
    n_fits = arguments.seeds * len(smallest)
    print(
        f"\n{n_fits} fits of {arguments.steps} steps: {fits:.1f} s; before that, {warm_up:.1f} s of compiling and a few steps; "
        f"largest difference of MAE to the CPU {max(differences):.1e}, among {len(differences)} fits"
    )


class DescentClock:
    """Counts the seconds that fits spend in descents on the GPU."""

    def __init__(self) -> None:
        self.seconds = 0.0
        descend = side_by_side.descend_on_gpu

        def counted(*asked):
            seconds, outcomes = timed(lambda: descend(*asked))
            self.seconds += seconds
            return outcomes

        side_by_side.descend_on_gpu = sinkhorn_imputer.descend_on_gpu = counted


def timed(run):
    begun = time.perf_counter()
    result = run()
    return time.perf_counter() - begun, result


def holes_of(name: str, seed: int) -> np.random.Generator:
    return Task(name, "mcar", RATE, "sinkhorn_paper", "sinkhorn_paper", seed).generator_of_holes()


def imputer(seed: int, n_steps: int, device: str) -> SinkhornImputer:
    return SinkhornImputer.paper(max_steps=n_steps, device=device, random_state=seed)


def fit_all(tables: list[np.ndarray], n_steps: int) -> list[np.ndarray]:
    return fit_transform_many([imputer(seed, n_steps, "cuda") for seed in range(len(tables))], tables)


main()
