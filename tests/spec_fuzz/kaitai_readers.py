"""Kaitai Struct's readers of invented specifications: compiled by its own compiler, run in Python."""

import json
import subprocess
from collections.abc import Mapping
from io import BytesIO
from types import ModuleType, TracebackType
from typing import Any

import kaitaistruct
import yaml

from tools.generate.kaitai import emit_kaitai
from tools.generate.reserved import escaped
from tools.kaitai import PACKAGE
from tools.language import Spec

__all__ = ["Compiler", "Reads"]

_PROGRAM = """
const compiler = require(process.argv[1]);
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
    compiler.compile("python", JSON.parse(line), null, false).then(
        (files) => console.log(JSON.stringify({files})),
        (error) => console.log(JSON.stringify({error: String(error)})),
    );
});
"""


class Compiler:
    """The compiler, as long as it runs."""

    def __enter__(self) -> "Compiler":
        command = ["node", "-e", _PROGRAM, str(PACKAGE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def reads(self, spec: Spec) -> "Reads":
        """Return the reader of a specification; raise AssertionError with what the compiler says against it."""
        content = yaml.safe_load(emit_kaitai(spec))
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(content) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "files" in answer, f"Kaitai Struct's compiler: {answer.get('error')}"
        (text,) = answer["files"].values()
        module = ModuleType("fuzzed")
        exec(compile(text, "<kaitai>", "exec"), vars(module))
        named = {new.name: old.name for new, old in zip(escaped(spec).parameters, spec.parameters, strict=True)}
        return Reads(module.Fuzzed, [named[each["id"]] for each in content.get("params", ())])


class Reads:
    """Whether a reader accepts bytes."""

    def __init__(self, reader: Any, parameters: list[str]) -> None:
        self.reader = reader
        self.parameters = parameters

    def __call__(self, given: Mapping[str, Any], data: bytes) -> bool:
        """Return whether it accepts bytes under parameters."""
        try:
            self.reader(*(given[name] for name in self.parameters), kaitaistruct.KaitaiStream(BytesIO(data)))
        except (kaitaistruct.KaitaiStructError, EOFError):
            return False
        return True
