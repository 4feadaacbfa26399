"""
How optimal transport imputes
=============================

The idea of *Missing Data Imputation using Optimal Transport* (Muzellec, Josse, Boyer, Cuturi, 2020), step by step, with
nothing but `otimpute.sinkhorn_divergence`. `otimpute.SinkhornImputer` does the same in compiled code, for real tables.
"""

import matplotlib.pyplot as plt
import numpy as np

from otimpute import sinkhorn_divergence
from otimpute.datasets import make_toy

COMPLETE, IMPUTED, PLAN = "#8a8f98", "#d1495b", "#3d6fb4"

# %%
# Points near a half-moon; a third of them lose one of their two coordinates. The initial guess for a missing value is the mean
# of the column, with some noise.

rng = np.random.default_rng(0)
truth = make_toy("half_moon", 400, rng)
missing = np.zeros(truth.shape, dtype=bool)
missing[np.arange(400), rng.integers(2, size=400)] = rng.random(400) < 0.35

X = np.where(missing, np.nan, truth)
X = np.where(missing, np.nanmean(X, axis=0) + 0.3 * rng.normal(size=X.shape), X)

complete, incomplete = np.flatnonzero(~missing.any(axis=1)), np.flatnonzero(missing.any(axis=1))

# %%
# Take a random batch of complete rows and a random batch of rows with a guess in them. Values are missing at random here, so
# both batches should look like samples of one distribution. How far they are from that is measured by moving one onto the other
# at the lowest cost. The **plan** says how much of each point goes where (lines on the left; ε blurs it slightly, which
# makes it smooth and fast to compute). The Sinkhorn divergence is that cost, minus the cost of the blur alone.
#
# Its **gradient** says where each point should go to make the batches more alike (arrows on the right). Observed coordinates
# stay; missing ones move a little that way: sideways if x is missing, up or down if y is.

SIZE, EPSILON = 100, 0.01


def two_batches() -> tuple[np.ndarray, np.ndarray]:
    return rng.choice(complete, SIZE, replace=False), rng.choice(incomplete, SIZE, replace=False)


known, guessed = two_batches()
result = sinkhorn_divergence(X[known], X[guessed], epsilon=EPSILON)
cost = 0.5 * ((X[known][:, None] - X[guessed][None]) ** 2).sum(axis=2)
plan = np.exp((result.f[:, None] + result.g[None] - cost) / EPSILON) / cost.size  # sums to one
moves = np.where(missing[guessed], -SIZE * result.gradient_y, 0.0)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharex=True, sharey=True, layout="constrained")
for i, j in zip(*np.nonzero(plan > 0.1 * plan.max()), strict=True):
    axes[0].plot(*X[[known[i], guessed[j]]].T, color=PLAN, lw=1.2 * plan[i, j] / plan.max(), zorder=0)
axes[1].quiver(*X[guessed].T, *moves.T, angles="xy", scale_units="xy", scale=1, width=0.003, color=IMPUTED)
for axis, title in zip(axes, ("the plan: who goes where", "the gradient: where guesses should move"), strict=True):
    axis.scatter(*X[known].T, s=12, color=COMPLETE, label="complete rows")
    axis.scatter(*X[guessed].T, s=12, color=IMPUTED, label="rows with a guess")
    axis.set(title=title, xticks=[], yticks=[])
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# Repeat this with new batches and ever smaller steps. That is all.

N_STEPS = 800
moments = {0: X.copy()}
for step in range(1, N_STEPS + 1):
    known, guessed = two_batches()
    gradient = sinkhorn_divergence(X[known], X[guessed], epsilon=EPSILON, tol=1e-2).gradient_y
    X[guessed] -= np.where(missing[guessed], (1 - step / N_STEPS) * 0.5 * SIZE * gradient, 0.0)
    if step in (10, 100, N_STEPS):
        moments[step] = X.copy()

figure, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharex=True, sharey=True, layout="constrained")
for axis, (step, table) in zip(axes, moments.items(), strict=True):
    axis.scatter(*table[complete].T, s=4, color=COMPLETE)
    axis.scatter(*table[incomplete].T, s=6, color=IMPUTED)
    axis.set(title=f"after {step} steps" if step else "first guess", xticks=[], yticks=[])
plt.show()

# %%
# A regression would put every row whose x is missing in the middle, between left and right, where there are no points.
# Transport moves it to one of the sides: a possible value, not a mean of possible values.
#
# Comparing complete rows with incomplete ones (``one_sided=True``) is right only when values are missing
# completely at random. By default `otimpute.SinkhornImputer` draws both batches from the whole table.
