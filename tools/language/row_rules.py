"""The rules for messages that carry rows of tables: readers find the rows, or refuse them, and never skip them."""

from collections.abc import Callable

from tools.language.elements import Choice, Element, Structure
from tools.language.fields import Field, Fields
from tools.language.model import Message, Spec

__all__ = ["ROW_RULES", "is_unread"]

Raise = Callable[[int, str, str], Exception]

_TABLE = "Int32 (Oid)"
_BYTES = "Byten"


def is_unread(message: Message, spec: Spec) -> bool:
    """Return whether readers of tables refuse a log with a message: it may change rows in a way that they do not know.

    As ``rows`` says; without it, if it has tuples and is no change, or has no group and names a table or has bytes of
    which nothing is known, such as compressed rows.
    """
    if message.group == "change" or not _changes_of(spec):
        return False
    if message.rows is not None:
        return message.rows == "unread"
    inside = [element for structure in spec.reached(message) for element in structure.elements]
    if any(isinstance(element, Choice) and element.valued for element in inside):
        return True
    fields = [each for field in inside if isinstance(field, Field) for each in field.rows]
    return message.group is None and any(each.notation in (_TABLE, _BYTES) for each in fields)


def _changes_of(spec: Spec) -> list[Message]:
    return [message for message in spec.messages if message.group == "change"]


def _said(spec: Spec, error: Raise) -> None:
    """``rows`` is about messages that are no changes, next to messages that are."""
    for message in spec.messages:
        if message.rows is not None and message.group == "change":
            raise error(message.line, f"{message.name} is a change, whose rows are read", "Remove rows, or group.")
        if message.rows is not None and not _changes_of(spec):
            raise error(message.line, f"{message.name} says rows, and no message changes any", "Remove rows.")


def _changes(spec: Spec, error: Raise) -> None:
    """Readers of rows find tables and tuples by these names, and know one layout of tuples."""
    changes = _changes_of(spec)
    if changes and len(spec.rows) > 1:
        problem = f"the part {spec.rows[1].name} is another layout of rows than {spec.rows[0].name}"
        raise error(spec.rows[1].line, problem, "Use one part for all rows.")
    for message in changes:
        sides = [element for element in message.exposed if element.name in ("old", "new")]
        always = {element.name for element in message.exposed if not element.conditional}
        tables = "relation_oid" in always and sides if "relation_oids" not in always else not sides
        if not tables or not all(_is_row(side, spec) for side in sides) or _holds_rows(message, sides, spec):
            problem = f"readers of rows do not find the tables or the rows of the change {message.name}"
            remedy = (
                "Name its fields relation_oid with old or new, which are rows and all rows that it has, "
                "or a repeat relation_oids; or write rows: unread instead of group: readers of tables refuse it then."
            )
            raise error(message.line, problem, remedy)
    for message in spec.messages if changes else ():
        named = [element.name for element in message.exposed if element.name in ("relation_oid", "relation_oids")]
        is_said = message.group == "change" or message.rows is not None
        if not is_said and named and _holds_rows(message, [], spec):
            problem = f"{message.name} has rows of the table in {named[0]}, and no reader of rows finds them"
            raise error(message.line, problem, "Write group: change. Or write rows: unread, or ignored, instead.")


def _is_row(element: Element, spec: Spec) -> bool:
    """Return whether an element is a tuple, or a choice between tuples with a field for its tag."""
    rows = {part.name for part in spec.rows}
    if isinstance(element, Choice):
        return not element.valued and rows.issuperset(a.then for a in element.alternatives if a.then is not None)
    return isinstance(element, Field) and element.part in rows


def _holds_rows(message: Message, sides: list[Element], spec: Spec) -> bool:
    """Return whether other elements than these contain tuples, at any depth."""
    others = [element for element in message.elements if element not in sides]
    rest = Structure(tuple(Fields("body", (other,)) if isinstance(other, Field) else other for other in others))
    used = {name for structure in spec.reached(rest) for name in structure.references()}
    return any(part.name in used for part in spec.rows)


ROW_RULES = (_said, _changes)
