"""The peer: the paper's Algorithm 3 as published, written by us on geomloss (float64 torch, one thread)."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import torch
from geomloss import SamplesLoss
from geomloss_loop import authors_blur

N_PAIRS = 10


def impute(
    X: np.ndarray,
    model: str,
    seed: int,
    n_cycles: int = 10,
    n_updates: int = 15,
    n_columns: int | None = None,
    together: bool = False,
) -> tuple[np.ndarray, float]:
    """Impute a whitened table, or begin to with ``n_columns`` of its columns per cycle; returns it and seconds per update.

    The published loop calls geomloss pair by pair; ``together`` gives it all pairs of an update as one tensor.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # modules take their weights from the global generator
    table = torch.tensor(X, dtype=torch.float64)
    missing = torch.isnan(table)
    means = torch.nanmean(table, 0)
    n, d = table.shape
    batch_size = 128 if n > 256 else 2 ** int(np.log2(n // 2))
    filled = torch.where(missing, means + 0.1 * torch.randn(n, d, dtype=torch.float64), table)
    divergence = SamplesLoss("sinkhorn", p=2, blur=authors_blur(table, means), scaling=0.9, backend="tensorized")
    models = [make_model(model, d - 1) for _ in range(d)]
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-2, weight_decay=1e-5) for m in models]
    done = 0
    begun = time.perf_counter()
    for _ in range(n_cycles):
        for column in torch.randperm(d)[:n_columns].tolist():
            observed_rows, missing_rows = (torch.nonzero(rows).ravel() for rows in (~missing[:, column], missing[:, column]))
            m = min(batch_size, len(observed_rows), len(missing_rows))
            if m == 0:
                continue
            inputs = filled[missing_rows][:, torch.arange(d) != column]
            for _ in range(n_updates):
                predicted = filled.clone()
                predicted[missing_rows, column] = models[column](inputs).ravel()
                first, second = (
                    torch.stack([rows[torch.randperm(len(rows))[:m]] for _ in range(N_PAIRS)])
                    for rows in (observed_rows, missing_rows)
                )
                if together:
                    loss = divergence(predicted[first], predicted[second]).mean()
                else:
                    pairs = zip(first, second, strict=True)
                    loss = torch.stack([divergence(predicted[x], predicted[y]) for x, y in pairs]).mean()
                optimizers[column].zero_grad()
                loss.backward()
                optimizers[column].step()
                done += 1
            with torch.no_grad():
                filled[missing_rows, column] = models[column](inputs).ravel()
    return filled.numpy(), (time.perf_counter() - begun) / done


def make_model(model: str, k: int) -> torch.nn.Module:
    sizes = [k, 1] if model == "linear" else [k, 2 * k, k, 1]
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out, dtype=torch.float64), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])
