"""
Three ways to lose values
=========================

Why a value is missing matters more than how many are. Here the same 30 % of incomes are lost in three ways: by chance, because
of the age, which is known, and because of the income itself.
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
# Red points lost their income; the dashed line is the true mean, the solid line the mean of those who answered. By chance, the
# two agree. In the other cases they do not: dropping the rows with holes gives a wrong answer.

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
# Imputation repairs the second case: the age is known, and old people who did answer tell what old people earn. It repairs the
# third only as far as age goes. That the silent ones earn more than others *of their age* is nowhere in the table, and no
# method can find it there.

for way, missing in ways.items():
    table = np.column_stack([age, np.where(missing, np.nan, income)])
    imputed = AutoImputer(["gaussian_em", "extra_trees"], random_state=0).fit_transform(table)
    known, filled = income[~missing].mean(), imputed[:, 1].mean()
    print(f"{way:27} true mean {income.mean():.2f}, of the known {known:.2f}, after imputation {filled:.2f}")

# %%
# What to do then: say how different the missing ones may be, and see what changes in your result. The guide does it on its page
# on why values are missing.
