"""Errors about parameters are data first: callers read attributes, people the message."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from otimpute import AutoImputer
from otimpute._checks import check_count
from otimpute.exceptions import Message, ParameterError, ParameterTypeError, ParameterValueError, Term


def test_an_error_says_what_was_received_and_what_is_accepted() -> None:
    with pytest.raises(ParameterValueError) as caught:
        AutoImputer(n_splits=0).fit(np.eye(3))
    error = caught.value
    assert (error.parameter, error.received, error.accepted) == ("n_splits", 0, "a whole number >= 1")
    assert error.advice == "pass None to derive it from the table"
    assert str(error) == "n_splits must be a whole number >= 1, got 0; pass None to derive it from the table"
    assert isinstance(error, ValueError)
    assert not isinstance(error, TypeError)


def test_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"^n must be a whole number >= 1, got 1\.5$") as caught:
        check_count("n", 1.5)
    assert isinstance(caught.value, ParameterTypeError)
    assert isinstance(caught.value, ParameterError)
    assert not isinstance(caught.value, ValueError)


def test_errors_and_messages_survive_another_process() -> None:
    error = ParameterValueError("tol", -1, "a finite number >= 0", "raise it")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.parameter) == (type(error), str(error), "tol")
    said = Message("pass ", Term("header", False))
    for same in (pickle.loads(pickle.dumps(said)), copy.deepcopy(said)):
        assert (same, same.parts) == ("pass header=False", said.parts)
