"""A pytest fixture: put ``pytest_plugins = ["pgoutput_construct.testing.fixtures"]`` in conftest.py."""

from collections.abc import Iterator

import pytest

from pgoutput_construct.testing.scripted_publisher import TestPublisher
from pgoutput_construct.testing.scripted_publisher import publisher as serving

__all__ = ["publisher"]


@pytest.fixture
def publisher() -> Iterator[TestPublisher]:
    """A publisher on a free port, for one test."""
    with serving() as running:
        yield running
