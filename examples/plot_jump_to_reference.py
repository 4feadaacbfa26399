"""
Jump to reference
=================

What is the effect of a treatment if people who drop out lose its benefit? A trial with two arms is imputed under two
assumptions about dropouts, and both results are compared with the truth, which is known here because the trial is made up.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from otimpute import MultipleImputer, pool

CONTROL, TREATED, JUMP = "#8a8f98", "#3d6fb4", "#d1495b"
VISITS = ["week 0", "week 4", "week 8", "week 12"]
BENEFIT = np.array([0.0, 0.3, 0.6, 0.9])  # of the treatment at each visit; higher is better


def trial(n, seed):
    """The outcomes of n people, and when they drop out; treated ones lose the benefit with their next visit."""
    rng = np.random.default_rng(seed)
    treated = np.arange(n) % 2 == 1
    outcome = rng.normal(0, 0.8, n)[:, None] + rng.normal(0, 0.6, (n, 4)) + BENEFIT * treated[:, None]
    n_seen = np.full(n, 4)
    for k in range(1, 4):  # those who do badly leave more often, treated ones too
        leaves = rng.random(n) < 1 / (1 + np.exp(1.9 + 0.8 * outcome[:, k - 1] - 0.6 * treated))
        n_seen[(n_seen == 4) & leaves] = k
    gone = np.arange(4) >= n_seen[:, None]
    outcome -= np.where(gone & treated[:, None], BENEFIT, 0)
    return treated, outcome, gone


treated, complete, gone = trial(500, seed=1)
table = pd.DataFrame(np.where(gone, np.nan, complete), columns=VISITS)
table.insert(0, "arm", np.where(treated, "treated", "control"))
print(f"dropped out: {gone[treated, -1].mean():.0%} of the treated, {gone[~treated, -1].mean():.0%} of the controls")

# %%
# **Missing at random.** A dropout goes on as others of the same arm with the same outcomes so far. Treated dropouts keep their
# benefit: this answers what the effect would be if nobody stopped the treatment.

imputer = MultipleImputer(m=20, random_state=0).fit(table)
at_random = list(imputer.tables_)

# %%
# **Jump to reference.** A treated dropout goes on as a control would: from the next visit on the mean is that of the control
# arm, while being better or worse than one's own arm so far still counts. The recipe for each completed table:
#
# 1. take the treated dropouts, call them controls, and lower what was observed of them by the difference of the arms' means, so
#    that they are as far from the controls' means as they were from their own;
# 2. draw their missing outcomes with the model behind that table;
# 3. put only these into the table.
#
# Without the lowering it is called *copy reference*: treated dropouts are taken for people who never were treated and did well,
# and part of the benefit stays. Both assume that controls who drop out go on as other controls. No data can confirm that.

dropouts = treated & gone[:, -1]
to_control = []
for completed, model in zip(at_random, imputer.imputers_, strict=True):
    means = completed.groupby("arm")[VISITS].mean()
    as_controls = table[dropouts].assign(arm="control")
    as_controls[VISITS] -= means.loc["treated"] - means.loc["control"]
    drawn = model.transform(as_controls)
    jumped = completed.copy()
    jumped.loc[dropouts, VISITS] = np.where(gone[dropouts], drawn[VISITS], table.loc[dropouts, VISITS])
    to_control.append(jumped)

# %%
# The analysis is the difference between the arms at the last visit, adjusted for the first.


def effect(completed):
    inputs = np.column_stack([np.ones(len(completed)), completed["arm"] == "treated", completed["week 0"]])
    inverse = np.linalg.inv(inputs.T @ inputs)
    slopes = inverse @ inputs.T @ completed["week 12"].to_numpy()
    residuals = completed["week 12"] - inputs @ slopes
    return {"effect": slopes[1]}, inverse[1, 1] * (residuals @ residuals) / (len(completed) - 3)


everyone, outcomes, _ = trial(400_000, seed=2)
truth = {
    "missing at random": BENEFIT[-1],
    "jump to reference": outcomes[everyone, -1].mean() - outcomes[~everyone, -1].mean(),
}
for name, tables in {"missing at random": at_random, "jump to reference": to_control}.items():
    pooled = pool(tables, effect, df_complete=497)
    low, high = pooled.low[0], pooled.high[0]
    print(f"{name}: {pooled.estimate[0]:.2f} (95 % interval {low:.2f} to {high:.2f}), truth {truth[name]:.2f}")

# %%
# Both are close to a truth, but of different questions: the benefit if nobody stopped, and the benefit as people took it.
# Which one a trial asks is decided before it is analysed. (Rubin's rules give standard errors for jump to reference that are
# about as large as under missing at random; repeated trials would vary less.)

figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
lines = {
    "controls": (at_random, ~treated, CONTROL),
    "treated, missing at random": (at_random, treated, TREATED),
    "treated, jump to reference": (to_control, treated, JUMP),
}
for name, (tables, rows, color) in lines.items():
    axis.plot(VISITS, np.mean([each.loc[rows, VISITS].mean() for each in tables], axis=0), "o-", color=color, label=name)
axis.plot(VISITS, complete[treated].mean(axis=0), "k:", label="treated, truth")
axis.set_ylabel("mean outcome")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
