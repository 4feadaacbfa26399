"""Gaussian models of an incomplete table: one, or a mixture of them."""

from .em import COVARIANCE_STEPS, GaussianModel, fit_gaussian
from .mixture import MixtureModel, fit_mixture

__all__ = ["COVARIANCE_STEPS", "GaussianModel", "MixtureModel", "fit_gaussian", "fit_mixture"]
