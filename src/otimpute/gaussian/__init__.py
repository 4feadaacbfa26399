"""A Gaussian model of an incomplete table."""

from .em import GaussianModel, fit_gaussian

__all__ = ["GaussianModel", "fit_gaussian"]
