"""Suites: YAML files that define lists of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from .._checks import check_choice, check_count, check_real
from .._optional import require
from ..catalogue import make_imputer, make_mechanism
from ..datasets import list_datasets
from .task import Task, canonical, setting_name

_METHODS = "{mean: , near: {imputer: knn, n_neighbors: 3}}"
_FIELDS = {"description", "datasets", "settings", "methods", "seeds", "test_fraction", "n_draws"}


@dataclass(frozen=True)
class Method:
    """A named method: an imputer of the catalogue and its parameters."""

    name: str
    imputer: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """A way to hide values: a mechanism of the catalogue, its rate and other options."""

    mechanism: str
    rate: float
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name, as in `Task.setting`."""
        return setting_name(self.mechanism, self.rate, self.options)


@dataclass(frozen=True)
class Suite:
    """All combinations of data sets, settings, methods and seeds."""

    name: str
    description: str
    datasets: tuple[str, ...]
    settings: tuple[Setting, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    test_fraction: float
    n_draws: int

    def tasks(self) -> list[Task]:
        """Return all tasks, seed by seed, so that an unfinished run already covers everything once."""
        return [
            Task(
                dataset, setting.mechanism, setting.rate, method.name, method.imputer, seed,
                method.parameters, setting.options, self.test_fraction, self.n_draws,
            )
            for seed in self.seeds
            for dataset in self.datasets
            for setting in self.settings
            for method in self.methods
        ]  # fmt: skip

    def only(
        self,
        *,
        datasets: Iterable[str] = (),
        settings: Iterable[str] = (),
        methods: Iterable[str] = (),
        seeds: Iterable[int] = (),
    ) -> Suite:
        """Restrict the suite to these names; empty arguments do not restrict. Seeds need not be those of the suite."""
        return replace(
            self,
            datasets=_chosen("data set", datasets, self.datasets, str),
            settings=_chosen("setting", settings, self.settings, lambda setting: setting.name),
            methods=_chosen("method", methods, self.methods, lambda method: method.name),
            seeds=tuple(dict.fromkeys(seeds)) or self.seeds,
        )

    def on_gpu(self) -> Suite:
        """Return the suite with ``device="cuda"`` for all methods that have this parameter and do not set it.

        These are different tasks: results differ only by rounding, but a folder that mixed the run times of CPU and GPU would
        be misleading.
        """
        return replace(self, methods=tuple(_method_on_gpu(method) for method in self.methods))


def list_suites() -> list[str]:
    """Return the names of the suites included in otimpute.

    >>> list_suites()
    ['auto', 'oos', 'paper', 'runtime', 'smoke']
    """
    return sorted(Path(each.name).stem for each in resources.files(__package__).joinpath("suites").iterdir())


def load_suite(name_or_path: str | Path) -> Suite:
    """Read a suite, by the name of one included in otimpute or by the path of a YAML file.

    >>> suite = load_suite("smoke")
    >>> len(suite.tasks()) == len(suite.datasets) * len(suite.settings) * len(suite.methods) * len(suite.seeds)
    True
    """
    yaml = require("yaml", "reading a suite", "bench")
    path = Path(name_or_path)
    if str(name_or_path) in list_suites():
        file: Any = resources.files(__package__).joinpath("suites", f"{name_or_path}.yaml")
    elif path.is_file():
        file = path
    else:
        raise FileNotFoundError(
            f"there is no suite {str(name_or_path)!r}: pass one of {', '.join(list_suites())}, or the path of a YAML file"
        )
    try:
        return _suite(path.stem, yaml.safe_load(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ValueError(f"suite {path.name}: not YAML: {error}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"suite {path.name}: {error}") from None


def _suite(name: str, content: Any) -> Suite:
    if not isinstance(content, dict) or not {"settings", "methods"} <= set(content) <= _FIELDS:
        got = sorted(map(str, content)) if isinstance(content, dict) else content
        raise ValueError(f"expected the entries {', '.join(sorted(_FIELDS))} (settings and methods always), got {got}")
    datasets, seeds = content.get("datasets", "all"), content.get("seeds", 1)
    if datasets == "all":
        datasets = list_datasets()
    if isinstance(seeds, int):
        seeds = list(range(check_count("seeds", seeds)))
    suite = Suite(
        name,
        str(content.get("description", "")).strip(),
        tuple(check_choice("data set", each, list_datasets()) for each in _several("datasets", datasets)),
        tuple(_setting(each) for each in _several("settings", content["settings"])),
        tuple(_method(label, each) for label, each in _entries("methods", content["methods"], _METHODS).items()),
        tuple(check_count("a seed", seed, at_least=0) for seed in _several("seeds", seeds)),
        check_real("test_fraction", content.get("test_fraction", 0.0), at_least=0, below=1),
        check_count("n_draws", content.get("n_draws", 1)),
    )
    for what, names in (
        ("datasets", suite.datasets),
        ("settings", [setting.name for setting in suite.settings]),
        ("seeds", suite.seeds),
    ):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} must differ, got {', '.join(map(str, names))}")
    return suite


def _several(what: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{what} must be a list of at least one, got {value!r}")
    return value


def _entries(what: str, value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{what} must be entries with names, such as {example}, got {value!r}")
    canonical(value)  # raises for what a record cannot store, such as dates and NaN
    return dict(value)


def _setting(content: Any) -> Setting:
    options = _entries("a setting", content, "{mechanism: mcar, rate: 0.3}")
    if not {"mechanism", "rate"} <= set(options):
        raise ValueError(f"a setting needs a mechanism and a rate, got {content}")
    mechanism, rate = options.pop("mechanism"), check_real("rate", options.pop("rate"), at_least=0, below=1)
    make_mechanism(mechanism, rate, options)  # report wrong names now
    return Setting(mechanism, rate, options)


def _method(label: str, content: Any) -> Method:
    parameters = {} if content is None else _entries(f"method {label!r}", content, "{imputer: knn, n_neighbors: 3}")
    return _checked(Method(label, parameters.pop("imputer", label), parameters))


def _method_on_gpu(method: Method) -> Method:
    if "device" not in make_imputer(method.imputer, method.parameters).get_params(deep=False):
        return method
    return _checked(replace(method, parameters={"device": "cuda", **method.parameters}))


def _checked(method: Method) -> Method:
    with suppress(ModuleNotFoundError):  # a missing package must not prevent the other methods from running
        make_imputer(method.imputer, method.parameters).check_parameters()  # report wrong values now
    return method


def _chosen(what: str, wanted: Iterable[str], there: Sequence[Any], name_of: Any) -> tuple[Any, ...]:
    names = list(wanted)
    for name in names:
        check_choice(what, name, [name_of(each) for each in there])
    return tuple(each for each in there if not names or name_of(each) in names)
