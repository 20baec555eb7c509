"""Fixtures of the tests of the publisher."""

from pgoutput_construct.testing.fixtures import publisher

__all__ = ["publisher"]
