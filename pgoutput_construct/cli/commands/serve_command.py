"""``pgoutput serve``: serves a change log, or JSON lines, as a publisher to which servers can subscribe."""

import asyncio
import json
import os
import re
import signal
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pgoutput_construct.cli._input import open_source
from pgoutput_construct.cli._options import REPLACE_ROWS, SECONDS, command, is_log
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream.identifiers import quote_identifier

if TYPE_CHECKING:
    from pgoutput_construct.publisher import Feed, MessageFeed, Publisher

__all__ = ["serve_command"]

_LOOK_SECONDS: Final = 1.0
_LINES: Final = (".json", ".jsonl", ".ndjson")
"""Suffixes of files with JSON lines."""
_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH


@command("serve", short_help="Serve a change log as a PostgreSQL publisher.")
@click.argument("source")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5433, show_default=True, help="The port; 0 for any free."
)
@click.option("--user", help="The user that may connect.  [default: any]")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file whose first line is the password.  [default: no password]",
)
@click.option(
    "--auth",
    type=click.Choice(["scram-sha-256", "password"]),
    default="scram-sha-256",
    show_default=True,
    help="The password authentication method.",
)
@click.option("--ssl-cert", type=click.Path(exists=True, dir_okay=False), help="The certificate for TLS.")
@click.option("--ssl-key", type=click.Path(exists=True, dir_okay=False), help="The private key of the certificate.")
@click.option("--rate", type=click.IntRange(min=1), help="Maximum changes per second and client.  [default: no limit]")
@click.option("--own-pace", is_flag=True, help="Send transactions at the intervals at which they were committed.")
@click.option(
    "--slots",
    metavar="FILE",
    help="The file of the slots' positions, a path or a URL.  [default: next to SOURCE, with the suffix .slots.json]",
)
@click.option("--strict-slots", is_flag=True, help="Refuse slots that do not exist, instead of creating them.")
@click.option("--replace-rows", "replaces_rows", is_flag=True, help=REPLACE_ROWS)
@click.option(
    "--until-served", is_flag=True, help="End when a client has confirmed everything that exists at the start."
)
@click.option(
    "--wal-sender-timeout",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds of silence after which a client is disconnected.",
)
@click.option("--max-connections", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum clients.")
@click.option("--server-version", default=18, show_default=True, help="The PostgreSQL major version for JSON lines.")
@click.option(
    "--meaning",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write a scenario's meaning to: the initial statements and the final rows, as JSON.",
)
def serve_command(
    source: str,
    *,
    password_file: Path | None,
    auth: str,
    ssl_cert: str | None,
    ssl_key: str | None,
    slots: str | None,
    strict_slots: bool,
    until_served: bool,
    server_version: int,
    meaning: Path | None,
    **given: Any,
) -> None:
    """Serve SOURCE, a change log or JSON lines of pgoutput decode, to subscriptions and other replication clients.

    The SOURCE scenario:SEED is generated: transactions of all kinds, for which --meaning has the resulting tables.

    A client receives the protocol version, streaming, two_phase, binary and origin that it requests in
    START_REPLICATION, from the LSN that its slot has confirmed. Table copies in a change log are served as inserts.
    Segments that a capture adds meanwhile are served too; if the log has no segment yet, or its directory does not
    exist yet, clients wait for it. Initial table synchronization is not supported: subscribe WITH (copy_data = false).

    \b
    Examples:
      pgoutput serve changelog/ --port 5433
      psql -c "CREATE SUBSCRIPTION shop CONNECTION 'host=127.0.0.1 port=5433' PUBLICATION shop WITH (copy_data = false)"
      pgoutput decode changes.hex | pgoutput serve - --until-served
      pgoutput serve scenario:1 --meaning meaning.json
    """
    from pgoutput_construct.publisher import Publisher, Settings
    from pgoutput_construct.publisher.slots import default_slots_address

    if (ssl_cert is None) != (ssl_key is None):
        raise click.UsageError("give --ssl-cert and --ssl-key together")
    if given["rate"] is not None and given["own_pace"]:
        raise click.UsageError("give --rate or --own-pace, not both")
    if meaning is not None and not _is_scenario(source):
        raise click.UsageError("--meaning needs a scenario as SOURCE")
    password = _password(password_file)
    settings = Settings(
        method="trust" if password is None else "password" if auth == "password" else "scram-sha-256",
        password=password,
        tls=_tls(ssl_cert, ssl_key),
        slots_file=slots or (default_slots_address(source) if _may_be_log(source) or Path(source).is_file() else None),
        creates_slots=not strict_slots,
        **given,
    )
    feed = _feed(source, server_version, meaning)
    publisher = Publisher(feed, settings, lambda line: say(line, err=True))
    asyncio.run(_serve(publisher, source, feed, until_served))


async def _serve(publisher: "Publisher", source: str, feed: "Feed | None", until_served: bool) -> None:
    """Serve until a signal arrives or everything is served; without a feed wait for the first segment of a log."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        await _start(publisher)
        say(f"listening on {publisher.settings.host}:{publisher.port}")
        if feed is None:
            say(f"waiting: {source} has no segment yet; start pgoutput capture to write one")
            if (first := await _first_segment(source, stop)) is None:
                return
            publisher.serve(first)
        for line in _greeting(publisher):
            say(line)
        for lack in publisher.feed.lacks():
            say(f"warning: incomplete: {lack}", err=True)
        waiting = {asyncio.create_task(stop.wait())}
        if until_served:
            waiting.add(asyncio.create_task(publisher.until_served()))  # type: ignore[arg-type]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await publisher.stop()


async def _first_segment(source: str, stop: asyncio.Event) -> "Feed | None":
    """Wait until a log has a segment; return None if a signal arrives first."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
        if (feed := await asyncio.to_thread(_log_feed, source)) is not None:
            return feed
    return None


async def _start(publisher: "Publisher") -> None:
    try:
        await publisher.start()
    except OSError as error:
        address, number = f"{publisher.settings.host}:{publisher.settings.port}", error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror  # negative numbers are those of getaddrinfo()
        raise PgoutputError(f"cannot listen on {address}: {why}; choose another address (--host, --port)") from error


def _greeting(publisher: "Publisher") -> list[str]:
    about, settings = publisher.feed.about, publisher.settings
    tables = {(table.namespace, table.name) for table in publisher.feed.published(about.publications or ("",))}
    named = ", ".join(map(quote_identifier, about.publications)) or "any_name"
    connection = f"host={settings.host} port={publisher.port} dbname={about.database}"
    connection += f" user={settings.user}" if settings.user else ""
    connection += " password=..." if settings.password else ""
    return [
        f"{counted(len(publisher.feed.order()), 'transaction')} of {counted(len(tables), 'table')}",
        f"CREATE SUBSCRIPTION pgoutput CONNECTION '{connection}' PUBLICATION {named} WITH (copy_data = false);",
    ]


def _feed(source: str, server_version: int, meaning: Path | None) -> "Feed | None":
    """Return the feed of SOURCE; None for a log without a segment. Raises PgoutputError if it cannot be served."""
    if _is_scenario(source):
        return _scenario_feed(source, server_version, meaning)
    if _may_be_log(source):
        return _log_feed(source)
    if source != "-" and not Path(source).exists():
        remedy = "give the directory of a change log, which pgoutput capture creates, or a file of JSON lines"
        raise PgoutputError(f"{source}: No such file or directory: {remedy}")

    return _json_feed(source, server_version)


def _may_be_log(source: str) -> bool:
    """Return whether a source is a log or may become one: a path that does not exist, unless it has a JSON suffix."""
    path = Path(source)
    is_awaited = source != "-" and not _is_scenario(source) and not path.exists() and path.suffix not in _LINES
    return is_log(source) or is_awaited


def _log_feed(source: str) -> "Feed | None":
    from pgoutput_construct.changelog.reader import EmptyLogError
    from pgoutput_construct.publisher.log_feed import LogFeed

    try:
        return LogFeed(source)
    except EmptyLogError:
        return None


def _password(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        password = file.read_text("utf-8").partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError as error:
        raise PgoutputError(f"{file}: the first line is the password, and it is not UTF-8") from error
    if not password:
        raise PgoutputError(f"{file}: the first line is the password, and it is empty")
    if file.stat().st_mode & _OTHERS:
        say(f"warning: other users of this machine can read {file}: run chmod 600", err=True)
    return password


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise PgoutputError(f"{certificate}, {key}: not a certificate and its key in PEM format: {error}") from error
    return context


def _json_feed(file: str, server_version: int) -> "MessageFeed":
    """Return a feed of JSON lines; raise PgoutputError, with the line, for a message that is invalid or out of order.

    Args:
        file: The file, or ``-`` for standard input.
        server_version: The major version of PostgreSQL that the feed represents.
    """
    from pgoutput_construct.publisher import About, MessageFeed
    from pgoutput_construct.publisher._feed.message_lines import read_message_lines

    with open_source(file) as source:
        found = read_message_lines(source.lines(), source.name)
    about = About(server_version * 10000, "1", "postgres", 1, (), found.layout)
    return MessageFeed(about, found.messages)


_FORM: Final = re.compile(r"scenario:(?P<seed>\d{1,18})(?::(?P<count>\d{1,6}))?")
_COUNT: Final = 20
"""The default number of scenarios in a stream."""


def _is_scenario(source: str) -> bool:
    """Return whether ``source`` names scenarios rather than a file."""
    return source.startswith("scenario:")


def _scenario_feed(source: str, server_version: int, meaning_file: Path | None) -> "Feed":
    """Return a feed of generated scenarios; raise PgoutputError for an invalid name.

    Args:
        source: ``scenario:SEED``, or ``scenario:SEED:COUNT``.
        server_version: The major version of PostgreSQL that the feed represents.
        meaning_file: The file to which their meaning is written; None for none.
    """
    found = _FORM.fullmatch(source)
    if found is None or found["count"] == "0":
        raise PgoutputError(f"{source}: write scenario:SEED or scenario:SEED:COUNT, two numbers, such as scenario:1:20")
    require("testing")
    from pgoutput_construct.testing.scenario_feed import ScenarioFeed, expected_state, seeded_scenarios

    scenarios = seeded_scenarios(int(found["count"] or _COUNT), int(found["seed"]))
    if meaning_file is not None:
        meaning_file.write_text(json.dumps(expected_state(scenarios), indent=1) + "\n", "utf-8")
    return ScenarioFeed(scenarios, server_version * 10000)
