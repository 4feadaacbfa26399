"""
Numbers, categories and dates
=============================

Data frames need no preparation: text, dates, booleans and whole numbers are imputed by values of the same kind.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from otimpute import AutoImputer

# %%
# Simulated flats. Houses in the hills are newer, older ones have gas, rents depend on everything.

rng = np.random.default_rng(0)
n = 500
district = rng.choice(["old town", "harbour", "hills"], n, p=[0.4, 0.35, 0.25])
year = np.select([district == "old town", district == "harbour"], [1910, 1965], 2000) + rng.integers(-10, 20, n)
size = rng.gamma(6, 12, n).round()
flats = pd.DataFrame(
    {
        "district": district,
        "built": pd.to_datetime([f"{each}-01-01" for each in year]),
        "size": pd.array(size.astype(int), dtype="Int64"),
        "gas": pd.array(rng.random(n) < np.where(year < 1950, 0.8, 0.15), dtype="boolean"),
        "rent": (9 * size + 250 * (district == "hills") + 1.5 * (year - 1900) + rng.normal(0, 60, n)).round(2),
    }
)
holes = pd.DataFrame(rng.random(flats.shape) < 0.15, columns=flats.columns)
incomplete = flats.mask(holes)
print(incomplete.head(8))

# %%
# Constraints restrict what is imputed. Here, rents are not negative, and years lie in a given range.

imputer = AutoImputer(
    constraints={"rent": {"non_negative": True}, "built": {"bounds": ("1880-01-01", "2025-01-01")}}, random_state=0
)
filled = imputer.fit_transform(incomplete)
print(filled.head(8))
print(imputer.column_kinds_)

# %%
# How often is a category right? The imputer's own estimate, from held-out values, next to the truth. Held-out values are a
# little harder than missing ones, because more of their rows is hidden.

right = (filled["district"] == flats["district"])[holes["district"]].mean()
print(f"estimated {1 - imputer.scores_['district']['stack']['wrong']:.0%} right, actually {right:.0%}")

# %%
# Imputed districts by the year of the house: old town, harbour and hills each in their period.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
names = ["old town", "harbour", "hills"]
place = filled["district"].map(names.index) + rng.uniform(-0.25, 0.25, n)
for axis, column, title in ((axes[0], "district", "district imputed"), (axes[1], "built", "year imputed")):
    new = holes[column]
    axis.scatter(filled["built"][~new], place[~new], s=8, color="#8a8f98", label="known")
    axis.scatter(filled["built"][new], place[new], s=14, color="#d1495b", label=title)
    axis.set(yticks=range(3), yticklabels=names, xlabel="built", title=title)
axes[0].legend(frameon=False, loc="lower right")
plt.show()
