"""Run the deep methods of the suite `paper` on a GPU: many small networks, so many processes that each do task after task.

python docs/studies/deep.py FOLDER --seeds 3 --seconds 540

MIWAE and VAEAC share the GPU; GAIN, whose networks are too small for one, takes the CPU. What is done is left alone, so the
same command goes on. `otimpute benchmark table FOLDER` reads the records beside those of other methods. The longest table comes
first, and once only: it takes as long as all others of a seed together.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import time
from pathlib import Path

from otimpute.benchmark.run_task import run_task
from otimpute.benchmark.store import Store
from otimpute.benchmark.suite import load_suite
from otimpute.benchmark.task import Task

SETTINGS = ["mcar-30", "logistic_mnar-30"]
LONGEST = "california"
ON_GPU, ON_CPU = ["miwae", "vaeac"], ["gain"]


def work(queue: mp.Queue, folder: str, deadline: float, sees_gpu: bool) -> None:
    if not sees_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    store = Store(folder)
    while time.time() < deadline and (found := queue.get()) is not None:
        record = run_task(Task.from_dict(found))
        store.write(record)
        task = record.task
        took = f"{record.seconds['task']:.0f} s"
        print(f"{task.dataset} {task.setting} {task.method} {task.seed}: {record.status}, {took}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=540)
    arguments.add_argument("--gpu-processes", type=int, default=9)
    arguments.add_argument("--cpu-processes", type=int, default=6)
    given = arguments.parse_args()
    deadline = time.time() + given.seconds
    suite = load_suite("paper").only(settings=SETTINGS, methods=ON_GPU + ON_CPU, seeds=range(given.seeds))
    tasks = [task for task in suite.tasks() if task.dataset != LONGEST or task.seed == 0]
    store = Store(given.folder)
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    store.plan("paper", tasks)
    left = sorted(
        (task for task in tasks if not store.has(task, good=True)), key=lambda task: (task.dataset != LONGEST, task.seed)
    )
    context = mp.get_context("spawn")
    workers, queues = [], []  # a queue that nobody here holds would vanish
    for methods, n_processes, sees_gpu in ((ON_GPU, given.gpu_processes, True), (ON_CPU, given.cpu_processes, False)):
        queue = context.Queue()
        queues.append(queue)
        for task in left:
            if task.imputer in methods:
                queue.put(task.as_dict())
        for _ in range(n_processes):
            queue.put(None)
            workers.append(context.Process(target=work, args=(queue, given.folder, deadline, sees_gpu), daemon=True))
    for each in workers:
        each.start()
    for each in workers:
        each.join(max(0.0, deadline + 40 - time.time()))
    done = sum(store.has(task, good=True) for task in tasks)
    print(f"{done} of {len(tasks)} tasks are done")


if __name__ == "__main__":
    main()
