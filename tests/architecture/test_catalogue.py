"""The catalogue is complete, and loads nothing before it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages

import pytest

import otimpute
from otimpute.catalogue import EXPERTS, MECHANISMS, METHODS, METRICS, MethodEntry, imputer_classes, make_imputer
from otimpute.estimator import BaseImputer
from otimpute.missingness import Mechanism

NEEDS = {
    "otimpute.imputers.gpu.kernels": ["triton"],
    "otimpute.imputers.meta_sinkhorn.joint_completer": ["torch"],
    "otimpute.transport.kernels.on_chip": ["triton"],
    "otimpute.transport.kernels.streaming": ["torch", "triton"],
}


def concrete(base: type) -> Iterator[type]:
    """The classes of otimpute's public modules that derive from ``base`` and can be made."""
    for module in walk_packages(otimpute.__path__, "otimpute."):
        if "._" in module.name or not all(map(find_spec, NEEDS.get(module.name, []))):
            continue
        for _, cls in inspect.getmembers(import_module(module.name), inspect.isclass):
            if cls.__module__ == module.name and issubclass(cls, base) and not inspect.isabstract(cls):
                yield cls


def test_looking_something_up_loads_nothing() -> None:
    code = "import sys, otimpute.catalogue; print({'numpy', 'sklearn', 'numba', 'scipy', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_every_imputer_and_mechanism_has_a_name() -> None:
    assert set(concrete(BaseImputer)) == set(imputer_classes().values())
    assert set(concrete(Mechanism)) == {each.load() for each in MECHANISMS.values()}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_can_be_made(method: MethodEntry) -> None:
    imputer = make_imputer(method.name, {})
    assert type(imputer) is method.load()
    assert {name: getattr(imputer, name) for name in method.parameters} == method.parameters
    assert method.label and method.description.endswith(".")


def test_every_metric_is_the_function_of_its_name() -> None:
    assert [metric.load().__name__ for metric in METRICS.values()] == list(METRICS)


def test_all_but_variants_can_be_experts_one_after_the_other() -> None:
    assert [METHODS[name].expert for name in EXPERTS] == list(range(1, len(EXPERTS) + 1))
    others = {"AutoImputer", "ChainedImputer"}  # it combines them; it draws, rather than guesses
    assert set(imputer_classes(EXPERTS)) == set(imputer_classes()) - others
