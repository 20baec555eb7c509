"""What fuzzing has found."""

import json
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from tools.fuzz.log_targets import SEEDS, with_footer, written_log

SHAPES: list[tuple[str, Any]] = [
    ("options", 4),
    ("options.server_version", "18"),
    ("options.database", 7),
    ("position", []),
    ("position.prepared", []),
    ("checks", []),
    ("events", "1"),
    ("said_options", 1),
    ("payload_bytes", None),
    ("first_seq", 0.0),
]


def _refuses(directory: Path, footer: Any) -> None:
    log, _ = written_log()
    (directory / log.segment).write_bytes(with_footer(log.content, json.dumps(footer).encode()))
    with pytest.raises(ChangeLogError, match=f"{log.segment}: damaged"):
        ChangeLog(directory)


@pytest.mark.parametrize(("path", "value"), SHAPES, ids=[path for path, _ in SHAPES])
def test_a_footer_of_another_shape_is_damage(path: str, value: Any, tmp_path: Path) -> None:
    """A footer with a valid checksum and a field of a wrong type is reported as damage."""
    footer = json.loads(next(iter(SEEDS["footer"]())))
    *above, name = path.split(".")
    part = footer[above[0]] if above else footer
    part[name] = value
    _refuses(tmp_path, footer)


@pytest.mark.parametrize("footer", [8, [], None, "x"], ids=repr)
def test_a_footer_that_is_not_an_object_is_damage(footer: Any, tmp_path: Path) -> None:
    """Nor is any other JSON a footer."""
    _refuses(tmp_path, footer)


def test_the_footer_itself_is_read(tmp_path: Path) -> None:
    """What the tests above change is read as it was."""
    log, _ = written_log()
    (footer, *_) = SEEDS["footer"]()
    (tmp_path / log.segment).write_bytes(with_footer(log.content, footer))
    assert list(ChangeLog(tmp_path).entries()) == log.facts[0]
