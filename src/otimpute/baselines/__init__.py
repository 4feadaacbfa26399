"""Classical imputers under the same contract as ours, to compare with and to combine."""

from .gaussian_em import GaussianEMImputer
from .ice import ICEImputer
from .knn import KNNImputer
from .mean import MeanImputer
from .missforest import MissForestImputer
from .softimpute import SoftImputer

__all__ = ["GaussianEMImputer", "ICEImputer", "KNNImputer", "MeanImputer", "MissForestImputer", "SoftImputer"]
