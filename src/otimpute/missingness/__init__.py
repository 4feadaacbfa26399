"""Missingness mechanisms: hide values of complete tables, to test how well imputers recover them.

>>> import numpy as np
>>> from otimpute.missingness import LogisticMNAR, hide
>>> X = np.random.default_rng(0).normal(size=(1000, 4))
>>> X_incomplete, missing = hide(X, LogisticMNAR(0.3), random_state=0)
>>> bool(np.isnan(X_incomplete[missing]).all()), round(float(missing.mean()), 1)
(True, 0.3)
"""

from .logistic import LogisticMAR, LogisticMNAR, LogisticSelfMNAR
from .mcar import MCAR
from .mechanism import Mechanism, hide
from .quantile_mnar import QuantileMNAR

__all__ = ["MCAR", "LogisticMAR", "LogisticMNAR", "LogisticSelfMNAR", "Mechanism", "QuantileMNAR", "hide"]
