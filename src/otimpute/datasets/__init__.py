"""The 23 data sets of the paper, and two-dimensional toy data.

>>> from otimpute.datasets import load_dataset
>>> wine = load_dataset("wine", download=False)
>>> wine.values.shape, wine.card.columns[0]
((178, 13), 'alcohol')
"""

from .card import Card, dataset_card, list_datasets
from .fetch import DatasetUnavailableError
from .load import Dataset, load_dataset
from .toy import list_toys, make_toy

__all__ = [
    "Card",
    "Dataset",
    "DatasetUnavailableError",
    "dataset_card",
    "list_datasets",
    "list_toys",
    "load_dataset",
    "make_toy",
]
