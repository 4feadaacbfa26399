"""GAIN: a generator imputes values that a discriminator cannot tell from observed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from .._checks import check_real
from .._row_noise import uniform
from .._stored import stored
from .._torch import torch_for
from .._warn import warn_user
from ..estimator import TableParameters
from ..exceptions import OtimputeWarning
from ..table import Table
from ._deep import SIZE, STORED, DeepImputer, DeepMethod
from .standardised import StandardisedModel

if TYPE_CHECKING:
    from torch import Tensor

    from ._networks import Gain

_UNCHOSEN = 10.0  # the largest value tried in the paper


@stored(**STORED, width=SIZE, learned="varying")
@dataclass(frozen=True)
class GainMethod(DeepMethod):
    """A generator that turns noise into missing values."""

    width: int
    learned: NDArray[np.bool_]  # [d]: columns with missing values in training

    def make_network(self) -> Gain:
        from ._networks import Gain

        return Gain(self.n_columns, self.width, [_UNCHOSEN])  # the α that was used is stored with the weights

    @property
    def _numbers_per_row(self) -> int:
        return 2 * max(self.n_columns, self.width)

    def _fill(self, values: Tensor, missing: Tensor, keys: NDArray[np.uint64]) -> Tensor:
        noise = np.column_stack([uniform(keys, k) for k in range(values.shape[1])])
        return cast("Tensor", self.network.fill(values, missing, torch_for("GAINImputer").from_numpy(noise).to(values))[0])


@stored()
@dataclass(frozen=True)
class GainModel(StandardisedModel):
    """GAIN on standardised columns."""

    method: GainMethod | None

    def untaught(self, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the columns with missing values that had none in training."""
        if self.method is None:
            return self.columns.varying
        return self.columns.varying[missing[:, self.columns.varying].any(axis=0) & ~self.method.learned]


class GAINImputer(DeepImputer):
    """Impute missing values by generative adversarial networks (GAIN: Yoon, Jordon & van der Schaar, ICML 2018).

    A generator fills in the missing values of a row; a discriminator, which is told about all other cells (the hint), predicts
    whether a given cell was imputed. The generator is trained to deceive it and, with weight ``alpha``, to reproduce observed
    values. Needs torch: ``pip install "otimpute[torch]"``.

    The defaults are the authors': three layers as wide as the table in both networks, sigmoid outputs on columns scaled to
    [0, 1] (imputed values stay within the observed range), batches of 128, Adam at 10⁻³, hints as in the paper, and α chosen
    on values hidden from the fit. All α are trained in parallel on the same batches, and the best one is kept. Only the
    stopping rule differs from the paper.

    Parameters
    ----------
    alpha : float or "cv", default="cv"
        Weight of the squared error on observed values in the generator's loss; ``"cv"`` chooses the best of ``alphas``.
    alphas : tuple of float, default=(0.1, 0.5, 1, 2, 10, 100)
        Candidates for ``"cv"``: those of the paper, and the default of the authors' code. If no values are hidden
        (see ``validation_fraction``), 10 is used.
    width : int or None, default=None
        Number of units in each hidden layer; None means the number of columns (a category with k labels counts as k − 1).
        Tables with two or three columns need more.
    max_steps : int or "auto", default="auto"
        Maximum number of updates; "auto" means 10000, or 100 passes over the rows if that is more. The fit stops earlier
        when the error on hidden values no longer improves.
    batch_size : int, default=128
        Number of rows per update; rows are reshuffled after each pass.
    learning_rate : float, default=1e-3
        Step size of Adam.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Fraction of the observed values to hide from the fit to score it and to choose α; the scores are in ``history_``, and
        the parameters with the best score (RMSE) are kept. The hidden values are not changed in the result. "auto" hides a
        tenth, or none if the table has fewer than 50 rows.
    patience : int, default=8
        Stop after this many fortieths of ``max_steps`` without a better score.
    max_seconds : float or None, default=None
        Stop after about this time and keep the result so far.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compute on; "auto" uses a GPU if there is one.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. Pass an int for reproducible results; torch's global random state is not changed.
    verbose : int, default=0
        If positive, show a progress bar (needs rich in terminals).
    callbacks : list of functions, default=None
        Called after every step with a ``FitProgress``; a true return value stops the fit.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    alpha_ : float
        Weight used.
    n_steps_ : int
        Number of steps performed.
    best_step_ : int
        The step whose parameters were kept: the last one, or the best one if there is validation.
    converged_ : bool
        Whether the validation score had stopped improving when the fit ended.
    stop_reason_ : str
        ``"validation"``, ``"max_steps"``, ``"max_seconds"``, ``"callback"`` or ``"interrupted"``.
    history_ : dict of lists
        For each fortieth of the steps: ``step``, ``training_loss`` and, with validation, ``validation_mae`` and
        ``validation_rmse``, in standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, np.pi, 300)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle), angle])
    >>> X_incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> X_imputed = GAINImputer(max_steps=3000, width=32, random_state=0).fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.6 * np.abs(X - np.nanmean(X_incomplete, axis=0))[missing].mean())
    True
    """

    model_class: ClassVar[type] = GainModel
    _model: GainModel
    fewest_steps = 10_000

    def __init__(
        self,
        *,
        alpha: float | str = "cv",
        alphas: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 10.0, 100.0),
        width: int | None = None,
        max_steps: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        validation_fraction: float | str = "auto",
        patience: int = 8,
        max_seconds: float | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.alpha = alpha
        self.alphas = alphas
        self.width = width
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_seconds = max_seconds
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.alpha != "cv":
            check_real("alpha", self.alpha, at_least=0, advice='pass "cv" to choose it by hidden values')
        if not isinstance(self.alphas, (tuple, list)) or len(self.alphas) == 0:
            raise ValueError(f"alphas must be numbers such as (0.1, 1, 10), got {self.alphas!r}")
        for each in self.alphas:
            check_real("a number in alphas", each, at_least=0)

    def _make_network(self, n_columns: int, *, validates: bool) -> Gain:
        from ._networks import Gain

        alphas: Sequence[float] = self.alphas if validates else (_UNCHOSEN,)
        return Gain(n_columns, self.width or n_columns, alphas if self.alpha == "cv" else (float(self.alpha),))

    def _make_method(self, trained: dict[str, Any], learned: NDArray[np.bool_]) -> GainMethod:
        return GainMethod(**trained, width=self.width or len(learned), learned=learned)

    def _publish(self) -> None:
        super()._publish()
        if self._model.method is not None:
            self.alpha_ = float(self._model.method.weights["alphas"][0])

    def _read_new_rows(self, X: Any) -> Table:
        table = super()._read_new_rows(X)
        untaught = self._columns_said(table, lambda model, wanted: model.untaught(wanted))
        if len(untaught):
            warn_user(
                f"columns {self.training_table_.layout.describe(untaught)} with missing values were complete in training, so "
                "the generator never learned to impute them; fit on rows with missing values there, or set validation_fraction",
                OtimputeWarning,
            )
        return table
