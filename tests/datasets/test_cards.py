"""Cards say the truth about the files they describe."""

from __future__ import annotations

import csv
import hashlib
import struct
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from otimpute.datasets import dataset_card, list_datasets, load_dataset
from otimpute.datasets.card import Card, checksum

NAMES = list_datasets()


def test_there_are_23_names_in_order() -> None:
    assert len(set(NAMES)) == 23
    assert sorted(NAMES) == NAMES


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"name must be one of 'airfoil_self_noise', .*, got 'boston'"):
        dataset_card("boston")


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_complete(name: str) -> None:
    card = dataset_card(name)
    assert card.name == name
    assert len(set(card.columns)) == card.d > 1
    assert card.title
    assert card.quirks.endswith(".")
    assert "\n" not in card.quirks
    assert card.source.startswith("https://")
    assert card.licence == (None if name == "california" else "CC BY 4.0")
    assert len(bytes.fromhex(card.checksum)) == 32
    assert len(card.downloads) >= 2
    assert all(source.url.startswith("https://") for source in card.downloads)
    assert len({source.url for source in card.downloads}) == len(card.downloads)


@pytest.mark.parametrize("name", NAMES)
def test_copies_on_github_are_pinned_to_a_commit(name: str) -> None:
    for source in dataset_card(name).downloads:
        if "githubusercontent" in source.url:
            commit = source.url.split("/")[5]
            assert len(bytes.fromhex(commit)) == 20


def test_a_card_shows_its_facts_and_cannot_be_changed() -> None:
    card = dataset_card("libras")
    shown = repr(card)
    for fact in (
        "libras: Libras Movement, 360 rows × 90 columns",
        "x01, y01",
        "…, y45",
        card.source,
        card.checksum,
        "CC BY 4.0",
    ):
        assert fact in shown
    assert "not stated" in repr(dataset_card("california"))
    with pytest.raises(FrozenInstanceError):
        card.n = 3  # type: ignore[misc]


def test_the_checksum_is_of_names_sizes_and_little_endian_doubles() -> None:
    values = np.array([[1.0, -2.5], [3.25, 1e300], [0.1, 7.0]])
    text = b"a\nb\n3 2\n" + struct.pack("<6d", 1.0, -2.5, 3.25, 1e300, 0.1, 7.0)
    expected = hashlib.sha256(text).hexdigest()
    assert checksum(("a", "b"), values) == expected
    assert checksum(("a", "b"), np.asfortranarray(values)) == expected
    assert checksum(("a", "b"), values.astype(">f8")) == expected
    assert checksum(("a", "c"), values) != expected
    assert checksum(("a", "b"), values[::-1]) != expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2)), "3 rows and 2 columns, got 2 and 2"),
        (np.array([[1.5, 0.1], [-2.0, np.nan], [0.0, 3.0]]), "missing or infinite"),
        (np.array([[1.5, 0.1], [-2.0, 1e-5], [0.0, np.nextafter(3, 4)]]), "checksum of its values must be"),
    ],
)
def test_other_values_than_the_cards_are_refused(card: Card, values: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        card.check(values)


@pytest.mark.parametrize("name", [name for name in NAMES if dataset_card(name).scikit_learn])
def test_scikit_learn_ships_exactly_these_values(name: str) -> None:
    dataset = load_dataset(name, download=False)
    assert dataset.values.shape == (dataset.card.n, dataset.card.d)
    assert checksum(dataset.card.columns, dataset.values) == dataset.card.checksum


@pytest.fixture(scope="module")
def manifest(uci: Path) -> dict[str, dict[str, str]]:
    with (uci / "MANIFEST.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_the_cards_are_those_of_the_manifest(manifest: dict[str, dict[str, str]]) -> None:
    assert sorted(manifest) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_files_load_and_have_the_facts_of_their_cards(
    name: str, uci: Path, manifest: dict[str, dict[str, str]]
) -> None:
    facts, path = manifest[name], uci / f"{name}.csv"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == facts["sha256"]
    dataset = load_dataset(name, data_home=uci, download=False)
    assert dataset.values.shape == (int(facts["n"]), int(facts["d"])) == (dataset.card.n, dataset.card.d)
    assert dataset.values.dtype == np.float64
    constant = [c for c, x in zip(dataset.card.columns, dataset.values.T, strict=True) if np.ptp(x) == 0]
    assert constant == facts["constant_columns"].split()
    repeated = len(dataset.values) - len(np.unique(dataset.values, axis=0))
    assert repeated == int(facts["duplicate_rows"])
    assert (f"{repeated} row" in dataset.card.quirks) == (repeated > 0)


def test_a_frame_has_the_values_under_the_cards_names(uci: Path) -> None:
    pandas = pytest.importorskip("pandas")
    dataset = load_dataset("qsar_biodegradation", data_home=uci)
    expected = pandas.read_csv(uci / "qsar_biodegradation.csv").astype(float)
    pandas.testing.assert_frame_equal(dataset.data, expected, rtol=1e-15)


def test_changing_a_frame_leaves_the_values_alone() -> None:
    dataset = load_dataset("iris", download=False)
    frame = dataset.data
    frame.iloc[0, 0] = 99.0
    assert dataset.values[0, 0] == 5.1
    assert repr(dataset) == "Dataset('iris', 150 rows × 4 columns)"
    assert set(frame.dtypes) == {np.dtype(np.float64)}
