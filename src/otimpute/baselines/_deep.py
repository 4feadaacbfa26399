"""Base classes of the deep imputers: training on mini-batches, early stopping on hidden values, and a warning if it failed."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_real
from .._random import generator
from .._row_noise import keys_by_content, keys_by_place
from .._stored import NamedArrays, Whole
from .._torch import take_weights, torch_for, torch_session, weights_of
from .._warn import warn_user
from ..estimator import hide_cells, score_cells
from ..exceptions import DivergedError, OtimputeWarning
from ..fitting import check_callbacks, progress_bar
from ..fitting.training import Look, Process, Schedule, TrainingOutcome, train
from .standardised import Holes, RowFit, Rows, StandardisedImputer, TrainingSet

if TYPE_CHECKING:
    from torch import Tensor

    from ._networks import Learner

_FEWEST_PASSES = 100  # over the rows if max_steps="auto"; as the authors of VAEAC
_N_WINDOWS = 40
_SHORTEST_WINDOW = 10
_SHARE_HIDDEN = 0.1
_FEWEST_ROWS_TO_HIDE = 50
_MOST_ROWS_SCORED = 2000
_LARGEST = 100_000  # for layer sizes and numbers of draws
_NO_BETTER = 0.98  # times the error of column means: by chance, the best of forty scores is slightly better
_NUMBERS_AT_A_TIME = 2**22
_ROWS_AT_A_TIME = 32  # always as many: elementary functions are rounded by the place in a batch

# Fields that all stored networks have; each adds sizes of its own.
SIZE = Whole(at_least=1, at_most=_LARGEST)
STORED = {"weights": NamedArrays(), "n_columns": Whole(at_least=1, size="varying"), "seed": Whole()}


@dataclass(frozen=True)
class DeepMethod:
    """A trained network. Subclasses define its architecture and how it fills in rows."""

    weights: dict[str, NDArray[Any]]
    n_columns: int
    seed: int
    device: str

    def __post_init__(self) -> None:
        _ = self.network  # raise now if the weights do not fit

    @abstractmethod
    def make_network(self) -> Learner:
        """Create a network of this architecture."""

    @abstractmethod
    def _fill(self, values: Tensor, missing: Tensor, keys: NDArray[np.uint64]) -> Tensor:
        """Return values ``[n, d]`` for all cells of some rows, each row independent of the others; ``keys`` seed the noise."""

    @property
    @abstractmethod
    def _numbers_per_row(self) -> int:
        """How many numbers `_fill` holds in memory per row."""

    @cached_property
    def network(self) -> Any:
        """The network with the stored weights.

        It is in float64: in float32, rounding would make the result of a row depend visibly on the other rows of its batch.
        """
        torch = torch_for(type(self).__name__)
        try:
            with torch_session(0), torch.device("meta"):  # absurd sizes in a file must not allocate memory
                network = self.make_network()
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the parameters define no valid network ({str(error)[:80]})") from error
        take_weights(network, self.weights, type(self).__name__)
        return network.to(device_for(self.device), torch.float64)

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Return the rows with their missing values filled in."""
        return self.complete(rows, holes, keys_by_content(rows, holes, self.seed))

    def complete(self, rows: Rows, holes: Holes, keys: NDArray[np.uint64]) -> Rows:
        """Fill in missing values, with ``keys`` as the seeds of the rows."""
        torch, device = torch_for(type(self).__name__), device_for(self.device)
        completed = rows.copy()
        incomplete = np.flatnonzero(holes.any(axis=1))
        at_a_time = max(1, min(_NUMBERS_AT_A_TIME // self._numbers_per_row, _ROWS_AT_A_TIME))
        with torch.no_grad(), torch_session(self.seed):
            for begin in range(0, len(incomplete), at_a_time):
                some = incomplete[begin : begin + at_a_time]
                asked = np.resize(some, at_a_time)  # always as many, for products of matrices round by their shape
                values = torch.from_numpy(rows[asked]).to(device)
                missing = torch.from_numpy(holes[asked].astype(np.float64)).to(device)
                filled = self._fill(values, missing, keys[asked]).cpu().numpy()[: len(some)]
                completed[some] = np.where(holes[some], filled, rows[some])
        return completed


def device_for(wanted: str) -> str:
    """Return the device to compute on."""
    torch = torch_for("a deep imputer")
    check_choice("device", wanted, ["auto", "cpu", "cuda"])
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ValueError('device="cuda", but torch finds no GPU; pass "cpu", or "auto" to use a GPU if there is one')
    return "cuda" if there and wanted != "cpu" else "cpu"


class DeepImputer(StandardisedImputer):
    """Base class of the deep imputers. Subclasses create the network, and the method from the trained network."""

    fewest_steps: ClassVar[int]

    max_steps: int | str
    batch_size: int
    learning_rate: float
    validation_fraction: float | str
    patience: int
    max_seconds: float | None
    device: str
    verbose: int
    callbacks: Any

    @abstractmethod
    def _make_network(self, n_columns: int, *, validates: bool) -> Learner:
        """Create an untrained network; ``validates`` if some observed values are hidden from it for validation."""

    @abstractmethod
    def _make_method(self, trained: dict[str, Any], learned: NDArray[np.bool_]) -> DeepMethod:
        """Create the method from its first fields ``trained``; the columns ``learned [d]`` had missing values in training."""

    def check_parameters(self) -> None:
        device_for(self.device)
        for name in ("n_latent", "width", "depth", "n_samples", "n_imputation_samples"):
            size = getattr(self, name, None)
            if size is not None and check_count(name, size) > _LARGEST:
                raise ValueError(f"{name} must be at most {_LARGEST:,}, got {size:,}")
        if self.max_steps != "auto":
            check_count("max_steps", self.max_steps, advice='pass "auto" to derive it from the table')
        check_count("batch_size", self.batch_size)
        check_real("learning_rate", self.learning_rate, above=0)
        if self.validation_fraction != "auto":
            check_real("validation_fraction", self.validation_fraction, at_least=0, below=1, advice='pass "auto" for a tenth')
        check_count("patience", self.patience)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, above=0, advice="pass None for no limit")
        check_callbacks(self.callbacks)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        torch, device = torch_for(type(self).__name__), device_for(self.device)
        rows, holes, seed = training.rows, training.holes, training.seed
        hidden = hide_cells(holes, self._share_hidden(len(rows)), generator(seed, "validation"), training.groups)
        free = holes | hidden
        values = torch.from_numpy(np.where(free, 0.0, rows).astype(np.float32)).to(device)
        missing = torch.from_numpy(free.astype(np.float32)).to(device)
        with torch_session(seed):
            network = self._make_network(rows.shape[1], validates=bool(hidden.any())).to(device)
            network.prepare(values, missing)
            score = _Score.of(rows, hidden, values, missing)
            outcome = self._train(network, values, missing, score, training.deadline)
        if score is not None:
            self._warn_if_useless(score.truth, outcome)
        weights = weights_of(network.to("cpu"), type(self).__name__)
        trained = {"weights": weights, "n_columns": rows.shape[1], "seed": seed, "device": self.device}
        method = self._make_method(trained, np.asarray(free.any(axis=0)))
        completed = method.complete(rows, holes, keys_by_place(len(rows), seed))
        return RowFit(completed, method, outcome.summary(settled=["validation"]))

    def _share_hidden(self, n_rows: int) -> float:
        if isinstance(self.validation_fraction, str):
            return _SHARE_HIDDEN if n_rows >= _FEWEST_ROWS_TO_HIDE else 0.0
        return self.validation_fraction

    def _train(
        self, network: Learner, values: Tensor, missing: Tensor, score: _Score | None, deadline: float
    ) -> TrainingOutcome:
        if self.max_seconds is not None:
            deadline = min(deadline, time.perf_counter() + float(self.max_seconds))
        n_steps = self._n_steps(len(values))
        window = min(n_steps, max(_SHORTEST_WINDOW, -(-n_steps // _N_WINDOWS)))
        process = _NetworkTraining(network, values, missing, score, self.batch_size, self.learning_rate)
        with progress_bar(type(self).__name__.removesuffix("Imputer"), self.verbose) as bar:
            schedule = Schedule(n_steps, window, self.patience * window, deadline)
            outcome = train(process, schedule, [*bar, *check_callbacks(self.callbacks)])
            bar.ended(outcome.stop_reason)
            return outcome

    def _n_steps(self, n_rows: int) -> int:
        if self.max_steps != "auto":
            return int(self.max_steps)
        return max(self.fewest_steps, _FEWEST_PASSES * -(-n_rows // self.batch_size))

    def _warn_if_useless(self, truth: NDArray[np.float64], outcome: TrainingOutcome) -> None:
        """Warn if the network is not better than column means."""
        scores = outcome.history.get("validation_rmse")  # None if the first step was interrupted
        if scores and min(scores) > _NO_BETTER * (of_means := score_cells(truth, np.zeros_like(truth))[1]):
            warn_user(
                f"{type(self).__name__} is hardly better than column means on values hidden from it (RMSE {min(scores):.3f}, "
                f"column means {of_means:.3f}): columns are almost unrelated, or there are too few rows to train a network; "
                "use AutoImputer or GaussianEMImputer",
                OtimputeWarning,
            )

    def _publish(self) -> None:
        summary = self.fit_summary_
        if summary.n_steps is not None:  # at least one column varies
            self.n_steps_, self.best_step_, self.stop_reason_ = summary.n_steps, summary.best_step, summary.stop_reason
            self.history_, self.converged_ = summary.history, summary.converged


@dataclass(frozen=True)
class _Score:
    """Errors on hidden cells."""

    values: Tensor  # of the rows with hidden cells
    missing: Tensor
    cells: NDArray[np.bool_]  # [those rows, d]
    truth: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Rows, hidden: NDArray[np.bool_], values: Tensor, missing: Tensor) -> _Score | None:
        torch = torch_for("a deep imputer")
        some = np.flatnonzero(hidden.any(axis=1))[:_MOST_ROWS_SCORED]
        if len(some) == 0:
            return None
        places = torch.from_numpy(some).to(values.device)
        return cls(values[places], missing[places], hidden[some], rows[some][hidden[some]])

    def __call__(self, network: Learner) -> list[tuple[float, float]]:
        """Return MAE and RMSE of every candidate."""
        guesses = network.guess(self.values, self.missing).cpu().numpy()
        return [score_cells(self.truth, guess[self.cells]) for guess in guesses]


class _NetworkTraining(Process):
    """Training on mini-batches, reshuffled each epoch."""

    looks_at_end = True

    def __init__(
        self, network: Learner, values: Tensor, missing: Tensor, score: _Score | None, batch_size: int, learning_rate: float
    ):
        self._network, self._values, self._missing, self._score = network, values, missing, score
        self._learning_rate, self._optimizers = learning_rate, network.optimizers(learning_rate)
        self._batches = _batches(len(values), batch_size)
        self._losses: list[Tensor] = []
        self._candidate = 0  # index of the best so far
        self.history = {"step": [], "training_loss": []}

    def advance(self, first: int, count: int) -> int:  # noqa: ARG002
        rows = next(self._batches).to(self._values.device)
        self._losses.append(self._network.update(self._optimizers, self._values[rows], self._missing[rows]))
        return 1

    def look(self, step: int, *, whole: bool) -> Look:  # noqa: ARG002
        torch = torch_for("a deep imputer")
        loss = torch.stack(self._losses).mean(dim=0).cpu()
        self._losses.clear()
        if not torch.isfinite(loss).all():
            raise DivergedError(
                f"the training diverged before step {step} (loss {loss[self._candidate]:g}); "
                f"lower learning_rate={self._learning_rate:g}, or remove columns that repeat others"
            )
        best = None
        if self._score is not None:
            with torch.no_grad():
                scores = self._score(self._network)
            now = int(np.argmin([rmse for _, rmse in scores]))
            mae, best = scores[now]
            if best < min(self.history.get("validation_rmse", [np.inf])):
                self._candidate = now
            self.history.setdefault("validation_mae", []).append(mae)
            self.history.setdefault("validation_rmse", []).append(best)
        self.history["step"].append(step)
        self.history["training_loss"].append(float(loss[self._candidate]))
        return Look(settled=False, score=best)

    def keep(self) -> Any:
        return copy.deepcopy(self._network.state_dict())

    def bring_back(self, kept: Any) -> None:
        self._network.load_state_dict(kept)

    def finish(self) -> None:
        self._network.keep(self._candidate)


def _batches(n_rows: int, batch_size: int) -> Iterator[Tensor]:
    """Yield the rows of mini-batches, forever."""
    torch = torch_for("a deep imputer")
    while True:
        yield from torch.randperm(n_rows).split(min(batch_size, n_rows))
