"""The rules for specifications of other protocols: they cannot have what is PostgreSQL's alone.

``load_own`` finds the specification of a directory.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.language.errors import SpecError
from tools.language.load import load, read_text
from tools.language.model import Spec
from tools.language.source import Place, Source, read

__all__ = ["load_own"]

_TYPES: Final = "types.yaml"
_ANYWHERE: Final[Mapping[str, str]] = {
    "server": "a version of PostgreSQL. Write since: the version of the protocol",
    "documented": "the wording of PostgreSQL's documents. Remove it",
    "plain_copy": "a COPY of PostgreSQL. Remove it",
    "unasked": "a habit of PostgreSQL's servers. Remove it",
    "group": "rows and transactions of PostgreSQL. Remove it",
    "effect": "transactions of PostgreSQL. Remove it",
    "role": "transactions of PostgreSQL. Remove it",
    "option": "an option of START_REPLICATION. Write in: the states in which it can occur",
}
"""Keys at any depth, what each is about, and what to do."""
_AT_THE_TOP: Final[Mapping[str, str]] = {
    "carries": "PostgreSQL's envelope. Write a field Byten for what a message carries",
    "documents": "sections of PostgreSQL's documents. Write source: the document that describes the protocol",
    "options": "the options of START_REPLICATION. Write a version, or a state that sets a parameter",
}
_NEVER: Final = ("parameters", "values", "bits", "when")
"""Keys whose mappings have names or numbers of the protocol as keys."""


def load_own(folder: Path) -> Spec:
    """Read the only specification of a directory, by the notations of its ``types.yaml`` if it has one.

    Raises SpecError if there is not one, if it breaks a rule, or if it has what only PostgreSQL's have.
    """
    path = _only_file(folder)
    text = read_text(path)
    source = read(text, path.name)
    problems = [str(problem) for problem in _foreign(source)]
    if problems:
        raise SpecError("\n".join(problems))
    spec = load(path)
    _check_parameters(spec, source)
    _check_parts(spec, source)
    return spec


def _only_file(folder: Path) -> Path:
    if not folder.is_dir():
        raise SpecError(f"{folder}: there is no such folder. Give the folder of the specification.")
    found = sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml") and each.name != _TYPES)
    if not found:
        raise SpecError(f"{folder}: no specification. Write the messages into a YAML file of this folder.")
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise SpecError(f"{folder}: several specifications: {names}. Keep one in a folder (and its {_TYPES}).")
    return found[0]


def _foreign(source: Source) -> Iterator[SpecError]:
    """Yield the uses of keys that only PostgreSQL's specifications have."""
    data = source.data if isinstance(source.data, Mapping) else {}
    for place, key in _keys(data, ()):
        about = _ANYWHERE.get(str(key)) or (_AT_THE_TOP.get(str(key)) if not place else None)
        if about:
            what, _, remedy = about.partition(". ")
            yield source.error(
                (*place, key), f"{key!r} is about {what}, which another protocol does not have", f"{remedy}."
            )


def _keys(data: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(data, list):
        for index, each in enumerate(data):
            yield from _keys(each, (*place, index))
    elif isinstance(data, Mapping):
        for key, each in data.items():
            yield place, key
            if key not in (*_NEVER, *_AT_THE_TOP):
                yield from _keys(each, (*place, key))


def _check_parameters(spec: Spec, source: Source) -> None:
    """Parameters are the version, and what states set: nothing else can be known of a message."""
    if spec.versions and "proto_version" not in spec.arguments and not spec.framed:
        remedy = "Write parameters: {proto_version: {type: int}}, or remove the versions."
        raise source.error(("versions",), "the versions have no parameter, by which programs pass one", remedy)
    by_states = {name for state in spec.states for name in state.sets}
    for parameter in spec.parameters:
        place = ("parameters", parameter.name)
        if parameter.type == "bool" and parameter.name not in by_states:
            raise source.error(place, f"no state sets the parameter {parameter.name!r}", "Write sets at a state.")
        if not spec.versions:
            problem = f"the parameter {parameter.name!r} is in a specification without versions"
            remedy = "Write versions: [{version: 1}], and the parameter proto_version: {type: int}."
            raise source.error(place, problem, remedy)


def _check_parts(spec: Spec, source: Source) -> None:
    """Compilers refuse what nothing uses."""
    used = {name for message in spec.messages for structure in spec.reached(message) for name in structure.references()}
    for part in spec.parts:
        if part.name not in used:
            raise source.error(part.line, f"no message has the part {part.name}", "Name it in a message, or remove it.")
