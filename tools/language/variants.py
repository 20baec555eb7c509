"""Fields that differ between versions under one name, and fields whose bits are used in conditions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from tools.language import conditions
from tools.language.conditions import VERSION, Flag, Not, Since, Term, Until
from tools.language.elements import Block, Repeat
from tools.language.fields import Field, Fields

__all__ = ["gathered", "implied"]


def gathered(fields: Iterable[Field], known: Sequence[int]) -> tuple[Field, ...]:
    """Return the fields with consecutive ones of the same name merged into one field with variants.

    ``known`` are the protocol versions that exist. A field whose values or bits have conditions also gets variants.
    """
    groups = (list(group) for _, group in groupby(fields, lambda field: field.name))
    return tuple(_merged(group, known) for group in groups)


def _merged(written: Sequence[Field], known: Sequence[int]) -> Field:
    opened = [(field, _by_meaning(field, known)) for field in written]
    variants = [each for _, some in opened for each in some]
    if len(variants) == 1:
        return variants[0]
    whole = [[field] if all(not each.hidden for each in some) else some for field, some in opened]
    terms = [each.term for some in whole for each in some if not each.hidden]
    held = [each for each in variants if not each.hidden] or list(variants)
    newest = held[-1]
    widest = max(held, key=lambda each: (each.size or 0, held.index(each)))
    servers = [each.server for each in variants]
    return replace(
        widest,
        notation=" or ".join(dict.fromkeys(each.notation for each in written)),
        description=next((each.description for each in reversed(held) if each.description), ""),
        constant=None,
        term=conditions.either(terms or [each.term for each in variants], known),
        server=None if None in servers else min(server or 0 for server in servers),
        values={key: meaning for each in held for key, meaning in (each.values or {}).items()} or None,
        bits={key: meaning for each in held for key, meaning in (each.bits or {}).items()} or None,
        limits={key: term for each in held for key, term in each.limits.items()},
        documented=newest.documented,
        positional=any(each.positional for each in variants),
        formerly=tuple(dict.fromkeys(name for each in written for name in each.formerly)),
        line=variants[0].line,
        variants=tuple(variants),
        written=tuple(written),
        complete=conditions.either([each.term for each in variants], known) is None,
    )


def _by_meaning(field: Field, known: Sequence[int]) -> list[Field]:
    """Return a field as it is in each version, if some of its values or bits have a condition."""
    meanings = field.values or field.bits
    if not field.limits or not meanings or not known:
        return [field]
    found: dict[Term | None, tuple[str | int, ...]] = {}
    for low, high, allowed in _ranges(field.limits, list(meanings), known):
        since, until = Since(low) if low != known[0] else None, Until(high) if high != known[-1] else None
        for flags, names in allowed:
            found[conditions.every(since, until, *flags)] = names
    return [_limited(field, term, names) for term, names in found.items()]


def _limited(field: Field, term: Term | None, names: tuple[str | int, ...]) -> Field:
    there = conditions.every(field.term, term)
    kept = {name: meaning for name, meaning in (field.values or field.bits or {}).items() if name in names}
    if field.values is not None:
        return replace(field, term=there, values=kept)
    if not kept and field.type is not None:
        return replace(field, term=there, bits=None, limits={}, constant=0, notation=f"{field.type.notation}(0)")
    return replace(field, term=there, bits=kept)  # type: ignore[arg-type]


Allowed = list[tuple[tuple[Flag | Not, ...], tuple[str | int, ...]]]
"""The values or bits that are permitted, for each combination of parameters."""


def _ranges(
    limits: Mapping[str | int, Term], names: Sequence[str | int], known: Sequence[int]
) -> Iterator[tuple[int, int, Allowed]]:
    """Yield the first and the last version of each range in which the same values or bits are permitted."""
    found: list[tuple[int, int, Allowed]] = []
    for version in known:
        allowed: Allowed = []
        for given, _ in conditions.cases(list(limits.values()), [version]):
            flags = tuple(Flag(name) if on else Not(Flag(name)) for name, on in given.items() if name != VERSION)
            allowed.append((flags, tuple(n for n in names if conditions.holds(limits.get(n), given, {}))))
        if len({there for _, there in allowed}) == 1:
            allowed = [((), allowed[0][1])]
        if found and found[-1][2] == allowed:
            found[-1] = (found[-1][0], version, allowed)
        else:
            found.append((version, version, allowed))
    yield from found


def implied(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return blocks in which elements that depend on a bit are present only if the field of that bit is."""
    known: dict[str, Field] = {}
    done: list[Block] = []
    for block in blocks:
        if isinstance(block, Fields):
            fields = []
            for field in block.fields:
                fields.append(_implied(field, known))
                known[field.name] = fields[-1]
            done.append(replace(block, fields=tuple(fields)))
        elif isinstance(block, Repeat):
            done.append(replace(block, term=_with_fields(block.term, known)))
        else:
            done.append(block)
    return tuple(done)


def _implied(field: Field, known: Mapping[str, Field]) -> Field:
    variants, written = (tuple(_implied(each, known) for each in some) for some in (field.variants, field.written))
    return replace(field, term=_with_fields(field.term, known), variants=variants, written=written)


def _with_fields(term: Term | None, known: Mapping[str, Field]) -> Term | None:
    fields = [known[bit.field].term for bit in conditions.bits(term) if bit.field in known]
    return conditions.every(*fields, term)
