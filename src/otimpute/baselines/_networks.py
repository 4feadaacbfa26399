"""The networks of MIWAE, GAIN and VAEAC, in a module of their own because they need torch.

All take standardised rows ``values [n, d]`` with 0 where missing, and ``missing [n, d]`` as 0 and 1. Random numbers are drawn
on the CPU, so that a seed gives the same numbers on every device.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

_SMALLEST_SCALE = 1e-3  # of standardised values; with a scale near 0 the likelihood would be unbounded
_MOST_SCORED_DRAWS = 5  # of VAEAC: more would take a third of the training time without a more useful score
_FEWEST_DEGREES = 3.0  # degrees of freedom: with 2 or fewer, Student's t has no finite variance


class Learner(torch.nn.Module):
    """Interface of the training loop. Several candidates may be trained at once; most methods have only one."""

    n_candidates = 1

    def optimizers(self, learning_rate: float) -> list[torch.optim.Optimizer]:
        """Create the optimizers of the parameters."""
        return [_adam(self, learning_rate)]

    def update(self, optimizers: Sequence[torch.optim.Optimizer], values: Tensor, missing: Tensor) -> Tensor:
        """One step on a batch of rows; returns the loss of each candidate."""
        loss = self.loss(values, missing)
        _descend(optimizers[0], loss)
        return loss.detach()[None]

    def loss(self, values: Tensor, missing: Tensor) -> Tensor:
        """Return the loss to minimise; unused by methods that override `update`."""
        raise NotImplementedError

    def prepare(self, values: Tensor, missing: Tensor) -> None:
        """Prepare for training on this table."""

    @abstractmethod
    def guess(self, values: Tensor, missing: Tensor) -> Tensor:
        """Return expected values ``[candidates, n, d]`` of all cells."""

    def keep(self, candidate: int) -> None:
        """Discard all other candidates."""


class Miwae(Learner):
    """A latent variable model of rows, and an encoder that proposes latent variables for incomplete ones."""

    def __init__(self, n_columns: int, n_latent: int, width: int, n_samples: int, student: bool):
        super().__init__()
        self.n_columns, self.n_latent, self.n_samples, self.student = n_columns, n_latent, n_samples, student
        self.encoder = _perceptron([n_columns, width, width, 2 * n_latent])
        self.decoder = _perceptron([n_latent, width, width, (3 if student else 2) * n_columns])

    def decode(self, latent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return centre, scale and degrees of freedom of every cell."""
        centre, raw_scale, *raw_degrees = self.decoder(latent).split(self.n_columns, dim=-1)
        degrees = functional.softplus(raw_degrees[0]) + _FEWEST_DEGREES if self.student else torch.full_like(centre, math.inf)
        return centre, functional.softplus(raw_scale) + _SMALLEST_SCALE, degrees

    def weigh(self, values: Tensor, missing: Tensor, noise: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Log importance weights ``[K, n]`` of latent variables made of ``noise [K, n or 1, latent]``; their rows, decoded."""
        mean, raw_spread = self.encoder(values).chunk(2, dim=-1)
        spread = functional.softplus(raw_spread) + 1e-6
        latent = mean + spread * noise
        decoded = self.decode(latent)
        log_likelihood = (_log_density(values, *decoded) * (1 - missing)).sum(dim=-1)
        # Prior over proposal: both are normal, and their constants cancel.
        log_ratio = (spread.log() + 0.5 * (noise.square() - latent.square())).sum(dim=-1)
        return log_likelihood + log_ratio, decoded

    def bound(self, values: Tensor, missing: Tensor, n_samples: int) -> Tensor:
        """The importance-weighted bound ``[n]`` on the log-likelihood of what is observed."""
        log_weights, _ = self.weigh(values, missing, self._noise(values, n_samples))
        return torch.logsumexp(log_weights, dim=0) - math.log(n_samples)

    def loss(self, values: Tensor, missing: Tensor) -> Tensor:
        return -self.bound(values, missing, self.n_samples).mean()

    def guess(self, values: Tensor, missing: Tensor) -> Tensor:
        return self.expect(values, missing, self._noise(values[:1], 5 * self.n_samples))[None]

    def expect(self, values: Tensor, missing: Tensor, noise: Tensor) -> Tensor:
        """Expected values ``[n, d]`` by self-normalised importance sampling, with ``noise [K, 1, latent]`` that rows share."""
        log_weights, (centre, _, _) = self.weigh(values, missing, noise)
        return torch.einsum("kn,knd->nd", torch.softmax(log_weights, dim=0), centre)

    def _noise(self, values: Tensor, n_samples: int) -> Tensor:
        return torch.randn(n_samples, len(values), self.n_latent).to(values)


class Gain(Learner):
    """A generator that fills in missing values and a discriminator that detects them; one pair of networks per alpha.

    Columns are scaled to [0, 1] by their smallest and largest values.
    """

    def __init__(self, n_columns: int, width: int, alphas: Sequence[float]):
        super().__init__()
        self.n_candidates = len(alphas)
        self.generator = _Candidates(self.n_candidates, [2 * n_columns, width, width, n_columns])
        self.discriminator = _Candidates(self.n_candidates, [2 * n_columns, width, width, n_columns])
        self.register_buffer("alphas", torch.tensor(alphas, dtype=torch.float32))
        self.register_buffer("low", torch.zeros(n_columns))
        self.register_buffer("range", torch.ones(n_columns))
        self.alphas: Tensor
        self.low: Tensor
        self.range: Tensor

    def optimizers(self, learning_rate: float) -> list[torch.optim.Optimizer]:
        return [_adam(part, learning_rate) for part in (self.discriminator, self.generator)]

    def prepare(self, values: Tensor, missing: Tensor) -> None:
        """Compute the scale of the columns."""
        low = torch.where(missing > 0, math.inf, values).amin(dim=0)
        high = torch.where(missing > 0, -math.inf, values).amax(dim=0)
        self.low.copy_(low)
        self.range.copy_((high - low).clamp(min=1e-6))

    def update(self, optimizers: Sequence[torch.optim.Optimizer], values: Tensor, missing: Tensor) -> Tensor:
        observed = 1 - missing
        units = (values - self.low) / self.range
        filled = self._generate(units, missing, torch.rand(units.shape).to(units))
        # The hint reveals all cells of a row except a random one, where it is ½; the loss counts only that one.
        judged = functional.one_hot(torch.randint(units.shape[1], (len(units),)), units.shape[1]).to(units)
        hints = (1 - judged) * observed + 0.5 * judged
        completed = observed * units + missing * filled
        verdict = self.discriminator(completed.detach(), hints)
        mistaken = functional.binary_cross_entropy_with_logits(verdict, observed.expand_as(verdict), reduction="none")
        _descend(optimizers[0], (judged * mistaken).sum() / len(units))
        verdict = self.discriminator(completed, hints)
        caught = -(judged * missing * functional.logsigmoid(verdict)).sum(dim=(1, 2)) / len(units)
        squared = (observed * (units - filled).square()).mean(dim=(1, 2)) / observed.mean()
        losses = caught + self.alphas * squared
        _descend(optimizers[1], losses.sum())
        return losses.detach()

    def guess(self, values: Tensor, missing: Tensor) -> Tensor:
        return self.fill(values, missing, torch.rand(values.shape).to(values))

    def fill(self, values: Tensor, missing: Tensor, noise: Tensor) -> Tensor:
        """Return the output ``[candidates, n, d]`` of the generators, given ``noise [n, d]`` between 0 and 1."""
        return self._generate((values - self.low) / self.range, missing, noise) * self.range + self.low

    def keep(self, candidate: int) -> None:
        self.n_candidates = 1
        self.alphas = self.alphas[candidate : candidate + 1]
        self.generator.keep(candidate)
        self.discriminator.keep(candidate)

    def _generate(self, units: Tensor, missing: Tensor, noise: Tensor) -> Tensor:
        shown = torch.where(missing > 0, 0.01 * noise, units)
        return torch.sigmoid(self.generator(shown.expand(self.n_candidates, *shown.shape), 1 - missing))


class Vaeac(Learner):
    """A variational autoencoder: the prior sees the values left visible, the proposal also those hidden in training."""

    def __init__(self, n_columns: int, n_latent: int, width: int, depth: int, hidden_rate: float, n_samples: int):
        super().__init__()
        self.n_latent, self.hidden_rate, self.n_samples = n_latent, hidden_rate, n_samples
        self._scored_draws: Tensor | None = None
        self.proposal_first = torch.nn.Linear(3 * n_columns, width)
        self.proposal_blocks = torch.nn.ModuleList(_Block(width, width) for _ in range(depth))
        self.proposal_last = torch.nn.Linear(width, 2 * n_latent)
        self.prior_first = torch.nn.Linear(2 * n_columns, width)
        self.prior_blocks = torch.nn.ModuleList(_Block(width, width) for _ in range(depth))
        self.prior_last = torch.nn.Linear(width, 2 * n_latent)
        self.generator_first = torch.nn.Linear(n_latent, width)
        self.generator_blocks = torch.nn.ModuleList(_Block(2 * width, width) for _ in range(depth + 1))
        self.generator_last = torch.nn.Linear(width + 2 * n_columns, n_columns)

    def loss(self, values: Tensor, missing: Tensor) -> Tensor:
        hidden = torch.maximum(missing, (torch.rand(values.shape) < self.hidden_rate).to(values))
        mean, spread = self.propose(values, missing, hidden)
        prior_mean, prior_spread, seen = self.prior(values * (1 - hidden), hidden)
        latent = mean + spread * torch.randn(mean.shape).to(mean)
        error = (self.generate(latent, seen) - values) * (hidden - missing)  # only entries that were hidden and are known
        divergence = (
            (prior_spread / spread).log() + (spread.square() + (mean - prior_mean).square()) / (2 * prior_spread.square()) - 0.5
        ).sum(dim=-1)
        # As published: priors on the parameters of the prior network, which keep them from diverging.
        leash = -prior_mean.square().sum(dim=-1) / (2 * 1e4**2) + 1e-4 * (prior_spread.log() - prior_spread).sum(dim=-1)
        return (0.5 * error.square().sum(dim=-1) + divergence - leash).mean() / values.shape[1]

    def propose(self, values: Tensor, missing: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the latent variables, given all known values."""
        state = functional.leaky_relu(self.proposal_first(torch.cat([values, missing, hidden], dim=-1)))
        for block in self.proposal_blocks:
            state = block(state)
        return _normal(self.proposal_last(state))

    def prior(self, values: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return mean and standard deviation given the visible values, and the skip connections, last layer first."""
        inputs = torch.cat([values, hidden], dim=-1)
        states = [functional.leaky_relu(self.prior_first(inputs))]
        for block in self.prior_blocks:
            states.append(block(states[-1]))
        mean, spread = _normal(self.prior_last(states[-1]))
        return mean, spread, [*reversed(states), inputs]

    def generate(self, latent: Tensor, seen: Sequence[Tensor]) -> Tensor:
        """Return the means of all cells, for latent variables ``[..., n, latent]``."""
        *states, inputs = (each.expand(*latent.shape[:-1], -1) for each in seen)
        state = functional.leaky_relu(self.generator_first(latent))
        for block, other in zip(self.generator_blocks, states, strict=True):
            state = block(state, other)
        made: Tensor = self.generator_last(torch.cat([state, inputs], dim=-1))
        return made

    def guess(self, values: Tensor, missing: Tensor) -> Tensor:
        if self._scored_draws is None:  # always the same draws, or the best score would be that of the luckiest ones
            self._scored_draws = torch.randn(min(self.n_samples, _MOST_SCORED_DRAWS), 1, self.n_latent)
        return self.expect(values, missing, self._scored_draws.to(values))[None]

    def expect(self, values: Tensor, missing: Tensor, noise: Tensor) -> Tensor:
        """Return means over latent variables made from ``noise [K, 1 or n, latent]``."""
        mean, spread, seen = self.prior(values, missing)
        return self.generate(mean + spread * noise, seen).mean(dim=0)


class _Block(torch.nn.Module):
    """A residual layer: its input is added to its output."""

    def __init__(self, n_inputs: int, width: int):
        super().__init__()
        self.layer = torch.nn.Linear(n_inputs, width)

    def forward(self, state: Tensor, *others: Tensor) -> Tensor:
        return state + functional.leaky_relu(self.layer(torch.cat([state, *others], dim=-1)))


class _Candidates(torch.nn.Module):
    """Perceptrons of the same shape in one batch: several small ones take no longer than one."""

    def __init__(self, n_candidates: int, sizes: Sequence[int]):
        super().__init__()
        self.weights, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        for n_in, n_out in pairwise(sizes):
            # All candidates have the same initial weights, so that they differ only in alpha.
            start = torch.randn(n_in, n_out) / math.sqrt(n_in / 2)
            self.weights.append(torch.nn.Parameter(start.repeat(n_candidates, 1, 1)))
            self.biases.append(torch.nn.Parameter(torch.zeros(n_candidates, 1, n_out)))

    def forward(self, values: Tensor, context: Tensor) -> Tensor:
        state = torch.cat([values, context.expand_as(values)], dim=-1)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            state = torch.baddbmm(bias, state if k == 0 else functional.relu(state), weight)
        return state

    def keep(self, candidate: int) -> None:
        for parameters in (self.weights, self.biases):
            for parameter in parameters:
                parameter.data = parameter.data[candidate : candidate + 1].clone()


def _perceptron(sizes: Sequence[int]) -> torch.nn.Sequential:
    parts: list[torch.nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = torch.nn.Linear(n_in, n_out)
        torch.nn.init.orthogonal_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        parts += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*parts[:-1])


def _normal(raw: Tensor) -> tuple[Tensor, Tensor]:
    mean, spread = raw.chunk(2, dim=-1)
    return mean, functional.softplus(spread).clamp(min=_SMALLEST_SCALE)


def _log_density(values: Tensor, centre: Tensor, scale: Tensor, degrees: Tensor) -> Tensor:
    """Log density of Student's t, or of the normal distribution where the degrees of freedom are infinite."""
    squared = ((values - centre) / scale).square()
    if torch.isinf(degrees).all():
        return -0.5 * squared - scale.log() - 0.5 * math.log(2 * math.pi)
    tail = 0.5 * (degrees + 1) * torch.log1p(squared / degrees)
    return log_gamma_ratio(0.5 * degrees) - 0.5 * (math.pi * degrees).log() - scale.log() - tail


def log_gamma_ratio(a: Tensor) -> Tensor:
    """Log Γ(a + ½) − log Γ(a) for a ≥ 1.5, to 1e-6: an asymptotic series at a + 2, much faster than lgamma."""
    step = torch.log(a * (a + 1) / ((a + 0.5) * (a + 1.5)))
    inverse = 1 / (a + 2)
    square = inverse.square()
    series = inverse * (-1 / 8 + square * (1 / 192 + square * (-1 / 640 + square * (17 / 14336))))
    return step - 0.5 * inverse.log() + series


def _adam(module: torch.nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=learning_rate, fused=True)  # fused: one pass over memory instead of ten


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
