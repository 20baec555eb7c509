"""What the codec checks after it has read, and which layouts it reads at once."""

from tools.generate.codec_runs import REJECT, Lines, Run, code, indented, is_fixed, variable
from tools.language import Choice, Field, Repeat
from tools.language.model import Structure

__all__ = ["checks", "plain_number", "shared_length"]


def checks(run: Run) -> Lines:
    """Yield the checks and conversions of what a run has read."""
    for field in run.fields:
        lines = [] if field.name == "tag" else list(_check(field))
        if field.conditional and lines:
            yield f"if {variable(field.name)} is not None:"
            lines = list(indented(iter(lines)))
        yield from lines


def _check(field: Field) -> Lines:
    name = variable(field.name)
    if field.constant is not None:
        yield f"if {name} != {field.constant[0] if isinstance(field.constant, bytes) else field.constant}:"
        yield REJECT
    elif field.bits:
        yield f"if {name} & ~{sum(field.bits):#x}:"
        yield REJECT
    elif field.values:
        yield from _check_values(field, name)
    elif field.type is not None and field.type.python != "int":
        yield f"{name} = number({field.type.python}, {name})"


def _check_values(field: Field, name: str) -> Lines:
    values = list(field.values or ())
    letters = all(isinstance(value, str) for value in values)
    allowed = repr("".join(map(str, values)).encode()) if letters else repr(tuple(values))
    yield f"if {name} not in {allowed}:"
    yield REJECT
    if letters:
        yield f"{name} = chr({name})"


def plain_number(repeat: Repeat) -> Field | None:
    """Return the field of a repeat of plain numbers, None for other repeats."""
    single = repeat.item.single
    if not isinstance(single, Field) or len(repeat.item.elements) != 1 or not is_fixed(single):
        return None
    return None if single.values or single.bits or single.conditional else single


def shared_length(choice: Choice) -> str | None:
    """Return the code of the length that every branch with a content starts with, None when they differ."""
    found = {_length_code(a.then) for a in choice.alternatives if a.then is not None}
    return found.pop() if len(found) == 1 else None


def _length_code(then: Structure | str) -> str | None:
    if isinstance(then, str) or len(then.elements) != 2:
        return None
    size, content = then.elements
    sized = isinstance(content, Field) and isinstance(size, Field) and content.length == size.name
    return code(size) if sized and isinstance(size, Field) else None
