"""How long a report on a long table takes beside the fit, and what memory it adds: python perf/report.py [ROWS]."""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import otimpute

n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
rng = np.random.default_rng(0)
values = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, 20)) + 0.5 * rng.normal(size=(n_rows, 20))
X = pd.DataFrame(values, columns=[f"x{k}" for k in range(20)])
X["group"] = pd.Categorical(np.where(values[:, 0] > 0, "a", "b"))
X = X.mask(rng.random(X.shape) < 0.1)


def measured(what, call):
    begun = time.perf_counter()
    result = call()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {time.perf_counter() - begun:.1f} s, peak of the process so far {peak:.2f} GiB")
    return result


imputer = otimpute.SinkhornImputer(random_state=0, max_steps=200)
X_imputed = measured("fit", lambda: imputer.fit_transform(X))
path = Path(tempfile.mkdtemp()) / "report.html"
report = measured("report", lambda: otimpute.report(imputer, X, path, X_imputed=X_imputed))
print(f"{path.stat().st_size / 1e3:.0f} kB; {report.data.notes[0] if report.data.notes else 'all rows shown'}")
