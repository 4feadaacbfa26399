"""How good an imputation is, given the truth."""

from .distributional import MOST_ROWS, energy_distance, marginal_wasserstein1, sliced_wasserstein2, wasserstein2
from .pointwise import mae, rmse

__all__ = ["MOST_ROWS", "energy_distance", "mae", "marginal_wasserstein1", "rmse", "sliced_wasserstein2", "wasserstein2"]
