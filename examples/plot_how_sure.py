"""
Error bars and draws
====================

Error bars say how far off an estimate may be; draws show what the values could have been. Here the points of a curve lose their
y-values at random.
"""

import matplotlib.pyplot as plt
import numpy as np

from otimpute import AutoImputer

COMPLETE, IMPUTED, TRUTH = "#8a8f98", "#d1495b", "#3d6fb4"
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 400)
complete = np.column_stack([x, np.sin(2 * x) + 0.25 * rng.normal(size=400)])
missing = np.zeros(complete.shape, dtype=bool)
missing[:, 1] = rng.random(400) < 0.25
table = np.where(missing, np.nan, complete)
holes = missing[:, 1]

# %%
# Estimates lie on a line: each is the mean of the possible values. The error bars, which were calibrated on held-out values,
# show how far away the truth may be. 90 % of the true values should be inside.

imputer = AutoImputer(random_state=0)
filled = imputer.fit_transform(table)
bars = 1.645 * imputer.imputation_std_[holes, 1]
inside = np.abs(filled - complete)[holes, 1] <= bars
print(f"{inside.mean():.0%} of {holes.sum()} true values are inside their error bars")

# %%
# Draws do not lie on a line. They scatter like true values, so that spreads and relations computed from them are not too
# narrow. Another seed gives other draws, and your conclusions should not depend on which.

draws = [AutoImputer(target="distribution", random_state=seed).fit_transform(table) for seed in (0, 1)]

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained")
axes[0].errorbar(x[holes], filled[holes, 1], yerr=bars, fmt="o", ms=4, lw=0.8, color=IMPUTED)
axes[0].scatter(x[holes], complete[holes, 1], s=10, color=TRUTH, zorder=3, label="truth")
axes[0].set_title("estimates with error bars, and the truth")
axes[0].legend(frameon=False, loc="lower left")
for axis, drawn, title in zip(axes[1:], draws, ("draws", "draws with another seed"), strict=True):
    axis.scatter(*table[~holes].T, s=8, color=COMPLETE)
    axis.scatter(*drawn[holes].T, s=12, color=IMPUTED)
    axis.set_title(title)
plt.show()

# %%
# The standard deviation of the true and of the imputed values:

for name, column in {"truth": complete, "estimates": filled, "draws": draws[0]}.items():
    print(f"{name:10} {column[holes, 1].std():.3f}")
