"""Metrics that compare imputed values with the true ones: ``metric(X_true, X_imputed, missing)``; lower is better.

`crps` and `energy_score` take several draws instead of ``X_imputed``, and `energy_i_score` does without ``X_true``.
`score_table` compares tables with columns of any type. `wasserstein2` by default raises an error for more than ``MOST_ROWS``
incomplete rows.

>>> from otimpute.metrics import mae, rmse
>>> tables = [[0.0, 0.0]], [[3.0, 4.0]], [[True, True]]
>>> mae(*tables), round(rmse(*tables), 3)
(3.5, 3.536)
"""

from .distributional import MOST_ROWS, energy_distance, marginal_wasserstein1, sliced_wasserstein2, wasserstein2
from .draws import crps, energy_score
from .i_score import energy_i_score
from .mixed import ColumnScore, ScoreKind, TableScore, score_table
from .pointwise import mae, rmse

__all__ = [
    "MOST_ROWS",
    "ColumnScore",
    "ScoreKind",
    "TableScore",
    "crps",
    "energy_distance",
    "energy_i_score",
    "energy_score",
    "mae",
    "marginal_wasserstein1",
    "rmse",
    "score_table",
    "sliced_wasserstein2",
    "wasserstein2",
]
