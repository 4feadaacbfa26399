"""GAIN: a generator fills holes until a discriminator cannot tell them from what was there."""

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

_UNCHOSEN = 10.0  # the largest that the paper tried


@stored(**STORED, width=SIZE, learned="varying")
@dataclass(frozen=True)
class GainMethod(DeepMethod):
    """A generator that fills holes with what it makes of noise."""

    width: int
    learned: NDArray[np.bool_]  # [d]: columns that had holes in training

    def make_network(self) -> Gain:
        from ._networks import Gain

        return Gain(self.n_columns, self.width, [_UNCHOSEN])  # which α it was is among the weights

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
        """The columns with missing entries that had none in training."""
        if self.method is None:
            return self.columns.varying
        return self.columns.varying[missing[:, self.columns.varying].any(axis=0) & ~self.method.learned]


class GAINImputer(DeepImputer):
    """Impute by adversarial networks (GAIN: Yoon, Jordon & van der Schaar, ICML 2018).

    A generator fills the holes of a row; a discriminator tells of one cell whether it was filled, and of all others it is told
    (the hint). The generator learns to deceive it and, weighed by ``alpha``, to return what was observed. Needs torch:
    ``pip install "otimpute[torch]"``.

    The defaults are the authors': three layers as wide as the table in either network, sigmoid outputs on columns brought to
    [0, 1] (imputed values stay within the observed range), batches of 128, Adam at 10⁻³, hints as in the paper, and α chosen
    by values hidden from the fit. All α are trained side by side on the same batches, and the best of them is kept. Ours is
    when the training stops.

    Parameters
    ----------
    alpha : float or "cv", default="cv"
        Weight of the squared error on observed values beside the deception; ``"cv"`` takes the best of ``alphas``.
    alphas : tuple of float, default=(0.1, 0.5, 1, 2, 10, 100)
        What ``"cv"`` tries: the paper's, and the default of the authors' code. Where nothing can be hidden
        (see ``validation_fraction``), 10 is taken.
    width : int or None, default=None
        Units of a hidden layer; None takes the number of columns (a category with k labels counts as k − 1). Tables of two or
        three columns need more.
    max_steps : int or "auto", default="auto"
        Most updates by Adam; automatically 10000, and more when that is fewer than 100 passes over the rows. The fit stops
        before when hidden values are no longer found better.
    batch_size : int, default=128
        Rows per update; they are reshuffled after each pass.
    learning_rate : float, default=1e-3
        Adam's step size.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Share of the observed values hidden from the fit to score it and to choose α; the scores are in ``history_``, and
        the parameters with the best of them (by RMSE) are kept. The hidden values come back untouched. Automatically a tenth
        of them, or none in tables of fewer than 50 rows.
    patience : int, default=8
        Fortieths of the steps without a better score before the fit stops.
    max_seconds : float or None, default=None
        Stop after about this time and use what was reached.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute; a GPU where there is one.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result; torch's own random state is left as it was.
    verbose : int, default=0
        Show a progress bar (in terminals it needs rich).
    callbacks : list of functions, default=None
        Called after every step with a ``FitProgress``; a true return value stops the fit.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    alpha_ : float
        Weight used.
    n_steps_ : int
        Steps taken.
    best_step_ : int
        The step whose parameters are kept: the last one, or with validation the best one.
    converged_ : bool
        Whether hidden values were no longer found better when the fit ended.
    stop_reason_ : str
        ``"validation"``, ``"max_steps"``, ``"max_seconds"``, ``"callback"`` or ``"interrupted"``.
    history_ : dict of lists
        Per fortieth of the steps: ``step``, ``training_loss`` and, with validation, ``validation_mae`` and
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
        untaught = self._model.untaught(table.missing[:, ~self.training_table_.empty])
        if len(untaught):
            warn_user(
                f"columns {self.training_table_.layout.describe(untaught)} with holes were complete in training: the generator "
                "never learned to fill them; fit on rows with holes there too, or pass a validation_fraction",
                OtimputeWarning,
            )
        return table
