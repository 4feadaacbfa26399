"""VAEAC: a variational autoencoder conditioned on whatever is observed."""

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
    """A generator that restores rows from latent variables and from what is observed."""

    n_latent: int
    width: int
    depth: int
    hidden_rate: float
    n_samples: int
    draws: bool  # one row, instead of the mean of several

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
    """Impute by a variational autoencoder with arbitrary conditioning (VAEAC: Ivanov, Figurnov & Vetrov, ICLR 2019).

    In training more values are hidden at random. A proposal network sees them all, a prior network only what is left; a
    generator restores the hidden ones from latent variables and from what the prior network saw, to which it is connected
    layer by layer. Holes get the mean over latent variables drawn from the prior. Needs torch:
    ``pip install "otimpute[torch]"``.

    The networks are the authors' for tables: 10 residual layers of 256 leaky units each, 64 latent variables, a fifth of the
    values hidden, unit variance of a cell, batches of 64, Adam at 3·10⁻⁴, 100 passes over the rows. Ours are the
    2000 steps that small tables get at least, and the hidden cells that say when to stop (the authors hold out rows).

    Parameters
    ----------
    n_latent : int, default=64
        Latent variables.
    width : int, default=256
        Units of a hidden layer.
    depth : int, default=10
        Residual layers of each network.
    hidden_rate : float in (0, 1), default=0.2
        Share of the observed values hidden in each step.
    n_samples : int, default=20
        Draws whose mean is imputed.
    target : {"values", "distribution"}, default="values"
        What to impute: that mean, or what the generator makes of one draw. As published, a draw is the most likely row given
        its latent variables, so that draws vary less than true values do.
    max_steps : int or "auto", default="auto"
        Most updates by Adam; automatically 2000, and more when that is fewer than 100 passes over the rows. The fit stops
        before when hidden values are no longer found better.
    batch_size : int, default=64
        Rows per update; they are reshuffled after each pass.
    learning_rate : float, default=3e-4
        Adam's step size.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Share of the observed values hidden from the fit to score it; the scores are in ``history_``, and
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
