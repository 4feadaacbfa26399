"""How good an imputation is, given the truth."""

from .distributional import energy_distance, wasserstein2
from .pointwise import mae, rmse

__all__ = ["energy_distance", "mae", "rmse", "wasserstein2"]
