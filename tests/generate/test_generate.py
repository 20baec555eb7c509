"""The generated files follow from the specification, and the command notices if they do not."""

import ast
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

import pgoutput_construct
from pgoutput_construct import SpecError
from tools.generate import __main__ as command
from tools.generate.outputs import OUTPUTS, orphans, render
from tools.generate.own_protocol import own_orphans
from tools.generate.python import definitions, messages
from tools.language import load
from tools.language.names import RESERVED_CLASSES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project's generated files and specifications."""
    for output in OUTPUTS:
        (tmp_path / output.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / output.path, tmp_path / output.path)
    shutil.copytree(ROOT / "spec", tmp_path / "spec", dirs_exist_ok=True)
    return tmp_path


@cache
def _rendered(*files: tuple[str, bytes]) -> Mapping[str, str]:
    with TemporaryDirectory() as folder:
        for name, content in files:
            Path(folder, name).write_bytes(content)
        return render(Path(folder))


def remembered(spec: Path) -> Mapping[str, str]:
    """Return what the emitters give for a folder; what they gave for the same contents is not made again."""
    return _rendered(*((path.name, path.read_bytes()) for path in sorted(spec.glob("*.yaml"))))


def run(project: Path, *arguments: str) -> int:
    """Run the command on a copy of the project."""
    with patch.object(command, "render", remembered):
        return command.main(["--into", str(project), "--spec", str(project / "spec"), *arguments])


@pytest.fixture(scope="module")
def rendered() -> Mapping[str, str]:
    """Return what the emitters give now."""
    return remembered(ROOT / "spec")


@pytest.mark.slow
@pytest.mark.parametrize("path", [output.path for output in OUTPUTS])
def test_output_is_current(path: str, rendered: Mapping[str, str]) -> None:
    """Each generated file equals what the emitters give now."""
    assert (ROOT / path).read_text("utf-8") == rendered[path]


@pytest.mark.parametrize("path", [output.path for output in OUTPUTS])
def test_first_line_names_specification_and_command(path: str) -> None:
    """The first line of a generated file marks it."""
    first = (ROOT / path).read_text("utf-8").splitlines()[0]
    assert "Generated from spec/" in first
    assert "python -m tools.generate" in first


def test_check_is_quiet_when_all_is_current(project: Path) -> None:
    """Nothing to do is exit status 0."""
    assert run(project, "--check") == 0


@pytest.mark.slow
def test_check_notices_a_stale_output(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An edited specification makes outputs stale, and check does not write them."""
    spec = project / "spec/pgoutput.yaml"
    spec.write_text(spec.read_text().replace("description: Transaction ID.", "description: The ID.", 1))
    before = (project / OUTPUTS[0].path).read_text()
    assert run(project, "--check") == 1
    assert "stale: pgoutput_construct/wire/messages.py" in capsys.readouterr().err
    assert (project / OUTPUTS[0].path).read_text() == before
    assert run(project) == 0
    assert run(project, "--check") == 0


def test_check_notices_a_missing_output(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A deleted output is missing."""
    (project / OUTPUTS[1].path).unlink()
    assert run(project, "--check") == 1
    assert f"missing: {OUTPUTS[1].path}" in capsys.readouterr().err


def test_check_notices_an_orphan(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A marked file that no emitter writes is an orphan; generating removes it."""
    orphan = project / "pgoutput_construct/wire/old.py"
    orphan.write_text("# Generated from spec/old.yaml by: python -m tools.generate. Do not edit.\n")
    assert run(project, "--check") == 1
    assert "orphaned: pgoutput_construct/wire/old.py" in capsys.readouterr().err
    assert run(project) == 0
    assert not orphan.exists()


@pytest.mark.parametrize("clone", ["dist", "node_modules/codec", "other"])
def test_a_clone_may_be_called_as_what_tools_build(tmp_path: Path, clone: str) -> None:
    """Files that tools build are no orphans; folders around the clone say nothing."""
    mark = "// Generated from spec/old.yaml by: python -m tools.generate{}. Do not edit.\n"
    for folder, text in (("spec/rust/src", mark.format("")), ("rust/src", mark.format(" --package jobs"))):
        for path in (tmp_path / clone / folder / "old.rs", tmp_path / clone / folder / "target/old.rs"):
            path.parent.mkdir(parents=True)
            path.write_text(text)
    assert orphans(tmp_path / clone) == ["spec/rust/src/old.rs"]
    assert own_orphans(tmp_path / clone, {}, "jobs") == ["rust/src/old.rs"]


def test_broken_specification_is_exit_status_2(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken specification is reported in one line with its place, and nothing is written."""
    spec = project / "spec/pgoutput.yaml"
    spec.write_text(spec.read_text().replace("Int32 (Oid)", "Int32 (Old)", 1))
    assert run(project) == 2
    assert "pgoutput.yaml:" in capsys.readouterr().err
    assert run(project, "--check") == 2


@pytest.mark.slow
def test_generator_runs_without_the_generated_modules(project: Path) -> None:
    """Missing outputs can be regenerated although the package cannot be imported without them."""
    import subprocess
    import sys

    shutil.copytree(ROOT / "tools", project / "tools")
    shutil.copytree(ROOT / "pgoutput_construct", project / "pgoutput_construct", dirs_exist_ok=True)
    for output in OUTPUTS:
        (project / output.path).unlink()
    subprocess.run([sys.executable, "-m", "tools.generate"], cwd=project, check=True, capture_output=True)
    assert run(project, "--check") == 0


@pytest.mark.slow
def test_an_envelope_with_versions_is_refused(tmp_path: Path) -> None:
    """A reader of frames does not know the version."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    path = tmp_path / "spec" / "replication.yaml"
    text = path.read_text("utf-8").replace("messages:", "versions: [{version: 1, server: 10}]\n\nmessages:", 1)
    path.write_text(text, "utf-8")
    with pytest.raises(
        SpecError, match=r"replication\.yaml:9: the envelope has versions of its own, and carries pgout"
    ):
        render(tmp_path / "spec")
    path.write_text(text.replace("carries: pgoutput.yaml\n", ""), "utf-8")
    with pytest.raises(SpecError, match=r"replication\.yaml:1: the envelope has versions.* Write carries: pgoutput"):
        render(tmp_path / "spec")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other"), [("Primary Keepalive", "replication.yaml"), ("StartupMessage", "protocol.yaml")]
)
def test_a_class_of_another_specification_is_refused(tmp_path: Path, name: str, other: str) -> None:
    """Only one of them would be visible in the package."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    path = tmp_path / "spec" / "pgoutput.yaml"
    tag = "{field: Byte1('z'), name: tag}"
    added = f"  - {{name: {name}, in: [idle], blocks: [{{type: header, fields: [{tag}]}}]}}\n"
    path.write_text(path.read_text("utf-8").replace("  - name: Origin\n", f"{added}  - name: Origin\n", 1), "utf-8")
    problem = f"a class would be called {name.replace(' ', '')} here and in pgoutput.yaml. Choose another name"
    with pytest.raises(SpecError, match=rf"^{other}:\d+: {problem}"):
        render(tmp_path / "spec")


def test_names_that_generated_modules_import_are_reserved() -> None:
    """Where classes of a specification are, or what is called like them: in the modules of messages and definitions."""
    kinds = {name for kind in load(ROOT / "spec/pgoutput.yaml").types for name in (kind.notation, kind.construct)}
    for imports in (messages.IMPORTS, definitions.IMPORTS.format(package="wire", messages="messages")):
        nodes = [node for node in ast.parse(imports).body if isinstance(node, ast.ImportFrom)]
        names = {each.name for node in nodes for each in node.names if each.name[0].isupper()}
        assert len(names) > 5
        assert names <= RESERVED_CLASSES | kinds


@pytest.mark.slow
def test_names_of_the_package_are_reserved() -> None:
    """No class of a specification hides what the package exports next to them, or has from wire/protocol.py."""
    specs = [load(ROOT / "spec" / name) for name in ("pgoutput.yaml", "replication.yaml", "protocol.yaml")]
    own = {name for spec in specs for name in spec.class_names()}
    own |= {name for part in specs[0].rows if part.values for each in part.values.alternatives for name in each.defines}
    public = {name for name in dir(pgoutput_construct) if name[0].isupper()} - own
    imported = set[str]()
    for path in (ROOT / "pgoutput_construct").rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "pgoutput_construct.wire.protocol" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "pgoutput_construct.wire.protocol":
                imported |= {each.name for each in node.names}
    assert {"Session", "DecodeError"} <= public
    assert "Streaming" in imported
    assert public | imported <= RESERVED_CLASSES


@pytest.mark.slow
def test_an_envelope_depends_on_what_it_carries(tmp_path: Path) -> None:
    """Its fields can have conditions by version and option, but not by the state of the stream."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    path = tmp_path / "spec" / "replication.yaml"
    text = path.read_text("utf-8")
    field = "- {field: Int8, name: reply_requested,"
    for more, words in (
        ("until: 9,", "until: 9 is not a protocol version"),
        (
            "when: in_stream,",
            r"is not a bool parameter. Write one of \['parallel'\]: a frame is in no state of pgoutput",
        ),
    ):
        path.write_text(text.replace(field, f"{field} {more}", 1), "utf-8")
        with pytest.raises(SpecError, match=words):
            render(tmp_path / "spec")
    path.write_text(
        text.replace("carries: pgoutput.yaml", "carries: nothing.yaml").replace(field, f"{field} since: 2,", 1), "utf-8"
    )
    with pytest.raises(SpecError, match=r"replication\.yaml:7: carries: nothing.yaml is not another specification"):
        render(tmp_path / "spec")
