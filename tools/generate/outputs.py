"""The table of outputs: the path, specification and emitter of each generated file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tools.codecs import is_built
from tools.generate.check_programs import Lines, check_program, settings_of
from tools.generate.go.go_codec import emit_go
from tools.generate.kaitai import emit_kaitai
from tools.generate.python.builtin_types import emit_builtin_types
from tools.generate.python.codec import emit_codec
from tools.generate.python.definitions import emit_definitions
from tools.generate.python.kernels import emit_kernels
from tools.generate.python.messages import emit_messages
from tools.generate.python.protocol import emit_protocol
from tools.generate.reference.reference_changes import emit_changes
from tools.generate.reference.reference_page import emit_reference
from tools.generate.reference.reference_table import emit_fields
from tools.generate.rust.rust_codec import emit_rust
from tools.generate.taken_names import check_names
from tools.generate.text import COMMAND, GENERATED
from tools.generate.typescript.typescript_codec import emit_typescript
from tools.generate.vectors.golden_vectors import emit_vectors
from tools.generate.vectors.vectors_schema import emit_vectors_schema
from tools.generate.wireshark.dissector import emit_dissector
from tools.language import Spec, load
from tools.language.breakage import check_released
from tools.language.builtin_types import load_types
from tools.language.errors import SpecError
from tools.language.rules import check_together

__all__ = ["OUTPUTS", "Output", "orphans", "render"]


@dataclass(frozen=True)
class Output:
    """One generated file: its path, specification, emitter and loader."""

    path: str
    spec: str
    emit: Callable[..., str]
    load: Callable[[Path], Any] = load
    related: tuple[str, ...] = ()
    """Further specifications that the emitter needs."""


SUFFIXES = (".py", ".md", ".json", ".jsonl", ".ksy", ".lua", ".rs", ".go", ".ts", ".mjs")
"""The suffixes of generated files."""
WIRE = "pgoutput_construct/wire"
GO_MODULE = "pgoutput.test/codec"
"""The path of the module in spec/go."""


def _layouts(spec: str, prefix: str, messages: str, union: str) -> Iterator[Output]:
    """Yield the outputs of each specification of messages."""
    yield Output(f"{WIRE}/{messages}.py", spec, partial(emit_messages, union=union))
    yield Output(f"{WIRE}/{prefix}definitions.py", spec, partial(emit_definitions, messages=messages))
    yield Output(f"{WIRE}/{prefix}codec.py", spec, partial(emit_codec, messages=messages))


def _codecs(spec: str, name: str, union: str) -> Iterator[Output]:
    """Yield the codecs of a specification in other languages."""
    yield Output(f"spec/rust/src/{name}.rs", spec, partial(emit_rust, union=union))
    yield Output(f"spec/go/{name}/{name}.go", spec, partial(emit_go, union=union, package=name, module=GO_MODULE))
    yield Output(f"spec/typescript/src/{name}.ts", spec, partial(emit_typescript, union=union))


def _programs() -> Iterator[Output]:
    """Yield the programs of these codecs that answer lines."""
    imports = "\n".join(f'\t"{GO_MODULE}/{module}"' for module in sorted(KINDS))
    for path, suffix, package in (
        ("rust/examples/check.rs", "rs", "pgoutput_codec"),
        ("go/cmd/check/main.go", "go", GO_MODULE),
        ("typescript/check.mjs", "mjs", ""),
    ):
        emit = partial(_program, suffix=suffix, package=package, imports=imports)
        yield Output(f"spec/{path}", "pgoutput.yaml", emit, related=("replication.yaml", "protocol.yaml"))


def _program(*specs: Spec, suffix: str, package: str, imports: str) -> str:
    lines = [Lines(kind, settings_of(spec), name) for (name, kind), spec in zip(KINDS.items(), specs, strict=True)]
    return check_program(suffix, f"{GENERATED}pgoutput.yaml by: {COMMAND}. Do not edit.", lines, package, imports)


def _vectors(spec: str, name: str) -> Iterator[Output]:
    """Yield the golden vectors of a specification, and their schema."""
    yield Output(f"spec/{name}.jsonl", spec, emit_vectors)
    yield Output(f"spec/{name}.schema.json", spec, emit_vectors_schema)


INSIDE = ("the messages inside", "reference.md")
AROUND = ("the envelope around the messages", "reference-envelope.md")
CONNECTION = ("the connection that carries them", "reference-connection.md")
CHANGES = ("what changed", "reference-changes.md")
PAGES = {"pgoutput.yaml": INSIDE[1], "replication.yaml": AROUND[1], "protocol.yaml": CONNECTION[1]}
"""The reference page of each specification."""

CODECS = {
    "pgoutput": ("pgoutput.yaml", "PgoutputMessage"),
    "replication": ("replication.yaml", "Frame"),
    "connection": ("protocol.yaml", "ConnectionMessage"),
}
"""The codecs in other languages: of each the specification, and the type of all its messages."""
KINDS = {"pgoutput": "message", "replication": "frame", "connection": "connection"}
"""What their programs call the messages of each."""

OUTPUTS = (
    *_layouts("pgoutput.yaml", "", "messages", "PgoutputMessage"),
    *_layouts("replication.yaml", "frame_", "frames", "Frame"),
    *_layouts("protocol.yaml", "connection_", "connection_messages", "ConnectionMessage"),
    Output(f"{WIRE}/fields.py", "pgoutput.yaml", emit_fields),
    Output(f"{WIRE}/frame_fields.py", "replication.yaml", emit_fields),
    Output(f"{WIRE}/connection_fields.py", "protocol.yaml", emit_fields),
    Output(f"{WIRE}/protocol.py", "pgoutput.yaml", emit_protocol),
    Output("spec/reference.md", "pgoutput.yaml", partial(emit_reference, others=[AROUND, CONNECTION, CHANGES])),
    Output(
        "spec/reference-envelope.md", "replication.yaml", partial(emit_reference, others=[INSIDE, CONNECTION, CHANGES])
    ),
    Output("spec/reference-connection.md", "protocol.yaml", partial(emit_reference, others=[INSIDE, AROUND, CHANGES])),
    Output(
        "spec/reference-changes.md",
        "pgoutput.yaml",
        partial(emit_changes, pages=PAGES),
        related=("replication.yaml", "protocol.yaml"),
    ),
    *_vectors("pgoutput.yaml", "vectors"),
    *_vectors("replication.yaml", "vectors-envelope"),
    *_vectors("protocol.yaml", "vectors-connection"),
    *(output for name, (spec, union) in CODECS.items() for output in _codecs(spec, name, union)),
    *_programs(),
    Output("spec/pgoutput.ksy", "pgoutput.yaml", emit_kaitai),
    Output("spec/replication.ksy", "replication.yaml", emit_kaitai),
    Output("pgoutput_construct/pgtypes/builtin_types.py", "builtin_types.yaml", emit_builtin_types, load_types),
    Output("pgoutput_construct/columnar/kernels.py", "pgoutput.yaml", emit_kernels),
    Output("pgoutput_construct/columnar/frame_kernels.py", "replication.yaml", emit_kernels),
    Output("spec/pgoutput.lua", "pgoutput.yaml", emit_dissector, related=("replication.yaml", "protocol.yaml")),
)


def render(spec_folder: Path) -> Mapping[str, str]:
    """Return the text of every output by its path; raise SpecError for a broken specification."""
    loads = {output.spec: output.load for output in OUTPUTS}
    specs = {name: load(spec_folder / name) for name, load in loads.items()}
    check_together(spec for spec in specs.values() if isinstance(spec, Spec))
    for name, union in CODECS.values():
        check_names(specs[name], union)
    _check_frames(specs["replication.yaml"])
    check_released(specs["pgoutput.yaml"], spec_folder)
    return {output.path: output.emit(*(specs[name] for name in (output.spec, *output.related))) for output in OUTPUTS}


def _check_frames(frames: Spec) -> None:
    """Raise SpecError if the envelope defines options itself: they are those of the messages that it carries."""
    for words, given in (("versions", frames.versions), ("parameters", frames.parameters), ("options", frames.options)):
        if given and not frames.carries:
            problem = f"the envelope has {words}, and nothing tells a reader of frames which hold"
            raise SpecError(f"{frames.file}:1: {problem}. Write carries: pgoutput.yaml instead of {words}.")


def orphans(root: Path) -> list[str]:
    """Return the files with the mark of generated files that no emitter writes any more."""
    written = {output.path for output in OUTPUTS}
    found = []
    for folder in ("pgoutput_construct", "spec"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and name not in written and not is_built(path, root) and _is_generated(path):
                found.append(name)
    return found


def _is_generated(path: Path) -> bool:
    with path.open("rb") as file:
        return GENERATED.encode() in file.readline()
