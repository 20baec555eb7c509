"""Errors of a JSON Schema as text: the permitted keys and the nearest one, the meaning of a pattern, what to quote."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from jsonschema.exceptions import ValidationError

from tools.language.near import meant
from tools.language.source import Source

__all__ = ["shape_problems"]

Words = tuple[str, str]
"""A problem and its remedy."""

_KINDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
}
_BOUNDS: Final = {
    "minimum": "is less than {}",
    "maximum": "is more than {}",
    "minItems": "has fewer entries than {}",
    "maxItems": "has more entries than {}",
    "minLength": "has fewer letters than {}",
    "minProperties": "has fewer entries than {}",
    "maxProperties": "has more entries than {}",
}


def shape_problems(error: ValidationError, source: Source) -> Iterator[str]:
    """Yield the problems of an error, each with file, line and remedy."""
    place = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        yield from (str(source.error((*place, key), *_unknown(key, error))) for key in _extra(error))
    elif nearer := _inside(error):
        yield from (words for each in nearer for words in shape_problems(each, source))
    else:
        what = "/".join(map(str, place)) or "the file"
        problem, remedy = _words(error)
        yield str(source.error(place, f"{what}: {problem}", remedy))


def _inside(error: ValidationError) -> list[ValidationError]:
    """Return the problems within the alternative that is meant, of several; nothing if that is not clear."""
    forms: dict[Any, list[ValidationError]] = {}
    for each in error.context or () if error.validator in ("oneOf", "anyOf") else ():
        forms.setdefault(each.relative_schema_path[0], []).append(each)
    meant = [
        form for form in forms.values() if not any(e.validator in ("type", "required") and not e.path for e in form)
    ]
    return meant[0] if len(meant) == 1 else []


def _schema(error: ValidationError) -> Mapping[str, Any]:
    return error.schema if isinstance(error.schema, Mapping) else {}


def _expected(error: ValidationError) -> Any:
    return error.validator_value


def _instance(error: ValidationError) -> Any:
    return error.instance


def _extra(error: ValidationError) -> list[Any]:
    known = _schema(error).get("properties", {})
    return [key for key in _instance(error) if key not in known]


def _unknown(key: Any, error: ValidationError) -> Words:
    allowed = list(_schema(error)["properties"])
    near = get_close_matches(str(key), allowed, 1, 0.6) or [each for each in allowed if _begins(str(key), each)]
    remedy = f"The keys are {', '.join(allowed)}."
    if _instance(error)[key] is None and not near:
        remedy = f'In braces a comma ends a value: quote text that has one, "a, b". {remedy}'
    return f"{key!r} is not a key here{f': did you mean {near[0]!r}?' if near else ''}", remedy


def _begins(key: str, word: str) -> bool:
    return len(key) > 1 and (word.startswith(key) or key.startswith(word))


def _words(error: ValidationError) -> Words:
    rule = str(error.validator)
    if rule in _BOUNDS:
        described = _described(error)
        return f"{error.instance!r:.60} {_BOUNDS[rule].format(error.validator_value)}", f"Write {described}."
    say = _RULES.get(rule)
    return say(error) if say else (error.message[:200], f"The rule {rule!r} wants {error.validator_value!r:.200}.")


def _described(error: ValidationError) -> str:
    text = str(_schema(error).get("description", ""))
    return text.rstrip(".") or f"what the rule {error.validator} = {error.validator_value!r:.100} allows"


def _pattern(error: ValidationError) -> Words:
    return f"{error.instance!r:.60} is not written like that", f"Write {_described(error)}."


def _required(error: ValidationError) -> Words:
    missing = [key for key in _expected(error) if key not in _instance(error)]
    known = _schema(error).get("properties", {})
    abouts = "; ".join(f"{key}: {known.get(key, {}).get('description', '...')}" for key in missing)
    return f"{', '.join(map(repr, missing))} is missing", f"Write {abouts.rstrip('.')}."


def _forms(error: ValidationError) -> Words:
    keys = [key for form in _expected(error) for key in form.get("required", ())]
    if keys and isinstance(error.instance, Mapping) and _schema(error).get("properties"):
        given = [key for key in keys if key in _instance(error)]
        problem = f"{' and '.join(given)} are both present" if given else f"none of {', '.join(keys)} is there"
        return problem, f"Write one of {', '.join(keys)}."
    return f"{error.instance!r:.80} matches no permitted form", f"Write {_described(error)}."


def _type(error: ValidationError) -> Words:
    given, kind = _instance(error), str(error.validator_value)
    remedy = _schema(error).get("description", "").rstrip(".") or _KINDS.get(kind, kind)
    if given is None:
        return "there is no value", f'Write {remedy}; quote the word "null", and text that begins with #.'
    if kind == "string":
        return _no_text(given)
    if kind in ("integer", "boolean") and isinstance(given, str):
        return f"{given!r:.60} is text, not {_KINDS[kind]}", f"Write {remedy}, without quotes."
    return f"{given!r:.60} is not {_KINDS.get(kind, kind)}", f"Write {remedy}."


def _no_text(given: Any) -> Words:
    if isinstance(given, bool):
        words = "on, yes and true" if given else "off, no and false"
        return f"YAML reads {words} as {str(given).lower()}, not as text", 'Quote it: "on", "off", "yes", "no".'
    if isinstance(given, list | dict):
        return f"{given!r:.60} is not text", "Quote text that has one of [ ] { } , : # in it."
    return f"YAML reads {given} as a number or a date, not as text", f'Quote it: "{given}".'


def _choice(error: ValidationError) -> Words:
    given, rule = _instance(error), _expected(error)
    values: Sequence[Any] = rule if error.validator == "enum" else [rule]
    if isinstance(given, bool) and not any(isinstance(each, bool) for each in values):
        return f"YAML reads on, off, yes and no as {str(given).lower()}", 'Quote it: "on".'
    remedy = f"Write {'one of ' * (len(values) > 1)}{', '.join(map(str, values))}."
    return f"{given!r:.60} is not one of the permitted words{meant(str(given), map(str, values))}", remedy


_RULES: Final[Mapping[str, Callable[[ValidationError], Words]]] = {
    "type": _type,
    "pattern": _pattern,
    "required": _required,
    "enum": _choice,
    "const": _choice,
    "oneOf": _forms,
    "anyOf": _forms,
    "uniqueItems": lambda error: ("an entry occurs twice", "Keep one of them."),
}
