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
    """A latent variable model of rows, by which latent variables are weighed."""

    n_latent: int
    width: int
    student: bool
    n_samples: int
    n_imputation_samples: int
    draws: bool  # from the distribution of a missing value, instead of its mean

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
    """Impute by a deep latent variable model (MIWAE: Mattei & Frellsen, ICML 2019).

    A decoder turns few latent variables into the distribution of a row; an encoder proposes latent variables for an incomplete
    one. Both are trained by the importance-weighted bound on the likelihood of what is observed. Holes get their expectation,
    by self-normalised importance sampling. Needs torch: ``pip install "otimpute[torch]"``.

    The defaults are those of the authors for tables: two hidden layers of 128 tanh units in either network, 10 latent
    variables, Student's t, 20 importance samples, batches of 64, Adam at 10⁻³, holes shown to the encoder as 0. Ours are the
    length of the training and when it stops.

    Parameters
    ----------
    n_latent : int, default=10
        Latent variables.
    width : int, default=128
        Units of a hidden layer.
    likelihood : {"student", "gaussian"}, default="student"
        Distribution of a cell given the latent variables; outliers are less unlikely under Student's t.
    n_samples : int, default=20
        Importance samples per row in training; more make the bound tighter.
    n_imputation_samples : int, default=1000
        Importance samples per row when holes are filled.
    target : {"values", "distribution"}, default="values"
        What to impute: the expected value, or a draw from the distribution given the rest of the row (a latent variable drawn
        by its importance weight, then the cells given it).
    max_steps : int or "auto", default="auto"
        Most updates by Adam; automatically 4000, and more when that is fewer than 100 passes over the rows. The fit stops
        before when hidden values are no longer found better.
    batch_size : int, default=64
        Rows per update; they are reshuffled after each pass.
    learning_rate : float, default=1e-3
        Adam's step size.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Share of the observed values hidden from the fit to score it; the scores are in ``history_``, and
        the parameters with the best of them (by RMSE) are kept. The hidden values come back untouched. Automatically a tenth
        of them, or none in tables of fewer than 50 rows.
    patience : int, default=6
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
