"""Display order and labels of settings, methods and data sets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ...catalogue import COSTS, MECHANISMS, METHODS, METRICS

_OF_SUITES = {"missforest_small": "missForest (10 trees)"}
_METHODS = {name: method.label for name, method in METHODS.items()} | _OF_SUITES
_OURS = tuple(name for name, method in METHODS.items() if method.ours)
_MECHANISMS = {name: mechanism.label for name, mechanism in MECHANISMS.items()}
_SCORES = {name: metric.label for name, metric in METRICS.items()} | dict(COSTS)
_PARTS = {"train": "training rows", "test": "new rows"}
# Words to drop from the long names of UCI data sets; the names remain distinct.
_SPARE_WORDS = {"bench", "biodegradation", "connectionist", "diagnostic", "hydrodynamics", "model", "noise", "self"}
_LONGEST = 24


def is_ours(method: str) -> bool:
    """Whether a method belongs to this package: its name begins with that of one of our imputers.

    >>> is_ours("linear_rr_paper"), is_ours("sinkhorn_tuned"), is_ours("knn")
    (True, True, False)
    """
    return method.startswith(_OURS)


def sort_methods(methods: Iterable[str]) -> list[str]:
    """Sort methods: known baselines, then other methods, then ours.

    >>> sort_methods(["sinkhorn", "zebra", "knn", "mean"])
    ['mean', 'knn', 'zebra', 'sinkhorn']
    """
    known = list(_METHODS)
    return sorted(set(methods), key=lambda m: (is_ours(m), known.index(m) if m in known else len(known), m))


def sort_settings(settings: Iterable[str]) -> list[str]:
    """Sort settings by mechanism, then by rate as a number.

    >>> sort_settings(["quantile_mnar-30", "mcar-50", "mcar-5"])
    ['mcar-5', 'mcar-50', 'quantile_mnar-30']
    """
    known = list(_MECHANISMS)

    def place(setting: str) -> tuple[int, str, float, str]:
        mechanism, rate, _ = _split(setting)
        return (known.index(mechanism) if mechanism in known else len(known), mechanism, float(rate or 0), setting)

    return sorted(set(settings), key=place)


def method_label(method: str) -> str:
    """Return the label of a method in figures.

    >>> method_label("gaussian_em"), method_label("my_forest")
    ('Gaussian EM', 'my forest')
    """
    return _METHODS.get(method) or (_spoken(method).capitalize() if is_ours(method) else _spoken(method))


def setting_label(setting: str) -> str:
    """Return the label of a setting in figures.

    >>> setting_label("logistic_mar-30"), setting_label("quantile_mnar-30-tails=upper")
    ('MAR 30 %', 'MNAR quantile 30 %, tails=upper')
    """
    mechanism, rate, options = _split(setting)
    label = _MECHANISMS.get(mechanism) or _spoken(mechanism)
    return label + (f" {rate} %" if rate else "") + (f", {options}" if options else "")


def score_label(score: str) -> str:
    """Return the label of a score in figures.

    >>> score_label("energy_distance")
    'energy distance'
    """
    return _SCORES.get(score) or _spoken(score)


def lower_is_better(score: str) -> bool:
    """Whether lower values of a score are better, as for all costs.

    >>> lower_is_better("rmse"), lower_is_better("seconds")
    (True, True)
    """
    return score not in METRICS or METRICS[score].lower_is_better


def dataset_labels(datasets: Iterable[str]) -> dict[str, str]:
    """Return short, distinct labels of data sets, in alphabetical order of the data sets.

    >>> dataset_labels(["connectionist_bench_sonar", "breast_cancer_diagnostic"])
    {'breast_cancer_diagnostic': 'breast cancer', 'connectionist_bench_sonar': 'sonar'}
    """
    names = sorted(set(datasets))
    short = {name: "_".join(word for word in name.split("_") if word not in _SPARE_WORDS) or name for name in names}
    short = {name: _cut(label) for name, label in short.items()}
    uses = Counter(short.values())
    return {name: _spoken(name if uses[label] > 1 else label) for name, label in short.items()}


def _split(setting: str) -> tuple[str, str, str]:
    """Split into mechanism, rate in percent and options; other strings are all mechanism."""
    match = re.fullmatch(r"(.+?)-(\d+(?:\.\d+)?)(?:-(.+))?", setting)
    return (match[1], match[2], match[3] or "") if match else (setting, "", "")


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _spoken(name: str) -> str:
    return name.replace("_", " ").strip() or name


def on_part(part: str, parts: Iterable[str]) -> str:
    """Return a suffix of titles that names the part, if there are several ``parts``.

    >>> on_part("test", ["train", "test"]), on_part("train", ["train"])
    (', new rows', '')
    """
    return f", {_PARTS.get(part, part)}" if len(set(parts)) > 1 else ""
