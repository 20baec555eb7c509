"""Checks a specification against a document: differences, known deviations, deviations that no longer apply."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.language import Deviation, Spec
from tools.language import Document as Section
from tools.protocol_docs.compare import Comparison
from tools.protocol_docs.differences import Difference, is_known, unused
from tools.protocol_docs.document import Document, DocumentError
from tools.protocol_docs.options import flow, options, says_options

__all__ = ["Report", "check", "choose"]


@dataclass
class Report:
    """The findings of a check, each as one line; ``problems`` are those that a maintainer has to act on."""

    problems: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    summary: str = ""


def check(document: Document, specs: Sequence[Spec]) -> Report:
    """Compare a document with the specification that it describes; raise DocumentError if that is impossible."""
    spec, section = choose(document, specs)
    if document.pg is None:
        raise DocumentError("the document does not tell its PostgreSQL version: give --pg, such as --pg 18")
    pg = document.pg
    annotated = section.annotated is not None and section.annotated <= pg
    comparison = Comparison(document, spec, pg, annotated)
    found = [*options(document, spec, pg), *flow(document, spec)]
    if document.structures:
        found = [*comparison.differences(), *found]
    deviations = [deviation for deviation in section.deviations if deviation.concerns(pg)]
    report = Report(notes=[f"missing in the document: {text}" for text in document.missing])
    if document.structures and document.partial and (absent := comparison.absent()):
        names = ", ".join(named.name for named in absent)
        report.notes.append(f"not compared, because the document does not have them and is not whole: {names}")
    _sort(report, found, deviations, spec)
    if not document.partial:
        report.problems += [_unused(deviation, spec, section) for deviation in unused(deviations, found)]
    report.summary = (
        f"{section.section}, PostgreSQL {pg}, {document.form}: {len(document.messages)} messages, "
        f"{len(document.parts)} parts, {len(report.known)} known deviations, {len(report.problems)} differences"
    )
    return report


def choose(document: Document, specs: Sequence[Spec]) -> tuple[Spec, Section]:
    """Return the specification and the section that a document describes: by its id or title, then by its messages."""
    for spec in specs:
        for section in spec.documents:
            if document.section == section.section:
                _refuse_empty(document)
                return spec, section
    shared = {spec.file: len(_names(spec) & {structure.name for structure in document.structures}) for spec in specs}
    best = max(specs, key=lambda spec: shared[spec.file])
    if not shared[best.file]:
        titles = ", ".join(f'"{section.title}"' for spec in specs for section in spec.documents)
        raise DocumentError(f"it is about none of the specifications: give a page titled {titles}")
    return best, best.documents[0] if best.documents else Section("", best.title)


def _refuse_empty(document: Document) -> None:
    if not document.structures and not says_options(document) and not document.prose:
        raise DocumentError("no messages were found in it: is it the right page?")


def _names(spec: Spec) -> set[str]:
    return {named.name for named in spec.named}


def _sort(report: Report, found: Sequence[Difference], deviations: Sequence[Deviation], spec: Spec) -> None:
    for difference in found:
        known = next((deviation for deviation in deviations if is_known(difference, deviation)), None)
        if known is None:
            report.problems.append(difference.text(spec.file))
        else:
            report.known.append(f"{difference.text(spec.file)} ({known.reason})")


def _unused(deviation: Deviation, spec: Spec, section: Section) -> str:
    where = ", ".join(filter(None, [deviation.message, deviation.at]))
    return (
        f"spec/{spec.file}:{deviation.line}: {where}: unused deviation: the document ({section.section}) does not "
        f"have this {deviation.kind}; remove it, or say from which PostgreSQL to which"
    )
