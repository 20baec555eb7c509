"""Conditions as data: of versions, parameters and bits, combined by not, all and any."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

__all__ = [
    "MOST",
    "VERSION",
    "Bit",
    "Every",
    "Flag",
    "Not",
    "Since",
    "Some",
    "Term",
    "Until",
    "atoms",
    "bits",
    "cases",
    "condition_of",
    "either",
    "every",
    "holds",
    "leaves",
    "outside",
    "parameters",
    "range_of",
    "some",
    "term_of",
    "text",
    "versions",
]

VERSION = "proto_version"
"""The parameter with which versions are compared."""

Named = Callable[[str], str]
"""Returns the expression of an earlier field in generated code, by the field's name."""


@dataclass(frozen=True)
class Flag:
    """A bool parameter is set."""

    name: str


@dataclass(frozen=True)
class Since:
    """A protocol version, or a newer one."""

    version: int
    name: str = VERSION
    """The parameter that holds it."""


@dataclass(frozen=True)
class Until:
    """A protocol version, or an older one."""

    version: int
    name: str = VERSION


@dataclass(frozen=True)
class Bit:
    """A bit is set in an earlier field of the same structure."""

    field: str
    mask: int


@dataclass(frozen=True)
class Not:
    """The negation of a term."""

    term: "Term"


@dataclass(frozen=True)
class Every:
    """All of several terms."""

    terms: "tuple[Term, ...]"


@dataclass(frozen=True)
class Some:
    """At least one of several terms."""

    terms: "tuple[Term, ...]"


Term = Flag | Since | Until | Bit | Not | Every | Some


def every(*terms: Term | None) -> Term | None:
    """Return the conjunction of terms; None stands for true."""
    flat: list[Term] = []
    for term in terms:
        flat += term.terms if isinstance(term, Every) else [term] if term is not None else []
    found = tuple(dict.fromkeys(flat))
    return found[0] if len(found) == 1 else Every(found) if found else None


def term_of(data: Any) -> Term | None:
    """Return the term for the key ``when`` of a specification, whose shape has been checked."""
    if data is None:
        return None
    if isinstance(data, str):
        return Flag(data)
    if "bit" in data:
        return Bit(data["of"], data["bit"])
    if "not" in data:
        term = term_of(data["not"])
        assert term is not None
        return Not(term)
    terms = tuple(term for each in data.get("all") or data["any"] if (term := term_of(each)) is not None)
    return every(*terms) if "all" in data else terms[0] if len(terms) == 1 else Some(terms)


def condition_of(data: Mapping[str, Any]) -> Term | None:
    """Return the conjunction of ``since``, ``until`` and ``when``."""
    since = Since(data["since"]) if data.get("since") else None
    until = Until(data["until"]) if isinstance(data.get("until"), int) else None
    return every(since, until, term_of(data.get("when")))


def either(terms: Sequence[Term | None], known: Sequence[int] = ()) -> Term | None:
    """Return the disjunction of terms; ``known`` are the protocol versions that exist.

    Consecutive versions become one range. None stands for true.
    """
    if None in terms or _is_certain(terms, known):
        return None
    ranges = [range_of(term) for term in terms]
    rests = {rest for _, _, rest in ranges}
    if len(rests) == 1 and (found := _one_range(sorted((low, high or _NEWEST) for low, high, _ in ranges), known)):
        low, high = found
        since, until = Since(low) if low else None, Until(high) if high < _NEWEST else None
        return every(since, until, rests.pop())
    distinct = tuple(dict.fromkeys(term for term in terms if term is not None))
    return distinct[0] if len(distinct) == 1 else Some(distinct)


def some(terms: Iterable[Term | None]) -> Term | None:
    """Return the disjunction of terms without simplification; None if one of them is always true."""
    distinct = tuple(dict.fromkeys(terms))
    if None in distinct or not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else Some(tuple(term for term in distinct if term is not None))


_NEWEST = 1 << 31
MOST = 8
"""The most parameters and bits that are tried in all combinations."""


def range_of(term: Term | None) -> tuple[int, int | None, Term | None]:
    """Return the first version (0: any) and the last one (None: any) of a term, and the rest of the term."""
    terms = term.terms if isinstance(term, Every) else () if term is None else (term,)
    low = max((each.version for each in terms if isinstance(each, Since)), default=0)
    high = min((each.version for each in terms if isinstance(each, Until)), default=None)
    return low, high, every(*(each for each in terms if not isinstance(each, Since | Until)))


def _one_range(ranges: list[tuple[int, int]], known: Sequence[int]) -> tuple[int, int] | None:
    """Return the union of ranges, None if a version between them is missing."""
    first, last = ranges[0]
    for low, high in ranges[1:]:
        if low > last + 1 and (not known or any(last < version < low for version in known)):
            return None
        last = max(last, high)
    return first, last


def _is_certain(terms: Sequence[Term | None], known: Sequence[int]) -> bool:
    """Return whether one of the terms holds, for all parameters and bits."""
    return len(atoms(terms)) <= MOST and all(any(holds(term, *case) for term in terms) for case in cases(terms, known))


def cases(terms: Sequence[Term | None], known: Sequence[int]) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Yield all combinations of parameters and of earlier fields that matter to terms.

    In each version; of more than MOST parameters and bits only those with none, with all, with one, and without one.
    """
    found = atoms(terms)
    named = {version for term in terms for version in versions(term)}
    tried = sorted(known) or sorted({1} | {max(version + step, 1) for version in named for step in (-1, 0, 1)})
    for version, states in product(tried, _states(len(found))):
        given, values = {VERSION: version}, dict[str, int]()
        for atom, state in zip(found, states, strict=True):
            if isinstance(atom, Flag):
                given[atom.name] = state
            else:
                values[atom.field] = values.get(atom.field, 0) | (atom.mask if state else 0)
        yield given, values


def atoms(terms: Iterable[Term | None]) -> list[Flag | Bit]:
    """Return the parameters and bits that terms depend on, each once."""
    return list(dict.fromkeys(leaf for term in terms for leaf in leaves(term) if isinstance(leaf, Flag | Bit)))


def _states(count: int) -> Iterable[tuple[bool, ...]]:
    """Return which of some parameters and bits are set."""
    if count <= MOST:
        return product((False, True), repeat=count)
    one = [tuple(index == each for each in range(count)) for index in range(count)]
    return [(False,) * count, (True,) * count, *one, *(tuple(not state for state in states) for states in one)]


def versions(term: Term | None) -> Iterator[int]:
    """Yield the versions that a term names."""
    yield from (each.version for each in leaves(term) if isinstance(each, Since | Until))


def leaves(term: Term | None) -> Iterator[Flag | Since | Until | Bit]:
    """Yield the terms that a term consists of."""
    match term:
        case None:
            return
        case Not(term=inner):
            yield from leaves(inner)
        case Every(terms=terms) | Some(terms=terms):
            for each in terms:
                yield from leaves(each)
        case _:
            yield term


def parameters(term: Term | None) -> set[str]:
    """Return the names of the parameters that a term depends on."""
    return {each.name for each in leaves(term) if not isinstance(each, Bit)}


def bits(term: Term | None) -> list[Bit]:
    """Return the bits that a term depends on."""
    return [each for each in leaves(term) if isinstance(each, Bit)]


def outside(term: Term | None) -> Term | None:
    """Return the values of parameters that a term requires, whatever the bits."""
    if not bits(term):
        return term
    match term:
        case Every(terms=terms):
            return every(*(outside(each) for each in terms))
        case Some(terms=terms) if all(outside(each) is not None for each in terms):
            return some(outside(each) for each in terms)
    return None


def holds(term: Term | None, given: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether a term holds under parameters, and with values of earlier fields by name."""
    match term:
        case Flag(name):
            return bool(given.get(name))
        case Since(version):
            return int(given.get(VERSION, 1)) >= version
        case Until(version):
            return int(given.get(VERSION, 1)) <= version
        case Bit(field, mask):
            return bool((found.get(field) or 0) & mask)
        case Not(inner):
            return not holds(inner, given, found)
        case Every(terms):
            return all(holds(each, given, found) for each in terms)
        case Some(terms):
            return any(holds(each, given, found) for each in terms)
    return True


def text(term: Term | None, named: Named = str) -> str:
    """Return a term as a Python expression, which is also valid in Kaitai Struct; empty for true."""
    match term:
        case Flag(name):
            return name
        case Since(version, name):
            return f"{name} >= {version}"
        case Until(version, name):
            return f"{name} <= {version}"
        case Bit(field, mask):
            return f"({named(field)} & {mask}) != 0"
        case Not(Flag(name)):
            return f"not {name}"
        case Not(inner):
            return f"not ({text(inner, named)})"
        case Every(terms):
            return " and ".join(text(each, named) for each in terms)
        case Some(terms):
            parts = (text(each, named) for each in terms)
            return f"({' or '.join(f'({part})' if ' and ' in part else part for part in parts)})"
    return ""
