"""What the deep methods share: one loop over mini-batches, values hidden to see when to stop, and candour about the outcome."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_real
from .._interrupt import one_interrupt
from .._random import generator
from .._row_noise import keys_by_content, keys_by_place
from .._stored import IfThere, Kind, NamedArrays, Plain, Scalar, Whole
from .._torch import take_weights, torch_for, torch_session, weights_of
from .._warn import warn_user
from ..estimator import Callback, FitProgress, check_callbacks, hide_cells, progress_bar, score_cells, warn_of_stop
from ..exceptions import DivergedError, OtimputeWarning, StoredFileError
from .standardised import Holes, Rows, StandardisedImputer

if TYPE_CHECKING:
    from torch import Tensor

    from ._networks import Learner

_FEWEST_PASSES = 100  # over the rows, where the length of a training is automatic; the authors of VAEAC take as many
_N_WINDOWS = 40
_SHORTEST_WINDOW = 10
_SHARE_HIDDEN = 0.1
_FEWEST_ROWS_TO_HIDE = 50
_MOST_ROWS_SCORED = 2000
_LARGEST = 100_000  # layer, or number of draws
_NO_BETTER = 0.98  # of the error of column means: the best of forty scores is a little better by chance
_NUMBERS_AT_A_TIME = 2**22


@dataclass
class _Outcome:
    """How a training ended."""

    n_steps: int
    best_step: int
    stop_reason: str
    history: dict[str, list[float]]


class DeepImputer(StandardisedImputer):
    """Base of the deep imputers. A subclass makes a network and has it fill rows."""

    _fewest_steps: ClassVar[int]

    max_steps: int | str
    batch_size: int
    learning_rate: float
    validation_fraction: float | str
    patience: int
    max_seconds: float | None
    device: str
    verbose: int
    callbacks: Any

    _stored: ClassVar[Mapping[str, Kind]] = {
        "n_steps_": IfThere(Whole()),
        "best_step_": IfThere(Whole()),
        "stop_reason_": IfThere(Scalar(str)),
        "converged_": IfThere(Scalar(bool)),
        "history_": IfThere(Plain()),
        "_weights": IfThere(NamedArrays()),
        "_seed": IfThere(Whole()),
    }

    @abstractmethod
    def _make_network(self, n_columns: int) -> Learner:
        """A network that has learned nothing yet."""

    @abstractmethod
    def _fill(self, network: Learner, values: Tensor, missing: Tensor, keys: NDArray[np.uint64]) -> Tensor:
        """Values ``[n, d]`` for all cells of some rows, each row alone; what is random in it follows from the rows' keys."""

    @abstractmethod
    def _numbers_per_row(self, n_columns: int) -> int:
        """How many numbers `_fill` needs at once for a row."""

    def _check_sizes(self) -> None:
        """Check what networks and draws are made of; that of a file too."""
        for name in ("n_latent", "width", "depth", "n_samples", "n_imputation_samples"):
            size = getattr(self, name, None)
            if size is not None and check_count(name, size) > _LARGEST:
                raise ValueError(f"{name} must be at most {_LARGEST:,}, got {size:,}")

    def _check_parameters(self) -> None:
        torch_for(type(self).__name__)
        self._check_sizes()
        if self.max_steps != "auto":
            check_count("max_steps", self.max_steps, advice='pass "auto" to derive it from the table')
        check_count("batch_size", self.batch_size)
        check_real("learning_rate", self.learning_rate, above=0)
        if self.validation_fraction != "auto":
            check_real("validation_fraction", self.validation_fraction, at_least=0, below=1, advice='pass "auto" for a tenth')
        check_count("patience", self.patience)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, above=0, advice="pass None for no limit")
        self._device()
        check_callbacks(self.callbacks)

    def _device(self) -> str:
        torch = torch_for(type(self).__name__)
        check_choice("device", self.device, ["auto", "cpu", "cuda"])
        there = torch.cuda.is_available()
        if self.device == "cuda" and not there:
            raise ValueError('device="cuda", but torch finds no GPU here; pass "cpu", or "auto" to use one where there is one')
        return "cuda" if there and self.device != "cpu" else "cpu"

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:
        torch, device = torch_for(type(self).__name__), self._device()
        hidden = self._choose_hidden(rows, holes, seed)
        free = holes | hidden
        values = torch.from_numpy(np.where(free, 0.0, rows).astype(np.float32)).to(device)
        missing = torch.from_numpy(free.astype(np.float32)).to(device)
        self._validates, self._learned = bool(hidden.any()), np.asarray(free.any(axis=0))
        with torch_session(seed):
            network = self._make_network(holes.shape[1]).to(device)
            network.prepare(values, missing)
            score = _Score.of(rows, hidden, values, missing)
            outcome = self._train(network, values, missing, score)
        self._seed = seed
        self._network_ready = network
        self._weights = weights_of(network.to("cpu"), type(self).__name__)
        self.n_steps_, self.best_step_, self.stop_reason_ = outcome.n_steps, outcome.best_step, outcome.stop_reason
        self.history_ = outcome.history
        self.converged_ = outcome.stop_reason == "validation"
        warn_of_stop(outcome.stop_reason, f"{outcome.n_steps} steps")
        if score is not None:
            self._warn_if_useless(score.truth)
        return self._complete(rows, holes, keys_by_place(len(rows), seed))

    def _choose_hidden(self, rows: Rows, holes: Holes, seed: int) -> NDArray[np.bool_]:
        share = self.validation_fraction
        if isinstance(share, str):
            share = _SHARE_HIDDEN if len(rows) >= _FEWEST_ROWS_TO_HIDE else 0.0
        return hide_cells(holes, share, generator(seed, "validation"), self._groups[self._varying])

    def _train(self, network: Learner, values: Tensor, missing: Tensor, score: _Score | None) -> _Outcome:
        deadline = np.inf if self.max_seconds is None else time.perf_counter() + float(self.max_seconds)
        with progress_bar(type(self).__name__.removesuffix("Imputer"), self.verbose) as bar:
            outcome = _train(
                network, values, missing, score, [*bar, *check_callbacks(self.callbacks)], deadline,
                max_steps=self._n_steps(len(values)), batch_size=self.batch_size,
                learning_rate=self.learning_rate, patience=self.patience,
            )  # fmt: skip
            bar.ended(outcome.stop_reason)
            return outcome

    def _n_steps(self, n_rows: int) -> int:
        if self.max_steps == "auto":
            return max(self._fewest_steps, _FEWEST_PASSES * -(-n_rows // self.batch_size))
        return int(self.max_steps)

    def _warn_if_useless(self, truth: NDArray[np.float64]) -> None:
        """A network that learned nothing returns something like column means; that must not go unnoticed."""
        scores = self.history_.get("validation_rmse")  # none when the first step was interrupted
        if scores and min(scores) > _NO_BETTER * (of_means := score_cells(truth, np.zeros_like(truth))[1]):
            warn_user(
                f"{type(self).__name__} is hardly better than column means on values hidden from it (RMSE {min(scores):.3f}, "
                f"column means {of_means:.3f}): columns say little about each other, or there are too few rows for a network; "
                "use AutoImputer or GaussianEMImputer",
                OtimputeWarning,
            )

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        return self._complete(rows, holes, keys_by_content(rows, holes, self._seed))

    def _complete(self, rows: Rows, holes: Holes, keys: NDArray[np.uint64]) -> Rows:
        torch, device = torch_for(type(self).__name__), self._device()
        # In float32 a product of matrices rounds visibly otherwise than one of their rows: a row would depend on its company.
        network = self._network().to(device, torch.float64)
        completed = rows.copy()
        incomplete = np.flatnonzero(holes.any(axis=1))
        at_a_time = max(1, _NUMBERS_AT_A_TIME // self._numbers_per_row(rows.shape[1]))
        with torch.no_grad(), torch_session(self._seed):
            for begin in range(0, len(incomplete), at_a_time):
                some = incomplete[begin : begin + at_a_time]
                values = torch.from_numpy(rows[some]).to(device)
                missing = torch.from_numpy(holes[some].astype(np.float64)).to(device)
                filled = self._fill(network, values, missing, keys[some]).cpu().numpy()
                completed[some] = np.where(holes[some], filled, rows[some])
        return completed

    def _network(self) -> Learner:
        """The trained network, made of its weights where it comes from a file."""
        network: Learner | None = vars(self).get("_network_ready")
        if network is None:
            torch = torch_for(type(self).__name__)
            try:
                with torch_session(0), torch.device("meta"):  # sizes that a file invents must not take memory
                    network = self._make_network(len(self._varying))
            except (RuntimeError, TypeError, ValueError, OverflowError) as error:
                raise StoredFileError(f"the parameters make no network ({str(error)[:80]}); save the imputer again") from error
            take_weights(network, self._weights, type(self).__name__)
            self._network_ready = network
        return network

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        try:
            self._check_sizes()
        except (TypeError, ValueError) as error:
            raise StoredFileError(f"{error}; save the imputer again") from error
        if len(self._varying):
            if getattr(self, "depth", 0) > len(self._weights):
                raise StoredFileError("there are fewer weights than layers; save the imputer again")
            self._network()  # weights that do not fit are an error now, not later


@dataclass(frozen=True)
class _Score:
    """How far off hidden cells are."""

    values: Tensor  # of the rows that have any
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
        """MAE and RMSE of every candidate."""
        guesses = network.guess(self.values, self.missing).cpu().numpy()
        return [score_cells(self.truth, guess[self.cells]) for guess in guesses]


def _train(
    network: Learner,
    values: Tensor,
    missing: Tensor,
    score: _Score | None,
    callbacks: Sequence[Callback],
    deadline: float,
    *,
    max_steps: int,
    batch_size: int,
    learning_rate: float,
    patience: int,
) -> _Outcome:
    """Train on mini-batches, reshuffled each epoch; keep the parameters that were best on hidden values."""
    torch = torch_for("a deep imputer")
    optimizers = network.optimizers(learning_rate)
    window = min(max_steps, max(_SHORTEST_WINDOW, -(-max_steps // _N_WINDOWS)))
    history: dict[str, list[float]] = {"step": [], "training_loss": []}
    begun = time.perf_counter()
    best_score, best_step, best, candidate = np.inf, 0, None, 0
    losses: list[Tensor] = []
    step, reason = 0, "max_steps"

    def finish_window() -> None:
        nonlocal best_score, best_step, best, candidate
        loss = torch.stack(losses).mean(dim=0).cpu()
        losses.clear()
        if not torch.isfinite(loss).all():
            raise DivergedError(
                f"the training diverged before step {step} of {max_steps} (loss {loss[candidate]:g}); "
                f"lower learning_rate={learning_rate:g}, or remove columns that repeat others"
            )
        if score is not None:
            with torch.no_grad():
                scores = score(network)
            now = int(np.argmin([rmse for _, rmse in scores]))
            if scores[now][1] < best_score:
                best_score, best_step, candidate = scores[now][1], step, now
                best = copy.deepcopy(network.state_dict())
            history.setdefault("validation_mae", []).append(scores[now][0])
            history.setdefault("validation_rmse", []).append(scores[now][1])
        history["step"].append(step)
        history["training_loss"].append(float(loss[candidate]))

    batches = _batches(len(values), batch_size)
    with one_interrupt() as interrupt:
        while step < max_steps and reason == "max_steps":
            rows = next(batches).to(values.device)
            losses.append(network.update(optimizers, values[rows], missing[rows]))
            step += 1
            if step % window == 0 or step == max_steps:
                finish_window()
            progress = FitProgress(step, max_steps, time.perf_counter() - begun, history)
            answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
            if best is not None and step - best_step >= patience * window:
                reason = "validation"
            elif any(answers):
                reason = "callback"
            elif step < max_steps and time.perf_counter() >= deadline:
                reason = "max_seconds"
    if interrupt.happened:
        reason = "interrupted"
    if losses:
        finish_window()
    if best is not None:
        network.load_state_dict(best)
    network.keep(candidate)
    return _Outcome(step, best_step if best is not None else step, reason, history)


def _batches(n_rows: int, batch_size: int) -> Any:
    """Which rows come next, without end."""
    torch = torch_for("a deep imputer")
    while True:
        yield from torch.randperm(n_rows).split(min(batch_size, n_rows))
