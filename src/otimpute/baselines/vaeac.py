"""VAEAC: a variational autoencoder conditioned on the observed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_real
from .._random import generator
from .._row_noise import normal
from .._stored import stored
from .._torch import torch_for
from ..estimator import TableParameters
from ._deep import SIZE, STORED, DeepImputer, DeepMethod
from .standardised import StandardisedModel

if TYPE_CHECKING:
    from torch import Tensor

    from ._networks import Vaeac


@stored(**STORED, n_latent=SIZE, width=SIZE, depth=SIZE, n_samples=SIZE)
@dataclass(frozen=True)
class VaeacMethod(DeepMethod):
    """A generator that restores rows from latent variables and observed values."""

    n_latent: int
    width: int
    depth: int
    hidden_rate: float
    n_samples: int
    draws: bool  # return a single draw instead of the mean of several

    def __post_init__(self) -> None:
        if self.depth > len(self.weights):
            raise ValueError("there are fewer weights than layers")
        super().__post_init__()

    def make_network(self) -> Vaeac:
        from ._networks import Vaeac

        return Vaeac(self.n_columns, self.n_latent, self.width, self.depth, self.hidden_rate, self.n_samples)

    @property
    def _numbers_per_row(self) -> int:
        return self.n_samples * (2 * self.width + 2 * self.n_columns)

    def _fill(self, values: Tensor, missing: Tensor, keys: NDArray[np.uint64]) -> Tensor:
        if self.draws:
            noise = normal(keys, self.n_latent)[None]
        else:
            noise = generator(self.seed, "latent variables").standard_normal((self.n_samples, 1, self.n_latent))
        latent = torch_for("VAEACImputer").from_numpy(noise).to(values)
        return cast("Tensor", self.network.expect(values, missing, latent))


@stored()
@dataclass(frozen=True)
class VaeacModel(StandardisedModel):
    """VAEAC on standardised columns."""

    method: VaeacMethod | None


class VAEACImputer(DeepImputer):
    """Impute missing values by a variational autoencoder (VAEAC: Ivanov, Figurnov & Vetrov, ICLR 2019).

    In training, further values are hidden at random. A proposal network sees all known values, a prior network only those not
    hidden; a generator restores the hidden values from latent variables and from the layers of the prior network (skip
    connections). Missing values are imputed by the mean over latent variables drawn from the prior. Needs torch:
    ``pip install "otimpute[torch]"``.

    The networks are the authors' for tables: 10 residual layers of 256 leaky units each, 64 latent variables, a fifth of the
    values hidden, unit variance of a cell, batches of 64, Adam at 3·10⁻⁴, 100 passes over the rows. There are two
    differences: small tables get at least 2000 steps, and training stops by hidden cells (the authors hold out rows).

    Parameters
    ----------
    n_latent : int, default=64
        Number of latent variables.
    width : int, default=256
        Number of units in each hidden layer.
    depth : int, default=10
        Number of residual layers in each network.
    hidden_rate : float in (0, 1), default=0.2
        Fraction of the observed values hidden in each step.
    n_samples : int, default=20
        Number of draws to average.
    target : {"values", "distribution"}, default="values"
        Whether to impute this average, or a single draw. As published, a draw is the most likely row given its latent
        variables, so draws vary less than the true values.
    max_steps : int or "auto", default="auto"
        Maximum number of updates; "auto" means 2000, or 100 passes over the rows if that is more. The fit stops earlier
        when the error on hidden values no longer improves.
    batch_size : int, default=64
        Number of rows per update; rows are reshuffled after each pass.
    learning_rate : float, default=3e-4
        Step size of Adam.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Fraction of the observed values to hide from the fit to score it; the scores are in ``history_``, and
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
    >>> X_imputed = VAEACImputer(max_steps=300, width=64, depth=2, random_state=0).fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.6 * np.abs(X - np.nanmean(X_incomplete, axis=0))[missing].mean())
    True
    """

    model_class: ClassVar[type] = VaeacModel
    fewest_steps = 2000

    def __init__(
        self,
        *,
        n_latent: int = 64,
        width: int = 256,
        depth: int = 10,
        hidden_rate: float = 0.2,
        n_samples: int = 20,
        target: str = "values",
        max_steps: int | str = "auto",
        batch_size: int = 64,
        learning_rate: float = 3e-4,
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
        self.n_latent = n_latent
        self.width = width
        self.depth = depth
        self.hidden_rate = hidden_rate
        self.n_samples = n_samples
        self.target = target
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
        check_real("hidden_rate", self.hidden_rate, above=0, below=1)
        check_choice("target", self.target, ["values", "distribution"])

    def _make_network(self, n_columns: int, *, validates: bool) -> Vaeac:  # noqa: ARG002
        from ._networks import Vaeac

        return Vaeac(n_columns, self.n_latent, self.width, self.depth, self.hidden_rate, self.n_samples)

    def _make_method(self, trained: dict[str, Any], learned: NDArray[np.bool_]) -> VaeacMethod:  # noqa: ARG002
        return VaeacMethod(
            **trained,
            n_latent=self.n_latent,
            width=self.width,
            depth=self.depth,
            hidden_rate=float(self.hidden_rate),
            n_samples=self.n_samples,
            draws=self.target == "distribution",
        )
