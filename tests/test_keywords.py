"""Functions whose arguments are the fields of a dataclass: ``capture`` and ``replicate`` are two."""

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, get_type_hints

import pytest

from pgoutput_construct._keywords import takes_fields
from pgoutput_construct.postgres import CaptureOptions, capture
from pgoutput_construct.spark import ReplicateOptions, replicate


@dataclass(frozen=True)
class _Given:
    log: str
    once: bool = True
    _: KW_ONLY
    masks: Mapping[str, str] = field(default_factory=dict)


@takes_fields(_Given)
def _run(spark: int, options: _Given) -> tuple[int, _Given]:
    return spark, options


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((1, "a"), {}),
        ((1,), {"log": "a"}),
        ((), {"spark": 1, "log": "a", "masks": {}}),
        ((1, "a", True), {"masks": {}}),
    ],
)
def test_arguments_by_place_and_by_name(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Each can have a name, the first one, too."""
    assert _run(*arguments, **keywords) == (1, _Given("a"))


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        ((1,), {}, "missing a required argument: 'log'"),
        ((1, "a"), {"onc": 1}, "got an unexpected keyword argument 'onc'"),
        ((1, "a"), {"log": "b"}, "multiple values for argument 'log'"),
        ((1, "a", True, {}), {}, "too many positional arguments"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], keywords: dict[str, Any], error: str) -> None:
    """They are errors of the function that was called."""
    with pytest.raises(TypeError, match=rf"^_run\(\) {error}$"):
        _run(*arguments, **keywords)


def test_what_is_shown() -> None:
    """The signature, the annotations and the defaults of each argument."""
    shown = inspect.signature(_run).parameters
    assert list(shown) == list(get_type_hints(_run))[:-1] == ["spark", "log", "once", "masks"]
    assert shown["masks"].default == {} and shown["masks"].kind is inspect.Parameter.KEYWORD_ONLY
    for function in (capture, replicate):
        assert get_type_hints(function).keys() == inspect.signature(function).parameters.keys() | {"return"}


def test_addresses_are_not_shown() -> None:
    """They may have keys."""
    assert "secret" not in repr(CaptureOptions("slot", ["p"], "s3://key:secret@bucket/log"))
    assert "secret" not in repr(ReplicateOptions("s3://key:secret@bucket/log", "tables"))
