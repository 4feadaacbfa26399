"""Classical imputers with the same interface as the optimal transport imputers, for comparison and for ensembles.

>>> import numpy as np
>>> from otimpute.baselines import GaussianEMImputer, MeanImputer
>>> X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, np.nan]])
>>> [round(float(method.fit_transform(X)[3, 1]), 1) for method in (MeanImputer(), GaussianEMImputer(prior_rows=1e-3))]
[4.0, 8.0]
"""

from .chained import ChainedImputer
from .extra_trees import ExtraTreesImputer
from .gain import GAINImputer
from .gaussian_em import GaussianEMImputer
from .gaussian_mixture import GaussianMixtureImputer
from .ice import ICEImputer
from .kernel_ridge import KernelRidgeImputer
from .knn import KNNImputer
from .mean import MeanImputer
from .missforest import MissForestImputer
from .miwae import MIWAEImputer
from .refining import RefiningImputer as RefiningImputer
from .softimpute import SoftImputer
from .standardised import StandardisedImputer as StandardisedImputer
from .vaeac import VAEACImputer

__all__ = [
    "ChainedImputer",
    "ExtraTreesImputer",
    "GAINImputer",
    "GaussianEMImputer",
    "GaussianMixtureImputer",
    "ICEImputer",
    "KNNImputer",
    "KernelRidgeImputer",
    "MIWAEImputer",
    "MeanImputer",
    "MissForestImputer",
    "SoftImputer",
    "VAEACImputer",
]
