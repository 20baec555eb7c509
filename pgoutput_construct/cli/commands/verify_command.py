"""``pgoutput verify``: compares the tables of a warehouse with the server, while both change."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgoutput_construct.cli._logging import print_notes
from pgoutput_construct.cli._options import LOG, MASKING, SECONDS, TABLE, command, spark_options
from pgoutput_construct.cli._printing import counted, printable, say
from pgoutput_construct.cli._progress import Estimate, announce_spark, progress_line, waiting_line

if TYPE_CHECKING:
    from pgoutput_construct.spark._verify import Difference, TableVerdict

__all__ = ["verify_command"]


@command("verify", short_help="Compare the tables of a warehouse with the live server.")
@click.argument("log", type=LOG)
@click.option(
    "--dsn", required=True, help='The server: a connection string of libpq, or a URL; "" takes the environment.'
)
@click.option("--warehouse", required=True, help="The warehouse of pgoutput replicate: a directory, or a URL.")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Compare only this table; can be repeated.")
@click.option("--resume", type=click.Path(dir_okay=False, path_type=Path), help="File that records the progress.")
@click.option("--restart", is_flag=True, help="Compare again what an interrupted verification has compared.")
@click.option(
    "--wait", type=SECONDS, default=600.0, show_default=True, help="Seconds to wait for log and warehouse to catch up."
)
@click.option(
    "--mask",
    "masks",
    multiple=True,
    type=MASKING,
    metavar="TABLE.COLUMN=MASK",
    help="The mask of a column, as given to pgoutput replicate, for its salt, unless that can be read where replicate "
    "read it; a column whose salt is not known is not compared; can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per table.")
@spark_options
def verify_command(
    log: str,
    dsn: str,
    warehouse: str,
    tables: tuple[str, ...],
    resume: Path | None,
    restart: bool,
    wait: float,
    masks: tuple[tuple[str, str], ...],
    as_json: bool,
    master: str,
    conf: tuple[tuple[str, str], ...],
) -> None:
    """Compare the tables of a warehouse with the server whose changes the change log LOG holds; exit with 1 if any
    differs.

    Nothing is locked, and writers, the capture of LOG (which must be running) and replicate continue meanwhile. Each
    table is compared under a snapshot of the server, by checksums of ranges of its key; only ranges that differ are
    read row by row. A table that cannot be compared is reported with the reason, and the exit status is 1; the others
    are compared. After an interruption it resumes where it was, and prints what it has compared before as such: the
    progress is recorded in the warehouse, or in the file given as --resume; --restart begins again.

    \b
    Examples:
      pgoutput verify changelog/ --dsn service=shop --warehouse warehouse/
      pgoutput verify s3://bucket/shop --dsn "" --warehouse s3://bucket/tables --table public.orders --json
    """
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog._facts.completeness import unpublished_columns
    from pgoutput_construct.changelog._store.address import open_store
    from pgoutput_construct.postgres.checksums import SourceServer
    from pgoutput_construct.spark import spark_session
    from pgoutput_construct.spark._log_view.log_tables import LogTables
    from pgoutput_construct.spark._verify import VerificationRecord, VerifyOptions, chosen_tables, format_of, verify

    # Check everything before starting a session.
    changelog = ChangeLog(log)
    options = changelog.options
    source = SourceServer(dsn, options.publications, binary=options.binary)
    record = (
        VerificationRecord(open_store(resume.absolute().parent), resume.name)
        if resume
        else VerificationRecord(open_store(warehouse, private=False))
    )
    if restart:
        record.restart()
    names, into = chosen_tables(warehouse, tables or None), format_of(warehouse)
    if not tables:
        known = LogTables.from_log(changelog).tables.items()
        _report_others({name for name, table in known if not table.dropped} - {*names})
    print_notes("note", [each for each in unpublished_columns(changelog.index) if each.name in names])
    verdicts: list[TableVerdict] = []
    announce_spark(master, into)
    with spark_session(master, dict(conf), into=[into], warehouse=warehouse) as spark, progress_line() as show:
        estimate = Estimate()

        def compared(table: str, rows: int, total: int) -> None:
            show(f"table {len(verdicts) + 1} of {len(names)}: {table}: {estimate.words(rows, total)}")

        pace = VerifyOptions(wait, on_wait=waiting_line(show), on_progress=compared)
        for verdict in verify(spark, log, warehouse, source, names, pace, record, dict(masks)):
            show("")
            verdicts.append(verdict)
            for line in [json.dumps(verdict.to_json())] if as_json else _lines(verdict):
                say(line)
    wrong = [verdict for verdict in verdicts if not verdict.equal]
    if wrong:
        raise click.ClickException(printable(_remedy(wrong)))


def _report_others(names: Collection[str]) -> None:
    if names:
        say(f"not compared, because they are not in the warehouse: {', '.join(sorted(names))}", err=True)


def _lines(verdict: "TableVerdict") -> list[str]:
    name = verdict.table
    if verdict.problem:
        return [f"{name}: not compared: {verdict.problem}"]
    compared = f"{counted(verdict.rows, 'row')} in {counted(verdict.parts, 'part')}, as of {verdict.lsn}"
    if verdict.is_earlier:
        compared += ", by the verification that was interrupted (--restart compares it again)"
    others = [f"{column} ({why})" for column, why in verdict.not_compared.items()]
    compared += f"; not compared: {', '.join(others)}" if others else ""
    if verdict.equal:
        return [f"{name}: equal: {compared}"]
    differ = f"{counted(verdict.different_rows, 'row')} in {counted(verdict.different_parts, 'part')}"
    return [f"{name}: DIFFERS: {differ} of {compared}", *(f"  {_shown(each)}" for each in verdict.examples)]


def _shown(difference: "Difference") -> str:
    key = ", ".join(f"{name} = {_text(value)}" for name, value in difference.key.items())
    if difference.kind != "changed":
        return f"{key}: {difference.kind} in the warehouse"
    pairs = ((name, difference.source[name], difference.warehouse[name]) for name in difference.columns)
    return f"{key}: " + ", ".join(
        f"{name}: {_text(one)} on the server, {_text(other)} in the warehouse" for name, one, other in pairs
    )


def _text(value: str | None) -> str:
    return "NULL" if value is None else repr(value if len(value) <= 60 else f"{value[:60]}...")


def _remedy(wrong: "list[TableVerdict]") -> str:
    from pgoutput_construct.changelog._facts.copies import snapshot_command

    differ = [verdict.table for verdict in wrong if not verdict.problem]
    parts = []
    if differ:
        verb, them = ("differs", "it") if len(differ) == 1 else ("differ", "them")
        parts.append(
            f"{counted(len(differ), 'table')} {verb} from the server: run {snapshot_command(*differ)} to copy {them} "
            f"again, and pgoutput replicate will rewrite {them}"
        )
    if unknown := len(wrong) - len(differ):
        parts.append(f"{counted(unknown, 'table')} could not be compared")
    return "; ".join(parts)
