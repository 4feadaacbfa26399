"""
Three missingness mechanisms
============================

Why values are missing matters more than how many. Here 30 % of the incomes are missing in three ways: by chance, depending on
the age, which is known, and depending on the income itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from otimpute import AutoImputer

rng = np.random.default_rng(0)
age = rng.uniform(20, 65, 400)
income = 1.5 + 0.05 * (age - 20) + rng.normal(0, 0.5, 400)  # thousands a month


def lost(reason: np.ndarray) -> np.ndarray:
    """Lose 30 %, more often where the reason is large."""
    standardised = (reason - reason.mean()) / reason.std()
    chance = 1 / (1 + np.exp(1.5 - 2.5 * standardised))
    return rng.random(400) < 0.3 * chance / chance.mean()


ways = {
    "by chance (MCAR)": rng.random(400) < 0.3,
    "the old do not say (MAR)": lost(age),
    "the rich do not say (MNAR)": lost(income),
}

# %%
# For red points the income is missing; the dashed line is the true mean, the solid line the mean of those who answered. In the
# first case the two agree. In the others they do not: dropping the incomplete rows gives a wrong answer.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for axis, (way, missing) in zip(axes, ways.items(), strict=True):
    axis.scatter(age[~missing], income[~missing], s=8, color="#8a8f98", label="income known")
    axis.scatter(age[missing], income[missing], s=8, color="#d1495b", label="income lost")
    axis.axhline(income.mean(), color="black", ls="--", lw=1, label="true mean")
    axis.axhline(income[~missing].mean(), color="#3d6fb4", lw=1.5, label="mean of the known")
    axis.set(title=way, xlabel="age")
axes[0].set_ylabel("income")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %%
# Imputation corrects the second case: the age is known, and older people who did answer show what older people earn. It
# corrects the third only as far as it is explained by age. That those who do not answer earn more than others *of their age*
# is nowhere in the table, and no method can find it there.

for way, missing in ways.items():
    table = np.column_stack([age, np.where(missing, np.nan, income)])
    imputed = AutoImputer(["gaussian_em", "extra_trees"], random_state=0).fit_transform(table)
    known, filled = income[~missing].mean(), imputed[:, 1].mean()
    print(f"{way:27} true mean {income.mean():.2f}, of the known {known:.2f}, after imputation {filled:.2f}")

# %%
# In that case, assume how different the missing values may be, and see how your result changes: the user guide shows such a
# sensitivity analysis on its page on why values are missing.
