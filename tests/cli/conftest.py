"""Running the command line inside the test, and change logs without a server."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pgoutput_construct import Lsn, Session
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.changelog.blocks import block_of
from tests.live.recording import Recording
from tests.postgres.shop import Shop

Run = Callable[..., Result]
_NUMBERS = itertools.count()


@pytest.fixture
def run() -> Run:
    """Run ``pgoutput`` with arguments, and bytes on its standard input."""

    def call(*arguments: object, stdin: bytes = b"") -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)

    return call


@pytest.fixture
def messages_of() -> Callable[[Result], list[dict[str, Any]]]:
    """Read the lines that decode printed, which must be ASCII."""

    def read(result: Result) -> list[dict[str, Any]]:
        return [json.loads(line) for line in result.stdout_bytes.decode("ascii").splitlines()]

    return read


@pytest.fixture
def change_log(tmp_path: Path, recordings: dict[str, Recording]) -> Path:
    """Return a change log in several segments with the payloads of one recording."""
    from pgoutput_construct.postgres import LogOptions, LogWriter, Position

    recording, directory = recordings["18-v4-text"], tmp_path / "log"
    options: Any = {"proto_version": recording.mode.proto_version, "streaming": recording.mode.streaming}
    session = Session(**options)
    with LogWriter(directory) as writer:
        writer.use(
            LogOptions(
                slot="s",
                publications=("p",),
                server_version=180004,
                system_identifier="7",
                database="d",
                **options,
            )
        )
        for number, payload in enumerate(recording.payloads):
            writer.append(block_of(session, number, payload))
            session.parse(payload)
            if number % 200 == 199:
                writer.publish(Position(Lsn(number)))
        writer.publish(Position(Lsn(len(recording.payloads))))
    return directory


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Return a database with a table, a publication and a slot, and an empty place for a log."""
    with Shop.create(server18, f"cli{next(_NUMBERS)}", tmp_path / "log") as shop:
        yield shop
