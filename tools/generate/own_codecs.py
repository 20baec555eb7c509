"""The codecs of somebody's own protocol in Rust, Go and TypeScript: complete packages under their own names.

What is written by hand is copied from the codecs of pgoutput in ``spec/``; the programs that answer lines of bytes come
from ``own/``.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Final

from tools.generate.golang import emit_go
from tools.generate.rust import emit_rust
from tools.generate.text import GENERATED
from tools.generate.typescript import emit_typescript
from tools.language import Spec
from tools.language.model import State

__all__ = ["own_codecs"]

_SPEC: Final = Path(__file__).parents[2] / "spec"
_PROGRAMS: Final = Path(__file__).parent / "own"

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
pub use values::{Letter, Lsn, Text, Timestamp};
""")
_INDEX: Final = """\
// {mark}

export * as messages from "./messages.js";
export {{ lsnText, stringify, timestampText, WireError }} from "./wire.js";
export type {{ Json, Lsn, Reason, Text, Timestamp, Trace }} from "./wire.js";
"""

_READ_RUST: Final = {
    "options": """\
fn read(settings: &[&str], data: &[u8]) -> Result<(String, bool), Error> {
    let (mut options, mut sets) = (messages::Options::default(), 0);
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match messages::STATE_PARAMETERS
            .iter()
            .position(|&each| each == name)
        {
            Some(bit) => sets |= u64::from(value == "true") << bit,
            None => options.set(name, value)?,
        }
    }
    let layout = options.layout(sets);
    let found = messages::parse(data, &layout)?;
    let built = messages::build(&found, &layout);
    Ok((found.to_json(&layout), built.ok().as_deref() == Some(data)))
}
""",
    "plain": """\
fn read(_: &[&str], data: &[u8]) -> Result<(String, bool), Error> {
    let found = messages::parse(data, &messages::Layout)?;
    let built = messages::build(&found, &messages::Layout);
    Ok((
        found.to_json(&messages::Layout),
        built.ok().as_deref() == Some(data),
    ))
}
""",
    "connection": """\
fn read(words: &[&str], data: &[u8]) -> Result<(String, bool), Error> {
    let sender = if words[0] == "server" {
        messages::Sender::Server
    } else {
        messages::Sender::Client
    };
    let state = messages::State::ALL
        .iter()
        .find(|each| each.1 == words[1])
        .map_or(Default::default(), |each| each.0);
    let found = messages::parse(data, sender, state)?;
    let built = messages::build(&found);
    Ok((
        found.to_json(&messages::Layout),
        built.ok().as_deref() == Some(data),
    ))
}
""",
}
"""The function of the program in Rust that reads a message, by what determines layouts."""

_READ_GO: Final = {
    "options": """\
func answer(settings []string, data []byte) string {
	options, sets := messages.Options{}, uint64(0)
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if bit := slices.Index(messages.StateParameters, name); bit < 0 {
			if err := options.Set(name, value); err != nil {
				return refused(err)
			}
		} else if value == "true" {
			sets |= 1 << bit
		}
	}
	layout := options.Layout(sets)
	message, err := messages.ParseMessage(data, layout)
	if err != nil {
		return refused(err)
	}
	built, err := messages.BuildMessage(message, layout)
	return found(messages.ToJSON(message, layout), built, err, data)
}
""",
    "plain": """\
func answer(_ []string, data []byte) string {
	layout := &messages.Layout{}
	message, err := messages.ParseMessage(data, layout)
	if err != nil {
		return refused(err)
	}
	built, err := messages.BuildMessage(message, layout)
	return found(messages.ToJSON(message, layout), built, err, data)
}
""",
    "connection": """\
func answer(words []string, data []byte) string {
	sender := messages.SenderClient
	if words[0] == "server" {
		sender = messages.SenderServer
	}
	state := messages.State(slices.Index(messages.States, words[1]))
	message, err := messages.ParseMessage(data, sender, state)
	if err != nil {
		return refused(err)
	}
	built, err := messages.BuildMessage(message)
	return found(messages.ToJSON(message, &messages.Layout{}), built, err, data)
}
""",
}
"""The same in Go."""

_READ_TYPESCRIPT: Final = {
    "options": """\
function answer(settings, data) {
  const options = { protoVersion: 1 };
  let sets = 0;
  for (const setting of settings) {
    const [name, value] = setting.split("=");
    const bit = messages.STATE_PARAMETERS.indexOf(name);
    if (bit < 0) messages.setOption(options, name, value);
    else if (value === "true") sets |= 1 << bit;
  }
  const layout = messages.layoutOf(options, sets);
  const message = messages.parse(data, layout);
  return found(messages.toJson(message, layout), messages.build(message, layout), data);
}
""",
    "plain": """\
function answer(_, data) {
  const message = messages.parse(data, {});
  return found(messages.toJson(message, {}), messages.build(message, {}), data);
}
""",
    "connection": """\
function answer([sender, state], data) {
  const message = messages.parse(data, sender, state);
  return found(messages.toJson(message, {}), messages.build(message), data);
}
""",
}
"""The same in TypeScript."""


def own_codecs(spec: Spec, package: str, union: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file of the codecs.

    Args:
        spec: The specification.
        package: The name of the package.
        union: The name of the type of all messages.
        mark: The first line of generated files.
    """
    spec = _with_state(spec)
    settings = "connection" if spec.framed else "options" if spec.versions else "plain"
    dashed = package.replace("_", "-")
    yield from _rust(spec, package, dashed, union, mark, settings)
    yield from _go(spec, package.replace("_", ""), union, mark, settings)
    yield from _typescript(spec, dashed, union, mark, settings)


def _with_state(spec: Spec) -> Spec:
    """Return a specification with a state: without states, a stream with versions is always in the same one."""
    return spec if spec.states or not spec.versions else replace(spec, states=(State("open"),))


def _rust(spec: Spec, package: str, dashed: str, union: str, mark: str, settings: str) -> Iterator[tuple[str, str]]:
    copied = dict(_copied(_SPEC / "rust" / "src", "lib.rs"))
    allowed = "#[allow(dead_code, unused_imports)] // other specifications use what this one does not\n"
    modules = [
        ("messages", "#[rustfmt::skip]\npub mod messages;\n"),
        *((name[:-3], f"{allowed}mod {name[:-3]};\n") for name in copied),
    ]
    lines = "".join(line for _, line in sorted(modules))
    yield (
        "rust/Cargo.toml",
        _CARGO.substitute(mark=mark, dashed=dashed, title=json.dumps(spec.title, ensure_ascii=False)),
    )
    yield "rust/.gitignore", f"# {mark}\ntarget/\n"
    yield "rust/src/lib.rs", _LIB.substitute(mark=mark, title=" ".join(spec.title.split()), modules=lines)
    yield "rust/src/messages.rs", emit_rust(spec, union)
    for name, text in copied.items():
        yield f"rust/src/{name}", f"// {mark}\n\n{text}"
    yield "rust/examples/check.rs", f"// {mark}\n\n" + _program("check.rs", crate=package, read=_READ_RUST[settings])


def _go(spec: Spec, package: str, union: str, mark: str, settings: str) -> Iterator[tuple[str, str]]:
    module = f"{package}.test/codec"
    imports = '\t"slices"\n' * (settings != "plain")
    program = _program("check.go", module=module, imports=imports, read=_READ_GO[settings])
    yield "go/go.mod", f"// {mark}\n\nmodule {module}\n\ngo 1.22\n"
    yield f"go/{package}.go", emit_go(spec, union, package, module)
    for name, text in _copied(_SPEC / "go" / "wire"):
        yield f"go/wire/{name}", f"// {mark}\n\n{text}"
    yield "go/cmd/check/main.go", f"// {mark}\n\n{program}"


def _typescript(spec: Spec, dashed: str, union: str, mark: str, settings: str) -> Iterator[tuple[str, str]]:
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
    }
    lines = json.dumps(described, indent=2, ensure_ascii=False).replace("{\n  ", "{ ", 1)
    yield "typescript/package.json", lines + "\n"
    yield "typescript/tsconfig.json", f"// {mark}\n" + (_SPEC / "typescript" / "tsconfig.json").read_text("utf-8")
    yield "typescript/.gitignore", f"# {mark}\ndist/\nnode_modules/\n"
    yield "typescript/src/index.ts", _INDEX.format(mark=mark)
    yield "typescript/src/messages.ts", emit_typescript(spec, union)
    for name, text in _copied(_SPEC / "typescript" / "src", "index.ts"):
        yield f"typescript/src/{name}", f"// {mark}\n\n{text}"
    yield "typescript/check.mjs", f"// {mark}\n\n" + _program("check.mjs", read=_READ_TYPESCRIPT[settings])


def _copied(folder: Path, *others: str) -> Iterator[tuple[str, str]]:
    """Yield the files that are written by hand and serve any specification."""
    for path in sorted(folder.iterdir()):
        text = path.read_text("utf-8")
        if path.name not in others and GENERATED not in text.partition("\n")[0]:
            yield path.name, text


def _program(name: str, **words: str) -> str:
    return Template((_PROGRAMS / name).read_text("utf-8")).substitute(words)
