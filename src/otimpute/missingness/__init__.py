"""Hide values of complete tables in known ways, to see how well they can be recovered."""

from .logistic import LogisticMAR, LogisticMNAR, LogisticSelfMNAR
from .mcar import MCAR
from .mechanism import Mechanism, hide
from .quantile_mnar import QuantileMNAR

__all__ = ["MCAR", "LogisticMAR", "LogisticMNAR", "LogisticSelfMNAR", "Mechanism", "QuantileMNAR", "hide"]
