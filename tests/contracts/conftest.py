"""Each test of a promise runs on every imputer."""

from __future__ import annotations

import pytest

from every_imputer import IMPUTERS, Make


@pytest.fixture(params=IMPUTERS)
def make(request: pytest.FixtureRequest) -> Make:
    return IMPUTERS[request.param]


@pytest.fixture
def name_of(request: pytest.FixtureRequest, make: Make) -> str:
    """Which imputer `make` makes, where a promise differs."""
    return next(name for name, factory in IMPUTERS.items() if factory is make)
