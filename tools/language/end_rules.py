"""The rules for where things end: counts, lengths, bytes and lists without either, parts with a length of their own."""

from collections.abc import Callable, Iterator, Mapping

from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Message, Part, Spec
from tools.language.near import meant

__all__ = ["END_RULES", "goes_on"]

Raise = Callable[[int, str, str], Exception]


def _sizes(spec: Spec, error: Raise) -> None:
    for structure in spec.structures():
        earlier: dict[str, Field] = {}
        used: dict[str, Element] = {}
        for element in structure.elements:
            size = element.count if isinstance(element, Repeat) else getattr(element, "length", None)
            if size is not None:
                first = used.setdefault(size, element)
                _check_size(element, earlier, size, error, is_first=first is element)
                if first is not element and not (isinstance(first, Repeat) and isinstance(element, Repeat)):
                    remedy = "Give each length a field of its own; only lists can share one, as their count."
                    raise error(element.line, f"{size!r} measures two fields", remedy)
            if isinstance(element, Field):
                earlier[element.name] = element


def _check_size(element: Element, earlier: Mapping[str, Field], size: str, error: Raise, is_first: bool) -> None:
    field = earlier.get(size)
    if field is None:
        problem = f"{element.name} is measured by {size!r}, which is not an earlier field{meant(size, earlier)}"
        raise error(element.line, problem, "Name an earlier integer of the same structure.")
    can_be_absent = isinstance(element, Field) and element.absent is not None
    if not all(_is_plain(each, can_be_absent) for each in field.variants or (field,)):
        sign = "signed" if can_be_absent else "unsigned"
        problem = f"{element.name} is measured by {size!r}, which is not a plain {sign} integer"
        raise error(element.line, problem, "Name one that means nothing else.")
    if field.term != element.term and (is_first or field.term is not None):
        problem = f"{element.name} is measured by {size!r}, which has another condition"
        raise error(element.line, problem, "Write the same since, until and when at both.")
    if isinstance(element, Field) and not element.part and (element.type is None or element.type.construct != "Data"):
        problem = f"{element.name} is neither a Byten nor a part, so it has no length"
        raise error(element.line, problem, "Remove length, or write Byten.")


def _is_plain(field: Field, signed: bool) -> bool:
    """Return whether a field is an integer with the given sign, and has no other meaning."""
    plain = field.type is not None and field.type.python == "int" and field.type.signed == signed
    return plain and not (field.constant is not None or field.values or field.bits or field.frames)


def _open_ends(spec: Spec, error: Raise) -> None:
    """What goes on while bytes remain is the last of what has an end of its own."""
    for structure in spec.structures():
        for element in structure.elements:
            for part in _parts_of_branches(element):
                if _is_open(spec.part(part), spec):
                    problem = f"a branch of {element.name} is a {part}, which goes on while bytes remain"
                    raise error(element.line, problem, f"Give the last element of {part} a length or a count.")
            if not goes_on(element, spec):
                continue
            what = f"{element.name} goes on while bytes remain"
            if isinstance(element, Field) and element.is_open:
                what = f"{element.name} has no length"
            remedy = _remedy(element)
            if element is not structure.elements[-1]:
                raise error(element.line, f"{what}, and something follows it", f"{remedy}, or let it be the last.")
            if not isinstance(structure, Message | Part):
                problem = f"{what}, and nothing says where the item or the branch with it ends"
                raise error(element.line, problem, f"{remedy}, or let it be the last of a message or part.")


def _parts_of_branches(element: Element) -> Iterator[str]:
    for branch in element.alternatives if isinstance(element, Choice) else ():
        if isinstance(branch.then, str):
            yield branch.then


def _remedy(element: Element) -> str:
    if isinstance(element, Repeat):
        return "Write count"
    part = isinstance(element, Field) and element.part
    return "Write length: NAME of an earlier integer" if part else "Name the earlier field that holds it: length: NAME"


def goes_on(element: Element, spec: Spec) -> bool:
    """Return whether an element extends to the end of what it is in."""
    if isinstance(element, Field):
        inner = element.part is not None and element.length is None and _is_open(spec.part(element.part), spec)
        return inner or any(each.is_open for each in element.variants or (element,))
    return isinstance(element, Repeat) and element.to_end


def _is_open(structure: Structure, spec: Spec) -> bool:
    return goes_on(structure.elements[-1], spec)


def _areas(spec: Spec, error: Raise) -> None:
    """A part with a length takes all of its bytes: what follows its known fields is in the last one."""
    for field in spec.fields():
        if field.length is None or field.part is None:
            continue
        part = spec.part(field.part)
        if not _takes_all(part, spec):
            problem = f"{field.name} has a length, and nothing in {part.name} holds the bytes after its known fields"
            remedy = (
                f"Write {{field: Byten, name: rest}}, without length and condition, as the last field of {part.name}."
            )
            raise error(field.line, problem, remedy)


def _takes_all(structure: Structure, spec: Spec) -> bool:
    """Return whether a structure extends to the end of what it is in under all conditions."""
    last = structure.elements[-1]
    if last.conditional or not goes_on(last, spec):
        return False
    fields = (last.variants or (last,)) if isinstance(last, Field) else ()
    return all(each.is_open or (each.part and _takes_all(spec.part(each.part), spec)) for each in fields)


def _rows_are_counted(spec: Spec, error: Raise) -> None:
    """Readers of rows compare the number of values with that of columns before they read any."""
    for part in spec.rows:
        if isinstance(part.principal, Repeat) and part.principal.to_end:
            problem = f"the values of the row {part.name} go on while bytes remain"
            raise error(part.principal.line, problem, "Write count: NAME of an earlier integer.")


END_RULES = (_sizes, _open_ends, _areas, _rows_are_counted)
