"""The suite as data is what the cases say, and means the same."""

import json

import pytest

from pgoutput_construct.conformance import all_cases
from pgoutput_construct.conformance.suite_file import case_from_json, suite_lines
from tools.conformance.__main__ import SUITE

pytestmark = pytest.mark.slow


def test_the_file_is_up_to_date() -> None:
    """What the generator would write; times and numbers are the same in each run."""
    assert SUITE.read_text("utf-8").splitlines() == list(suite_lines(all_cases()))


def test_cases_are_read_back() -> None:
    """Each as it was written."""
    _, *lines = SUITE.read_text("utf-8").splitlines()
    for case, line in zip(all_cases(), map(json.loads, lines), strict=True):
        read = case_from_json(line)
        assert read.play == case.play, case.name
        assert (read.name, read.level, read.demand, read.reason) == (case.name, case.level, case.demand, case.reason)
        assert (read.options, read.needs, read.server) == (case.options, case.needs, case.server)
