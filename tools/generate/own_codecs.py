"""The codecs of somebody's own protocol in Rust, Go and TypeScript: complete packages under their own names.

What is written by hand is copied from the codecs of pgoutput in ``spec/``; the programs that answer lines of bytes are
those of ``check_programs``.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Final

from tools.generate.check_programs import Lines, check_program, settings_of
from tools.generate.go.go_codec import emit_go
from tools.generate.rust.rust_codec import emit_rust
from tools.generate.text import GENERATED
from tools.generate.typescript.typescript_codec import emit_typescript
from tools.language import Spec
from tools.language.model import State
from tools.npm import TYPESCRIPT

__all__ = ["own_codecs"]

_SPEC: Final = Path(__file__).parents[2] / "spec"

_CARGO: Final = Template("""\
# $mark
[package]
name = "$dashed"
version = "0.1.0"
edition = "2021"
rust-version = "1.81"
description = $title

[dependencies]
""")
_LIB: Final = Template("""\
// $mark

//! $title: what they hold, and how they are read and built.
//!
//! Whatever the bytes, reading ends with a message or with an [`Error`]: it does not panic, and allocates nothing by a
//! length that was not compared with the bytes that are left.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

$modules
pub use errors::{Error, Reason};
pub use values::{Float, Letter, Lsn, Text, Timestamp};
""")
_INDEX: Final = """\
// {mark}

export * as messages from "./messages.js";
export {{ lsnText, stringify, timestampText, WireError }} from "./wire.js";
export type {{ Float, Json, Lsn, Reason, Text, Timestamp, Trace }} from "./wire.js";
"""


def own_codecs(spec: Spec, package: str, union: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file of the codecs.

    Args:
        spec: The specification.
        package: The name of the package.
        union: The name of the type of all messages.
        mark: The first line of generated files.
    """
    spec = _with_state(spec)
    lines = [Lines("connection" if spec.framed else "message", settings_of(spec), "messages")]
    dashed = package.replace("_", "-")
    yield from _rust(spec, package, dashed, union, mark, lines)
    yield from _go(spec, package.replace("_", ""), union, mark, lines)
    yield from _typescript(spec, dashed, union, mark, lines)


def _with_state(spec: Spec) -> Spec:
    """Return a specification with a state: without states, a stream with versions is always in the same one."""
    return spec if spec.states or not spec.versions else replace(spec, states=(State("open"),))


def _rust(
    spec: Spec, package: str, dashed: str, union: str, mark: str, lines: Sequence[Lines]
) -> Iterator[tuple[str, str]]:
    copied = dict(_copied(mark, _SPEC / "rust" / "src", "lib.rs"))
    allowed = "#[allow(dead_code, unused_imports)] // other specifications use what this one does not\n"
    modules = [
        ("messages", "#[rustfmt::skip]\npub mod messages;\n"),
        *((name[:-3], f"{allowed}mod {name[:-3]};\n") for name in copied),
    ]
    declared = "".join(line for _, line in sorted(modules))
    yield (
        "rust/Cargo.toml",
        _CARGO.substitute(mark=mark, dashed=dashed, title=json.dumps(spec.title, ensure_ascii=False)),
    )
    yield "rust/.gitignore", f"# {mark}\ntarget/\n"
    yield "rust/src/lib.rs", _LIB.substitute(mark=mark, title=" ".join(spec.title.split()), modules=declared)
    yield "rust/src/messages.rs", emit_rust(spec, union)
    for name, text in copied.items():
        yield f"rust/src/{name}", text
    yield "rust/examples/check.rs", check_program("rs", mark, lines, package)


def _go(spec: Spec, package: str, union: str, mark: str, lines: Sequence[Lines]) -> Iterator[tuple[str, str]]:
    module = f"{package}.test/codec"
    yield "go/go.mod", f"// {mark}\n\nmodule {module}\n\ngo 1.22\n"
    yield f"go/{package}.go", emit_go(spec, union, package, module)
    for name, text in _copied(mark, _SPEC / "go" / "wire"):
        yield f"go/wire/{name}", text
    yield "go/cmd/check/main.go", check_program("go", mark, lines, module, f'\tmessages "{module}"')


def _typescript(spec: Spec, dashed: str, union: str, mark: str, lines: Sequence[Lines]) -> Iterator[tuple[str, str]]:
    described = {
        "//": mark,
        "name": dashed,
        "version": "0.1.0",
        "description": spec.title,
        "type": "module",
        "sideEffects": False,
        "exports": {".": "./dist/index.js"},
        "types": "./dist/index.d.ts",
        "files": ["dist"],
        "scripts": {"build": "tsc"},
        "devDependencies": {TYPESCRIPT.package: TYPESCRIPT.version},
    }
    text = json.dumps(described, indent=2, ensure_ascii=False).replace("{\n  ", "{ ", 1)
    yield "typescript/package.json", text + "\n"
    yield "typescript/tsconfig.json", f"// {mark}\n" + (_SPEC / "typescript" / "tsconfig.json").read_text("utf-8")
    yield "typescript/.gitignore", f"# {mark}\ndist/\nnode_modules/\n"
    yield "typescript/src/index.ts", _INDEX.format(mark=mark)
    yield "typescript/src/messages.ts", emit_typescript(spec, union)
    for name, text in _copied(mark, _SPEC / "typescript" / "src", "index.ts"):
        yield f"typescript/src/{name}", text
    yield "typescript/check.mjs", check_program("mjs", mark, lines)


def _copied(mark: str, folder: Path, *others: str) -> Iterator[tuple[str, str]]:
    """Yield the files that are written by hand and serve any specification, with their licence."""
    for path in sorted(folder.iterdir()):
        text = path.read_text("utf-8")
        if path.name not in others and GENERATED not in text.partition("\n")[0]:
            yield path.name, f"// {mark}\n// Copied from pgoutput_construct; its licence is Apache-2.0.\n\n{text}"
