"""MIWAE: a deep latent variable model of incomplete rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from .._checks import check_choice
from .._random import generator
from .._row_noise import uniform
from .._stored import stored
from .._torch import torch_for
from ..estimator import TableParameters
from ._deep import SIZE, STORED, DeepImputer, DeepMethod
from .standardised import StandardisedModel

if TYPE_CHECKING:
    from torch import Tensor

    from ._networks import Miwae


@stored(**STORED, n_latent=SIZE, width=SIZE, n_samples=SIZE, n_imputation_samples=SIZE)
@dataclass(frozen=True)
class MiwaeMethod(DeepMethod):
    """A latent variable model of rows, applied by importance sampling."""

    n_latent: int
    width: int
    student: bool
    n_samples: int
    n_imputation_samples: int
    draws: bool  # draw from the distribution of a missing value instead of returning its mean

    def make_network(self) -> Miwae:
        from ._networks import Miwae

        return Miwae(self.n_columns, self.n_latent, self.width, self.n_samples, self.student)

    @property
    def _numbers_per_row(self) -> int:
        return self.n_imputation_samples * max(3 * self.n_columns, self.width)

    def _fill(self, values: Tensor, missing: Tensor, keys: NDArray[np.uint64]) -> Tensor:
        torch = torch_for("MIWAEImputer")
        noise = generator(self.seed, "importance samples").standard_normal((self.n_imputation_samples, 1, self.n_latent))
        samples = torch.from_numpy(noise).to(values)
        if not self.draws:
            return cast("Tensor", self.network.expect(values, missing, samples))
        log_weights, decoded = self.network.weigh(values, missing, samples)
        upto = torch.softmax(log_weights, dim=0).cumsum(dim=0)  # [K, n]
        chance = torch.from_numpy(uniform(keys, 0)).to(values)
        chosen = (upto < chance).sum(dim=0).clamp(max=len(upto) - 1)
        centre, scale, degrees = (each[chosen, torch.arange(len(chosen))].cpu().numpy() for each in decoded)
        cells = np.column_stack([uniform(keys, 1 + k) for k in range(values.shape[1])])
        return cast("Tensor", torch.from_numpy(centre + scale * student_t.ppf(cells, degrees)))


@stored()
@dataclass(frozen=True)
class MiwaeModel(StandardisedModel):
    """MIWAE on standardised columns."""

    method: MiwaeMethod | None


class MIWAEImputer(DeepImputer):
    """Impute missing values by a deep latent variable model (MIWAE: Mattei & Frellsen, ICML 2019).

    A decoder maps a few latent variables to the distribution of a row; an encoder proposes latent variables for incomplete
    rows. Both are trained by the importance-weighted bound on the likelihood of the observed values. Missing values are
    imputed by their conditional expectation, estimated by self-normalised importance sampling. Needs torch:
    ``pip install "otimpute[torch]"``.

    The defaults are those of the authors for tables: two hidden layers of 128 tanh units in both networks, 10 latent
    variables, Student's t, 20 importance samples, batches of 64, Adam at 10⁻³, missing values passed to the encoder as 0.
    Only the length of the training and the stopping rule differ.

    Parameters
    ----------
    n_latent : int, default=10
        Number of latent variables.
    width : int, default=128
        Number of units in each hidden layer.
    likelihood : {"student", "gaussian"}, default="student"
        Distribution of a cell given the latent variables; Student's t is more robust to outliers.
    n_samples : int, default=20
        Number of importance samples per row in training; more make the bound tighter.
    n_imputation_samples : int, default=1000
        Number of importance samples per row when imputing.
    target : {"values", "distribution"}, default="values"
        Whether to impute the expected value, or a draw from the distribution given the rest of the row (a latent variable drawn
        by importance weight, then the cells given it).
    max_steps : int or "auto", default="auto"
        Maximum number of updates; "auto" means 4000, or 100 passes over the rows if that is more. The fit stops earlier
        when the error on hidden values no longer improves.
    batch_size : int, default=64
        Number of rows per update; rows are reshuffled after each pass.
    learning_rate : float, default=1e-3
        Step size of Adam.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Fraction of the observed values to hide from the fit to score it; the scores are in ``history_``, and
        the parameters with the best score (RMSE) are kept. The hidden values are not changed in the result. "auto" hides a
        tenth, or none if the table has fewer than 50 rows.
    patience : int, default=6
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
    >>> X_imputed = MIWAEImputer(max_steps=600, random_state=0).fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.6 * np.abs(X - np.nanmean(X_incomplete, axis=0))[missing].mean())
    True
    """

    model_class: ClassVar[type] = MiwaeModel
    fewest_steps = 4000

    def __init__(
        self,
        *,
        n_latent: int = 10,
        width: int = 128,
        likelihood: str = "student",
        n_samples: int = 20,
        n_imputation_samples: int = 1000,
        target: str = "values",
        max_steps: int | str = "auto",
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        validation_fraction: float | str = "auto",
        patience: int = 6,
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
        self.likelihood = likelihood
        self.n_samples = n_samples
        self.n_imputation_samples = n_imputation_samples
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
        check_choice("likelihood", self.likelihood, ["student", "gaussian"])
        check_choice("target", self.target, ["values", "distribution"])

    def _make_network(self, n_columns: int, *, validates: bool) -> Miwae:  # noqa: ARG002
        from ._networks import Miwae

        return Miwae(n_columns, self.n_latent, self.width, self.n_samples, self.likelihood == "student")

    def _make_method(self, trained: dict[str, Any], learned: NDArray[np.bool_]) -> MiwaeMethod:  # noqa: ARG002
        return MiwaeMethod(
            **trained,
            n_latent=self.n_latent,
            width=self.width,
            student=self.likelihood == "student",
            n_samples=self.n_samples,
            n_imputation_samples=self.n_imputation_samples,
            draws=self.target == "distribution",
        )
