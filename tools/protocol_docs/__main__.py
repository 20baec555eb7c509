"""python -m tools.protocol_docs: read PostgreSQL's documents, and compare the specification with them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tools.language import SPEC, Spec, load
from tools.language.errors import SpecError
from tools.protocol_docs.check import check
from tools.protocol_docs.document import Document, DocumentError
from tools.protocol_docs.mermaid import graphs
from tools.protocol_docs.propose import propose
from tools.protocol_docs.reader import read
from tools.protocol_docs.seed_form import to_data

__all__ = ["main"]

SPECS = ("pgoutput.yaml", "replication.yaml", "protocol.yaml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 agreed or done, 1 differences, 2 unusable input."""
    options = _parser().parse_args(arguments)
    try:
        specs = [load(options.spec / name) for name in SPECS]
        status: int = options.run(options, specs)
    except (DocumentError, SpecError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.protocol_docs",
        description="Reads PostgreSQL's pages about replication messages: HTML, SGML, plain text, or extracted YAML.",
        epilog="Exit status: 0 done, 1 differences found, 2 the document or the specification cannot be used.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    extract = commands.add_parser("extract", help="print a document's messages as YAML, or as Mermaid graphs")
    extract.add_argument("--mermaid", action="store_true", help="print Mermaid graphs instead of YAML")
    check = commands.add_parser("check", help="compare a document with the specification; each difference is one line")
    propose = commands.add_parser("propose", help="print the YAML that the specification lacks, with FILL_IN_ marks")
    for command, run in ((extract, _extract), (check, _check), (propose, _propose)):
        command.add_argument("file", type=Path, metavar="FILE", help="the document")
        command.add_argument(
            "--pg", type=_version, metavar="VERSION", help="its PostgreSQL version, where it tells none"
        )
        command.add_argument("--spec", type=Path, default=SPEC, metavar="FOLDER", help="the specifications' folder")
        command.set_defaults(run=run)
    return parser


def _version(text: str) -> int:
    digits = text.partition(".")[0].removesuffix("devel")
    if not digits.isdigit() or not 10 <= int(digits) < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no PostgreSQL version: write a number such as 18")
    return int(digits)


def _documents(options: argparse.Namespace, specs: Sequence[Spec]) -> list[Document]:
    sections = {document.title: document.section for spec in specs for document in spec.documents}
    return read(options.file, sections, options.pg)


def _extract(options: argparse.Namespace, specs: Sequence[Spec]) -> int:
    for number, document in enumerate(_documents(options, specs)):
        for text in document.missing:
            print(f"missing: {text}", file=sys.stderr)
        if options.mermaid:
            print(graphs(document), end="")
        else:
            print("---\n" if number else "", end="")
            print(yaml.safe_dump(to_data(document), sort_keys=False, allow_unicode=True, width=80), end="")
    return 0


def _check(options: argparse.Namespace, specs: Sequence[Spec]) -> int:
    reports = [check(document, specs) for document in _documents(options, specs)]
    for report in reports:
        for line in report.notes:
            print(f"note: {line}", file=sys.stderr)
        for line in report.known:
            print(f"known: {line}")
        for line in report.problems:
            print(line)
        print(report.summary)
    return 1 if any(report.problems for report in reports) else 0


def _propose(options: argparse.Namespace, specs: Sequence[Spec]) -> int:
    for number, document in enumerate(_documents(options, specs)):
        for text in document.missing:
            print(f"missing: {text}", file=sys.stderr)
        print("---\n" if number else "", end="")
        print(propose(document, specs, options.spec), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
