"""Optimal transport between point clouds: arrays only, no tables, no estimators."""

from .divergence import EntropicTransport, SinkhornDivergence, entropic_transport, sinkhorn_divergence
from .epsilon import EPSILON_RULES, epsilon_from_rule

__all__ = [
    "EPSILON_RULES",
    "EntropicTransport",
    "SinkhornDivergence",
    "entropic_transport",
    "epsilon_from_rule",
    "sinkhorn_divergence",
]
