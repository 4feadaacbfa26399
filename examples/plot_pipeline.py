"""
In a pipeline
=============

Cross-validate a classifier that cannot handle missing values, behind an imputer. The imputer is *inside* the pipeline, so each
fold imputes its test rows with what was learned from its training rows, as it will be in use.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from otimpute import SinkhornImputer
from otimpute.baselines import GaussianEMImputer, KNNImputer, MeanImputer
from otimpute.missingness import MCAR, hide

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :10]

# %%
# Three shares of missing values, four imputation methods, the same folds for all.

imputers = {
    "column mean": MeanImputer(),
    "nearest neighbours": KNNImputer(),
    "Gaussian model": GaussianEMImputer(),
    "optimal transport": SinkhornImputer(random_state=0),
}
rates = [0.1, 0.3, 0.5]
folds = StratifiedKFold(4, shuffle=True, random_state=0)
accuracy = {name: [] for name in imputers}
for rate in rates:
    X_incomplete, _ = hide(X, MCAR(rate), random_state=0)
    for name, imputer in imputers.items():
        model = make_pipeline(imputer, StandardScaler(), LogisticRegression())
        accuracy[name].append(cross_val_score(model, X_incomplete, y, cv=folds))
        print(f"{rate:.0%} missing, {name:18} {accuracy[name][-1].mean():.3f}")

complete = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y, cv=folds).mean()

# %%
# Error bars show the standard deviation over folds, and most differences are no larger than that: how useful an imputation is
# for a task is a different question from how close its values are to the truth. A classifier can do without some of them.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
colours = dict(zip(imputers, ("#8a8f98", "#e0a030", "#3d6fb4", "#d1495b"), strict=True))
for k, (name, scores) in enumerate(accuracy.items()):
    at = np.array(rates) + 0.012 * (k - 1.5)
    mean, deviation = np.mean(scores, axis=1), np.std(scores, axis=1)
    axis.errorbar(at, mean, yerr=deviation, fmt="o-", ms=4, lw=1, color=colours[name], label=name)
axis.axhline(complete, color="black", ls="--", lw=1, label="nothing missing")
axis.set(xlabel="share of values missing", ylabel="accuracy on new rows", xticks=rates)
axis.legend(frameon=False)
plt.show()
