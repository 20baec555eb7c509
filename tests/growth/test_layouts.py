"""Layouts that PostgreSQL's pages may have next, by YAML alone: all engines and all codecs read and build them."""

import json
import textwrap
from pathlib import Path

import pytest

from tests.codecs.golden import golden_vectors, misread
from tests.growth.project import Project, grow
from tests.wireshark.pcap import write_pcap
from tests.wireshark.sent import start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown
from tools.codecs import CODECS, TSC, built, missing_tools, run_tool

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change."""
    return grow(tmp_path_factory.mktemp("layouts"), "layouts")


@pytest.mark.parametrize(
    "script", ["layouts.py", *(pytest.param(name, marks=pytest.mark.long) for name in ("alone.py", "vectors.py"))]
)
def test_engines(project: Project, script: str) -> None:
    """Bytes that were written by hand, whatever the strategies make, and the golden vectors."""
    done = project.run(HERE / script, environment={"PATH": "/usr/bin:/bin", "NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", CODECS)
def test_codec(project: Project, tmp_path: Path, language: str) -> None:
    """The codecs in other languages read and build the golden vectors, and refuse what these refuse."""
    codec = CODECS[language]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    vectors = [*golden_vectors(project.spec)]
    assert {"Advice", "Estimate", "Histogram"} <= {vector["message"] for _, vector in vectors if "fields" in vector}
    assert not misread(built(codec, tmp_path, project.spec), vectors)


UNBUILT = {
    "rust": (
        "examples/unbuilt.rs",
        """
        use pgoutput_codec::pgoutput::{build, Advice, AdviceTarget, Bucket, Cost, Estimate, Histogram, Options};
        use pgoutput_codec::pgoutput::{PgoutputMessage, Trailer};
        use pgoutput_codec::{Float, Text};

        fn main() {
            let layout = Options::new(5).layout(0);
            let nan = Float(f64::from_bits(0xfff0_0000_0000_0001));
            let bucket = |quartiles: &[i32]| Bucket { row_count: 3, skew: None, quartiles: quartiles.to_vec() };
            for (bounds, quartiles) in [(1, vec![1, 2, 3]), (0, vec![1, 2, 3]), (1, vec![1, 2])] {
                let found = Histogram { bounds: vec![nan; bounds], buckets: vec![bucket(&quartiles)] };
                match build(&PgoutputMessage::Histogram(found), &layout) {
                    Ok(data) => println!("{}", data.len()),
                    Err(error) => println!("{}", error.path()),
                }
            }
            for size in [254, 255] {
                let label = vec![b'x'; size];
                let cost = Cost { total: 7, buffers: None, labels: vec![Text(&label)], rest: &[] };
                let trailer = Trailer { version: 9, hints: vec![] };
                let found = Estimate { flags: 0, cost, actual: None, steps: vec![], trailer };
                match build(&PgoutputMessage::Estimate(found), &layout) {
                    Ok(data) => println!("{}", data.len()),
                    Err(error) => println!("{}", error.path()),
                }
            }
            let query = AdviceTarget::Query(Text(b""));
            println!("{}", query.kind());
            let advice = Advice { target: query, limit: None };
            println!("{}", build(&PgoutputMessage::Advice(advice), &layout).unwrap_err().path());
        }
        """,
        ("cargo", "run", "--quiet", "--offline", "--example", "unbuilt"),
    ),
    "go": (
        "cmd/unbuilt/main.go",
        """
        package main

        import (
        \t"bytes"
        \t"errors"
        \t"fmt"
        \t"math"

        \t"MODULE/pgoutput"
        \t"MODULE/wire"
        )

        func tell(message pgoutput.PgoutputMessage, layout *pgoutput.Layout) {
        \tdata, err := pgoutput.BuildMessage(message, layout)
        \tvar found *wire.Error
        \tif errors.As(err, &found) {
        \t\tfmt.Println(found.Path)
        \t} else {
        \t\tfmt.Println(len(data))
        \t}
        }

        func main() {
        \tlayout := (&pgoutput.Options{ProtoVersion: 5}).Layout(0)
        \tnan := math.Float64frombits(0xfff0_0000_0000_0001)
        \tfor _, each := range []struct {
        \t\tbounds    []float64
        \t\tquartiles []int32
        \t}{{[]float64{nan}, []int32{1, 2, 3}}, {nil, []int32{1, 2, 3}}, {[]float64{nan}, []int32{1, 2}}} {
        \t\tbuckets := []pgoutput.Bucket{{RowCount: 3, Quartiles: each.quartiles}}
        \t\ttell(&pgoutput.Histogram{Bounds: each.bounds, Buckets: buckets}, layout)
        \t}
        \tfor _, size := range []int{254, 255} {
        \t\tcost := pgoutput.Cost{Labels: pgoutput.Labels{bytes.Repeat([]byte("x"), size)}}
        \t\ttell(&pgoutput.Estimate{Cost: cost}, layout)
        \t}
        \tfmt.Println(pgoutput.AdviceTargetQuery)
        \ttell(&pgoutput.Advice{Target: pgoutput.AdviceTarget{Kind: pgoutput.AdviceTargetQuery}}, layout)
        }
        """,
        ("go", "run", "./cmd/unbuilt"),
    ),
    "typescript": (
        "src/unbuilt.ts",
        """
        import { pgoutput, WireError } from "./index.js";
        import type { PgoutputMessage } from "./pgoutput.js";

        const layout = pgoutput.layoutOf({ protoVersion: 5 }, 0);
        const nan = new Uint8Array([0xff, 0xf0, 0, 0, 0, 0, 0, 1]);
        const printed: string[] = [];

        function tell(message: PgoutputMessage): void {
          try {
            printed.push(String(pgoutput.build(message, layout).length));
          } catch (error) {
            printed.push((error as WireError).path);
          }
        }

        for (const [bounds, quartiles] of [[[nan], [1, 2, 3]], [[], [1, 2, 3]], [[nan], [1, 2]]] as const) {
          const buckets = [{ rowCount: 3n, skew: null, quartiles: [...quartiles] }];
          tell({ message: "Histogram", bounds: [...bounds], buckets });
        }
        for (const size of [254, 255]) {
          const cost = { total: 7, buffers: null, labels: ["x".repeat(size)], rest: new Uint8Array(0) };
          tell({ message: "Estimate", flags: 0, cost, actual: null, steps: [], trailer: { version: 9, hints: [] } });
        }
        const query = { kind: 255, value: "" } as const;
        printed.push(String(query.kind));
        tell({ message: "Advice", target: query, limit: null });
        (globalThis as unknown as { console: { log(text: string): void } }).console.log(printed.join("\\n"));
        """,
        ("node", "unbuilt/unbuilt.js"),
    ),
}
"""A program for each language that builds messages which cannot be sent: its file, its text, and how it is run."""


@pytest.mark.parametrize("language", CODECS)
def test_what_cannot_be_sent_is_not_built(project: Project, language: str) -> None:
    """Lists of other lengths, parts that are too long, and other tags are errors with a path; any NaN is written."""
    codec, (name, text, command) = CODECS[language], UNBUILT[language]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    folder = codec.folder(project.spec)
    (folder / name).parent.mkdir(exist_ok=True)
    if language == "go":
        text = text.replace("MODULE", (folder / "go.mod").read_text("utf-8").split()[1])
    (folder / name).write_text(textwrap.dedent(text).lstrip(), "utf-8")
    if language == "typescript":
        (folder / "unbuilt").mkdir()
        (folder / "unbuilt" / "package.json").write_text('{"type": "module"}', "utf-8")
        run_tool((str(TSC), "--outDir", "unbuilt"), folder)
    found = run_tool(command, folder, {"CARGO_TARGET_DIR": str(project.folder / "target")}).split()
    lists = ["31", "Histogram.buckets", "Histogram.buckets[0].quartiles"]
    assert found == [*lists, "268", "Estimate.cost.labels_size", "255", "Advice.target_kind"]


def test_reference(project: Project) -> None:
    """The page says how many items there are."""
    page = (project.spec / "reference.md").read_text("utf-8")
    for words in (
        "protocol version 5 and newer: `relation_count` times",
        "protocol version 5 and newer: 2 times",
        "| 3 times; each is",
        "| `Int8(10)` | `target=relation`",
        "| [Cost](#cost) | `actual` | bit 1 of `flags` is set, `actual_size` bytes |",
        "| `repeat_1` | `hints[]` | while bytes remain; each is",
    ):
        assert words in page, words


@NEEDS_TSHARK
def test_dissector(project: Project, tmp_path: Path) -> None:
    """Wireshark shows what the trace has."""
    done = project.run(HERE / "layouts.py", "--trace")
    assert done.returncode == 0, done.stderr
    traced = json.loads(done.stdout)
    segments = stream(start("(proto_version '5', streaming 'on')"), [bytes.fromhex(digits) for _, digits, _ in traced])
    found = shown(write_pcap(tmp_path / "layouts.pcap", segments), dissector=project.spec / "pgoutput.lua")
    told = [message for message in found if message.name != "XLogData"]
    assert [message.experts for message in told if message.experts] == []
    assert [
        [message.name.replace(" ", ""), message.data.hex(), [[each.path, each.data.hex()] for each in message.fields]]
        for message in told
    ] == traced
