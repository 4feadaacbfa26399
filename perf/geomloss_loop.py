"""The peer: the paper's Algorithm 1 as published, written by us on geomloss (torch, float64, one thread; or on a GPU)."""

from __future__ import annotations

import time

import numpy as np
import torch
from geomloss import SamplesLoss


def impute(
    X: np.ndarray,
    n_steps: int,
    seed: int,
    batch_size: int | None = None,
    device: str = "cpu",
    kind: torch.dtype = torch.float64,
) -> tuple[np.ndarray, float]:
    """Impute a whitened table; returns it and the seconds per gradient step."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    table = torch.tensor(X, dtype=kind, device=device)
    missing = torch.isnan(table)
    means = torch.nanmean(table, 0)
    n, _ = table.shape
    m = batch_size or (128 if n > 256 else 2 ** int(np.log2(n // 2)))
    noise = torch.randn(table.shape, generator=generator, dtype=torch.float64).to(table)
    values = (means + 0.1 * noise)[missing].requires_grad_()
    # geomloss's blur is the square root of ε; the authors pass .05 · median(½‖x − y‖²) for it.
    divergence = SamplesLoss("sinkhorn", p=2, blur=authors_blur(table, means), scaling=0.9, backend="tensorized")
    optimizer = torch.optim.RMSprop([values], lr=1e-2)
    begun = time.perf_counter()
    for _ in range(n_steps):
        filled = table.clone()
        filled[missing] = values
        first, second = (torch.randperm(n, generator=generator)[:m] for _ in range(2))
        loss = divergence(filled[first], filled[second])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = (time.perf_counter() - begun) / n_steps
    filled = table.clone()
    filled[missing] = values.detach()
    return filled.cpu().numpy(), seconds


def authors_blur(table: torch.Tensor, means: torch.Tensor) -> float:
    filled = torch.where(torch.isnan(table), means, table)[:2000]
    cost = torch.nn.functional.pdist(filled) ** 2 / 2
    return 0.05 * float(cost[cost > 0].median())
