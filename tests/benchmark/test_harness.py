"""How harnesses are built: what they need, what their sources are, and when they are built again."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools.benchmark import harness
from tools.benchmark.batch import Batch
from tools.benchmark.cases import HEADLINE
from tools.benchmark.harness import CODECS, HARNESSES, Allocated, Running, built, lacking, prepare
from tools.benchmark.report import Report


def test_a_missing_tool_is_named(tmp_path: Path) -> None:
    """A peer whose compiler is not there is left out, and nothing is made."""
    foreign = replace(HARNESSES[0], tool="no-such-compiler")
    assert prepare(foreign, tmp_path) == "no no-such-compiler on the PATH"
    assert list(tmp_path.iterdir()) == []


def test_a_changed_harness_is_built_again(tmp_path: Path) -> None:
    """What was built from other sources does not count as built."""
    foreign = HARNESSES[0]
    (tmp_path / "peers" / foreign.folder).mkdir(parents=True)
    stamp = tmp_path / "peers" / foreign.folder / ".built"
    stamp.write_text("other", "ascii")
    assert built(foreign, tmp_path) is None
    stamp.write_text(foreign.stamp, "ascii")
    assert built(foreign, tmp_path) == stamp.parent


def test_a_missing_compiler_of_typescript_says_how_to_fetch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path in the cache is no command that somebody could install."""
    own = replace(next(each for each in CODECS if each.language == "TypeScript"), tool="true")
    monkeypatch.setattr(harness, "missing_tools", lambda _: "run python -m tools.codecs")
    assert lacking(own) == "run python -m tools.codecs"


def test_names_of_files_decide_and_what_tools_build_does_not(tmp_path: Path) -> None:
    """A renamed file is another source; folders such as target/ are neither read nor copied."""
    own = replace(HARNESSES[0], tool="true", build=("true",), root=tmp_path / "sources")
    own.sources.mkdir(parents=True)
    (own.sources / "main.go").write_text("package main\n")
    before = own.stamp
    (own.sources / "target").mkdir()
    (own.sources / "target" / "built").write_text("x")
    assert own.stamp == before
    folder = prepare(own, tmp_path / "built")
    assert isinstance(folder, Path)
    assert sorted(path.name for path in folder.iterdir()) == [".built", "main.go"]
    (own.sources / "main.go").rename(own.sources / "other.go")
    assert own.stamp != before


_PROGRAM = """\
#!/bin/sh
echo ready 4
while read -r line; do
    case $line in pass) echo 9 4 0 ;; allocated) echo "${0##*/} 600" ;; esac
done
"""


@pytest.mark.parametrize(("name", "allocations"), [("-", None), ("2", 0.5)])
def test_allocations_are_those_for_a_message(name: str, allocations: float | None, tmp_path: Path) -> None:
    """They and their bytes are averages; a language may not count them. The report has both."""
    (tmp_path / name).write_text(_PROGRAM, "ascii")
    (tmp_path / name).chmod(0o755)
    path = tmp_path / "four.payloads"
    Batch(HEADLINE, [b"B"] * 4).save(path)
    with Running(replace(HARNESSES[0], run=(f"./{name}",)), tmp_path, Batch.load(HEADLINE, path)) as running:
        found = running.allocated()
    assert found == Allocated(HARNESSES[0].name, allocations, 150)
    report = Report({"cpu": "", "cpus": 1, "system": "", "python": "", "load": 0, "libraries": {}}, "")
    report.allocated.append((HEADLINE.name, found))
    shown = "-" if allocations is None else "0.5"
    line = next(line for line in report.text().splitlines() if HARNESSES[0].name in line and "150" in line)
    assert line.split() == [HEADLINE.name, HARNESSES[0].name, shown, "150"]
    assert report.json()["allocated"] == [
        {"case": HEADLINE.name, "engine": HARNESSES[0].name, "allocations": allocations, "bytes": 150}
    ]


def test_a_codec_is_built_with_its_harness(tmp_path: Path) -> None:
    """It lies next to the harness's own sources, and belongs to what decides whether that is built again."""
    plain = replace(HARNESSES[0], tool="true", build=("true",))
    uses_codec = replace(plain, codec="go")
    folder = prepare(uses_codec, tmp_path)
    assert isinstance(folder, Path)
    assert "module pgoutput.test/codec" in (folder / "codec" / "go.mod").read_text("utf-8")
    assert (folder / "main.go").read_bytes() == (plain.sources / "main.go").read_bytes()
    assert built(uses_codec, tmp_path) == folder
    assert built(plain, tmp_path) is None


def test_sources_that_were_removed_do_not_remain(tmp_path: Path) -> None:
    """Only what tools build there remains between two builds."""
    own = replace(HARNESSES[0], tool="true", build=("true",), root=tmp_path / "sources", codec="go")
    own.sources.mkdir(parents=True)
    (own.sources / "main.go").write_text("package main\n")
    folder = tmp_path / "built" / own.kind / own.folder
    for name in ("old.go", "old/old.go", "codec/old.go", "target/built"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("package old\n")
    assert prepare(own, tmp_path / "built") == folder
    assert sorted(path.name for path in folder.iterdir()) == [".built", "codec", "main.go", "target"]
    assert not (folder / "codec" / "old.go").exists() and (folder / "target" / "built").exists()


def test_errors_of_a_compiler_are_reported(tmp_path: Path) -> None:
    """Wherever it prints them: that of TypeScript does so on its standard output."""
    own = replace(HARNESSES[0], tool="sh", build=("sh", "-c", "echo wrong type; echo why >&2; exit 1"))
    assert str(prepare(own, tmp_path)).endswith("failed: wrong type\nwhy")
