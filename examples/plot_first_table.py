"""
A first table
=============

Fill a table, look at what was filled in, and ask whether to believe it. The table is scikit-learn's: chemical analyses of
wines. A fifth of its values is hidden, so that the truth is known.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import otimpute

complete = load_wine(as_frame=True).data[["alcohol", "total_phenols", "flavanoids", "color_intensity", "hue", "proline"]]
missing = np.random.default_rng(0).random(complete.shape) < 0.2
table = complete.mask(missing)
print(table.head())

# %%
# One line fills it. What comes back is a frame with the same columns, index and types; values that were there are untouched.

imputer = otimpute.AutoImputer(random_state=0)
filled = imputer.fit_transform(table)
print(filled.head())

# %%
# The verdict says how good that is, measured on values that were hidden to find out.

print(imputer.verdict_)

# %%
# Look at it: every point is a wine. Where a value was filled in, a bar shows the range in which the truth lies in 90 % of the
# cases, as far as the imputer can tell.

COMPLETE, IMPUTED = "#8a8f98", "#d1495b"
bars = 1.645 * imputer.imputation_std_

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, (x, y) in zip(axes, (("total_phenols", "flavanoids"), ("alcohol", "color_intensity")), strict=True):
    j, k = table.columns.get_loc(x), table.columns.get_loc(y)
    holes = missing[:, j] | missing[:, k]
    axis.scatter(filled[x][~holes], filled[y][~holes], s=10, color=COMPLETE, label="as it was")
    axis.errorbar(
        filled[x][holes], filled[y][holes], xerr=bars[x][holes], yerr=bars[y][holes],
        fmt="o", ms=3, lw=0.6, color=IMPUTED, label="filled in",
    )  # fmt: skip
    axis.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "))
axes[0].legend(frameon=False, loc="lower right")
plt.show()

# %%
# Here the truth is known, so all of it can be checked: filled in against true values, on the diagonal if right.

figure, axes = plt.subplots(1, 6, figsize=(10, 2.1), layout="constrained")
for k, (axis, name) in enumerate(zip(axes, table.columns, strict=True)):
    true, guess = complete[name][missing[:, k]], filled[name][missing[:, k]]
    axis.axline((true.mean(), true.mean()), slope=1, color=COMPLETE, lw=1)
    axis.scatter(true, guess, s=8, color=IMPUTED)
    axis.set_title(name.replace("_", " "), fontsize=9)
    axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
axes[0].set(xlabel="true", ylabel="filled in")
plt.show()

# %%
# On a table of your own there is no truth. A report puts on one page what can be said without it.

page = Path(tempfile.mkdtemp()) / "report.html"
for light in otimpute.report(imputer, table, page, X_imputed=filled).data.verdict:
    print(f"{light.question}\n    {light.answer}")
