"""
A first table
=============

Impute a table, look at the imputed values, and see how far to trust them. The table comes from scikit-learn: chemical
analyses of wines. A fifth of its values is hidden, so that the truth is known.
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
# One line imputes it. The result is a frame with the same columns, index and dtypes; observed values are untouched.

imputer = otimpute.AutoImputer(random_state=0)
filled = imputer.fit_transform(table)
print(filled.head())

# %%
# The verdict says how good the result is, measured on held-out values.

print(imputer.verdict_)

# %%
# Every point is a wine. Where a value was imputed, a bar shows the range that should contain the truth in 90 % of the cases.

COMPLETE, IMPUTED = "#8a8f98", "#d1495b"
bars = 1.645 * imputer.imputation_std_

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, (x, y) in zip(axes, (("total_phenols", "flavanoids"), ("alcohol", "color_intensity")), strict=True):
    j, k = table.columns.get_loc(x), table.columns.get_loc(y)
    holes = missing[:, j] | missing[:, k]
    axis.scatter(filled[x][~holes], filled[y][~holes], s=10, color=COMPLETE, label="observed")
    axis.errorbar(
        filled[x][holes], filled[y][holes], xerr=bars[x][holes], yerr=bars[y][holes],
        fmt="o", ms=3, lw=0.6, color=IMPUTED, label="imputed",
    )  # fmt: skip
    axis.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "))
axes[0].legend(frameon=False, loc="lower right")
plt.show()

# %%
# Here the truth is known, so the result can be checked: imputed against true values, on the diagonal if exact.

figure, axes = plt.subplots(1, 6, figsize=(10, 2.1), layout="constrained")
for k, (axis, name) in enumerate(zip(axes, table.columns, strict=True)):
    true, guess = complete[name][missing[:, k]], filled[name][missing[:, k]]
    axis.axline((true.mean(), true.mean()), slope=1, color=COMPLETE, lw=1)
    axis.scatter(true, guess, s=8, color=IMPUTED)
    axis.set_title(name.replace("_", " "), fontsize=9)
    axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
axes[0].set(xlabel="true", ylabel="imputed")
plt.show()

# %%
# For your own table the truth is unknown. A report shows on one page what can be said without it.

page = Path(tempfile.mkdtemp()) / "report.html"
for light in otimpute.report(imputer, table, page, X_imputed=filled).data.verdict:
    print(f"{light.question}\n    {light.answer}")
