"""The page itself, in Chromium: panes that are linked, keys, changes, streams, sizes of screens."""

import json
import math
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import Lsn, build, parse
from pgoutput_construct.wire.messages import StreamStart, Update
from pgoutput_construct.wire.trace import trace
from tests.growth.project import CHANGES, VERSION_5, edit
from tests.protocol_docs.pages import spec_until
from tools.explorer.build import SOURCE
from tools.explorer.build import build as build_page
from tools.explorer.examples import examples, recordings
from tools.generate.typescript.typescript_codec import emit_typescript
from tools.language import load

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

_SPEC = Path(__file__).parents[2] / "spec"
_UPDATE = next(each for each in examples(_SPEC) if each.id == "Update")
_DATA = bytes.fromhex(_UPDATE.hex)
_TREE = "#tree [role=treeitem]"
_STEPS = yaml.safe_load("""
- {at: parameters, set: {digests: {type: bool}, timed: {type: bool}}}
- at: options
  add:
    - name: checksums
      server: 20
      since: 5
      description: Which checksums come.
      values: [{name: none, server: 20}, {name: row, server: 20, since: 5, sets: digests}]
    - {name: timings, type: switch, server: 20, since: 5, sets: timed, description: Whether commits say what they cost.}
- at: messages/Commit/blocks/0/fields
  add:
    - {field: Int64, name: digest, when: digests, server: 20, since: 5}
    - {field: Float64, name: cost, when: timed, server: 20, since: 5}
""")
_UNCHANGED = "An unchanged TOASTed value, which is not sent."


def _open(page: "Page", fragment: str) -> None:
    """Open an address of the page."""
    page.goto(f"{page.url.partition('#')[0]}#{fragment}")


def _selected(page: "Page") -> str | None:
    """Return the path of the selected field."""
    return page.locator(f"{_TREE}[aria-selected=true]").get_attribute("data-id")


def _marked(page: "Page", name: str = "selected") -> list[int]:
    """Return the offsets of the bytes that are marked."""
    return sorted(
        {int(each) for each in page.eval_on_selector_all(f"#bytes .{name}", "all => all.map(e => e.dataset.at)")}
    )


def _digits(page: "Page") -> str:
    """Return the bytes that the page shows."""
    return "".join(page.locator("#bytes .digits [data-at]:not(.end)").all_text_contents())


def test_pasted_bytes(page: "Page") -> None:
    """What is pasted is shown as Python's trace has it, and what are no digits is refused."""
    data = bytes.fromhex("490000400f4e00027400000001316e")
    page.fill("#text", f"\\x{data.hex(' ')}")
    shown = page.eval_on_selector_all(f"{_TREE}.field", "all => all.map(e => e.dataset.id)")
    assert shown == [span.path for span in trace(data).spans]
    assert _digits(page) == data.hex()
    page.fill("#text", "49\n4g")
    assert page.inner_text("#problem") == "Line 2: “g” is no hexadecimal digit."
    page.fill("#text", "490")
    assert "odd" in page.inner_text("#problem")


def test_panes_are_linked(page: "Page") -> None:
    """A byte selects its field, a field its bytes; the pointer marks both."""
    [span] = [each for each in trace(_DATA).spans if each.path == "Update.new.columns[1].data"]
    page.click(f"#bytes .digits [data-at='{span.start + 1}']")
    assert _selected(page) == span.path
    assert _marked(page) == [*range(span.start, span.end)]
    page.click(f"{_TREE}[data-id='Update.relation_oid']")
    assert _marked(page) == [1, 2, 3, 4]
    assert "OID of a table that a Relation has described." in page.inner_text("#detail")
    page.hover("#bytes .letters [data-at='5']")
    assert page.locator(f"{_TREE}.hovered").get_attribute("data-id") == "Update.old_kind"
    page.hover(f"{_TREE}[data-id='Update.new_tag']")
    assert len(_marked(page, "hovered")) == 1


def test_unchanged_value_is_found(page: "Page") -> None:
    """The byte of an Update that says that a TOASTed value was not sent, as a newcomer looks for it."""
    assert page.locator(f"{_TREE}:has-text('{_UNCHANGED}')").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("toasted")
    page.keyboard.press("Enter")
    assert _selected(page) == "Update.new.columns[3]"
    [at] = _marked(page)
    assert _DATA[at : at + 1] == b"u"
    assert f"{at}, one byte" in page.inner_text("#detail")
    assert _UNCHANGED in page.inner_text("#detail")
    assert "columns[3] (big)" in page.inner_text("#detail h2")


def test_keyboard(page: "Page") -> None:
    """Arrows lead from field to field in both panes, groups close and open, and a form is reached."""
    page.focus("#bytes")
    page.keyboard.press("ArrowRight")
    assert _selected(page) == "Update.tag"
    page.keyboard.press("ArrowRight")
    assert _selected(page) == "Update.relation_oid"
    page.keyboard.press("ArrowDown")
    assert _marked(page)[0] <= 17 <= _marked(page)[-1]
    page.keyboard.press("End")
    assert _selected(page) == "Update.new.columns[3]"
    page.focus("#tree")
    page.keyboard.press("ArrowLeft")
    assert _selected(page) == "Update.new"
    page.keyboard.press("ArrowLeft")
    assert page.locator(f"{_TREE}[data-id='Update.new.columns[3]']").is_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert _selected(page) == "Update.new.column_count"
    page.keyboard.press("Home")
    assert _selected(page) == "Update"
    page.click(f"{_TREE}[data-id='Update.relation_oid']")
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.id") == "value"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "tree"


def _change(page: "Page", path: str, value: str) -> str:
    """Give a field another value; return the bytes."""
    page.click(f"{_TREE}[data-id='{path}'] .name")
    form = page.locator("#detail form")
    if form.locator("select").count():
        form.locator("select").select_option(value)
    else:
        form.locator("input").fill(value)
        form.locator("button").click()
    return _digits(page)


def test_changes(page: "Page") -> None:
    """The bytes of a changed message are those that Python builds, with lengths; each change can be taken back."""
    message = parse(_DATA, 4, "parallel", False)
    assert isinstance(message, Update)
    new = [*message.new]
    new[1] = b"longer than it was before"
    first = replace(message, relation_oid=7)
    second = replace(first, new=tuple(new))
    assert _change(page, "Update.relation_oid", "7") == build(first, 4, "parallel", False).hex()
    assert _change(page, "Update.new.columns[1].data", new[1].decode()) == build(second, 4, "parallel", False).hex()
    new[1] = None
    third = replace(first, new=tuple(new))
    assert _change(page, "Update.new.columns[1]", "n") == build(third, 4, "parallel", False).hex()
    assert page.locator("#bytes .digits .changed").count() > 0
    assert page.evaluate("location.hash").count("edited=") == 1
    page.go_back()
    assert _digits(page) == build(second, 4, "parallel", False).hex()
    page.click("#undo")
    assert _digits(page) == _DATA.hex()
    page.click(f"{_TREE}[data-id='Update.new.column_count']")
    assert "the codec writes the number of columns" in page.inner_text("#detail")


def test_hands_on_the_keyboard(page: "Page") -> None:
    """Typed digits are one step of the history, Back shows what was there before, and a form stays in focus."""
    page.focus("#text")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("4300", delay=0)
    assert page.inner_text("#status").startswith("Commit, 2 bytes")
    page.keyboard.type("g")
    page.select_option("#setting-proto_version", "2")
    assert page.inner_text("#problem") == "Line 1: “g” is no hexadecimal digit."
    page.focus("#text")
    page.go_back()
    page.go_back()
    assert page.input_value("#text") == _UPDATE.hex and page.inner_text("#problem") == ""
    page.click(f"{_TREE}[data-id='Update.old_kind'] .name")
    page.keyboard.press("e")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "value"


def test_values_that_are_refused(page: "Page") -> None:
    """A value that a field cannot have is refused with a sentence, and nothing changes."""
    for value in ("many", "4294967296"):
        assert _change(page, "Update.relation_oid", value) == _DATA.hex()
        assert page.inner_text("#detail form .fault")


def test_text_and_bytes(page: "Page") -> None:
    """A form has text as it is, unless it looks like digits or has lines: then it has digits, which change nothing."""
    data = "Update.new.columns[1].data"
    for text, shown in (("plain", "plain"), ("\\x41", "\\x5c783431"), ("a\nb", "\\x610a62")):
        found = _change(page, data, f"\\x{text.encode().hex()}")
        assert parse(bytes.fromhex(found), 4, "parallel", False).new[1] == text.encode()
        assert page.input_value("#value") == shown
        assert _change(page, data, shown) == found


def test_floats(page: "Page", grown: Path) -> None:
    """A field of the type Float64 is written in PostgreSQL's words, and a NaN of other bits by its bytes."""
    digits = f"43{25 * '00'}"
    page.goto(f"{grown.as_uri()}/index.html#hex={digits}{8 * '00'}&proto_version=5&timings=true")
    for text, value in (("-1.5e3", -1500.0), ("-inf", -math.inf), ("-0", -0.0)):
        assert _change(page, "Commit.cost", text) == digits + struct.pack(">d", value).hex()
    assert _change(page, "Commit.cost", "nan") == f"{digits}7ff8000000000000"
    assert _change(page, "Commit.cost", "\\x7ff8000000000001") == f"{digits}7ff8000000000001"
    assert page.input_value("#value") == "\\x7ff8000000000001"
    for text in ("", "1e999"):
        assert _change(page, "Commit.cost", text) == f"{digits}7ff8000000000001"
        assert "float8" in page.inner_text("#detail form .fault")


def test_lsn_time_and_bits(page: "Page") -> None:
    """LSNs and times are written as PostgreSQL does, bits and values by their names."""
    begin = next(each for each in examples(_SPEC) if each.id == "Begin")
    message = parse(bytes.fromhex(begin.hex), 4)
    _open(page, "example=Begin")
    changed: Any = replace(message, final_lsn=Lsn(0x16_B374_D848))
    assert _change(page, "Begin.final_lsn", "16/B374D848") == build(changed, 4).hex()
    time = "2024-05-01T12:00:00.123456+00:00"
    built = parse(bytes.fromhex(_change(page, "Begin.commit_time", time)), 4)
    assert built.commit_time.to_datetime().isoformat() == time
    for time, micros in (("infinity", 2**63 - 1), ("-infinity", -(2**63))):
        assert parse(bytes.fromhex(_change(page, "Begin.commit_time", time)), 4).commit_time == micros
    _open(page, "example=Truncate")
    page.click(f"{_TREE}[data-id='Truncate.options']")
    page.check("#detail form input[value='2']")
    page.click("#detail form button")
    assert "restart identity" in page.inner_text(f"{_TREE}[data-id='Truncate.options']")
    _open(page, "example=StreamStart")
    found = parse(bytes.fromhex(_change(page, "StreamStart.first_segment", "0")), 4, "parallel")
    assert isinstance(found, StreamStart) and found.first_segment == 0


def test_broken_bytes(page: "Page") -> None:
    """Bytes that end show what was read, and where and why reading ended."""
    page.fill("#text", _DATA[:36].hex())
    status = page.inner_text("#status")
    assert status == "Update, 36 bytes: 33 read. Update.new.columns[1].data at byte 33: the bytes end here"
    assert _selected(page) == "Update.new.columns[1].data"
    assert "at byte 33" in page.inner_text("#detail") and "3 bytes are left" in page.inner_text("#detail")
    assert page.locator("#bytes .digits .unread").count() == 3
    page.fill("#text", _DATA.hex() + "00")
    assert page.inner_text("#status").endswith("the message ends here, and bytes follow")
    page.select_option("#kind", "frame")
    page.fill("#text", "77" + "00" * 24 + "4200")
    assert page.inner_text("#status").endswith("Begin.final_lsn at byte 1: the bytes end here")
    page.select_option("#kind", "message")
    page.fill("#text", "ff00")
    assert page.inner_text("#status").startswith("No message, 2 bytes: 0 read.")
    page.fill("#text", "")
    assert page.inner_text("#status").startswith("No message, 0 bytes")


def test_options(page: "Page") -> None:
    """Under other options other fields are there: those that are absent have their condition."""
    _open(page, "example=StreamAbort")
    absent = page.locator(f"{_TREE}.absent")
    assert absent.count() == 0
    page.select_option("#setting-proto_version", "2")
    assert page.inner_text("#problem").startswith("PostgreSQL refuses these options")
    page.select_option("#setting-streaming", "on")
    assert page.inner_text("#problem") == ""
    assert "and bytes follow" in page.inner_text("#status")
    page.fill("#text", "41000003210000034f")
    assert absent.count() == 2
    assert "if parallel is set, protocol version 4 and newer" in absent.first.inner_text()
    _open(page, "example=Insert")
    page.check("#setting-in_stream")
    assert page.locator(f"{_TREE}[data-id='Insert.xid']").get_attribute("class").startswith(("field", "fault"))


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a specification that has grown: options, states, and a field of the type Float64."""
    folder = tmp_path_factory.mktemp("grown")
    spec = spec_until(19, folder / "spec")
    states = yaml.safe_load((CHANGES / "states.yaml").read_text("utf-8"))["pgoutput.yaml"]
    edit(spec / "pgoutput.yaml", [{"at": "versions", "add": [VERSION_5]}, *states, *_STEPS])
    codec = emit_typescript(load(spec / "pgoutput.yaml"), "PgoutputMessage")
    (spec / "typescript" / "src" / "pgoutput.ts").write_text(codec, "utf-8")
    for vectors in spec.glob("vectors*.jsonl"):
        vectors.write_text(vectors.read_text("utf-8").partition("\n")[0], "utf-8")  # examples of them take seconds
    shutil.copytree(SOURCE, folder / SOURCE.relative_to(_SPEC.parent))
    build_page(folder / "page", folder)
    return folder / "page"


def test_settings_of_the_specification(page: "Page", grown: Path) -> None:
    """A version, an option and a state that are new in YAML are controls of the page, and words of its addresses."""
    page.goto(f"{grown.as_uri()}/index.html#hex=4300&proto_version=5&checksums=row&timings=true&in_block=true")
    assert page.eval_on_selector_all("#settings label", "all => all.map(e => e.innerText.trim().split('\\n')[0])") == [
        *("proto_version", "streaming", "checksums", "timings", "in_stream", "in_block")
    ]
    assert page.input_value("#setting-checksums") == "row"
    assert page.is_checked("#setting-timings") and page.is_checked("#setting-in_block")
    assert page.locator("#setting-checksums").inner_text().endswith("row (PostgreSQL 20)")
    assert page.get_attribute("#setting-checksums", "title") == "Which checksums come."
    page.uncheck("#setting-timings")
    page.select_option("#setting-proto_version", "4")
    assert page.inner_text("#problem").startswith("PostgreSQL refuses these options: checksums: ")
    assert page.evaluate("location.hash") == "#hex=4300&proto_version=4&checksums=row&in_block=true"
    page.fill("#text", '# {"proto_version": 5}\n420000000000000000000000000000000000000001\n5b00000001\n5d')
    page.click("#stream [data-index='2']")
    assert page.inner_text("#session") == "State: block, in_block; then transaction"
    assert page.is_checked("#setting-in_block") and page.is_disabled("#setting-in_block")


def test_wrong_settings(page: "Page") -> None:
    """A value that a setting does not have is refused with those that it has, in an address and in a stream."""
    _open(page, "example=Insert&streaming=never")
    assert page.inner_text("#problem") == "The address: streaming is one of off, on, parallel, and not “never”."
    page.fill("#text", '# {"proto_version": 9}\n4300')
    assert page.inner_text("#problem") == "Line 1: proto_version is one of 1, 2, 3, 4, and not “9”."
    _open(page, "example=ReadyForQuery&state=copy_both")
    assert page.input_value("#setting-state") == "copy_both"
    page.select_option("#kind", "frame")
    assert page.evaluate("location.hash") == "#example=ReadyForQuery&kind=frame"


def test_recorded_stream(page: "Page") -> None:
    """A stream has the state of each message at its side, and each is read inside or outside of a stream."""
    [recording] = [each for each in recordings() if each.id == "18-v4-text"]
    page.set_viewport_size({"width": 1280, "height": 20_000})  # all rows are in sight
    _open(page, f"recording={recording.id}")
    rows = page.locator("#stream [role=option]")
    page.wait_for_function(f"document.querySelectorAll('#stream [role=option]').length === {len(recording.messages)}")
    assert page.locator("#stream .refused").count() == 0
    state, inside = StreamState(), list[bool]()
    for line in recording.messages:
        message = parse(bytes.fromhex(line), 4, "parallel", state.parameters["in_stream"])
        inside.append(bool(state.parameters["in_stream"]) or isinstance(message, StreamStart))
        state.follow(message)
    shown = page.eval_on_selector_all("#stream [role=option]", "all => all.map(e => e.getAttribute('style'))")
    assert ["--c2" in each for each in shown] == inside  # the colour of the fourth state
    index = inside.index(True)
    rows.nth(index + 1).click()
    assert page.inner_text("#session") == "State: stream, in_stream"
    assert page.is_checked("#setting-in_stream") and page.is_disabled("#setting-in_stream")
    page.keyboard.press("ArrowUp")
    assert rows.nth(index).get_attribute("aria-selected") == "true"
    assert page.evaluate("location.hash") == f"#recording={recording.id}&index={index + 1}"


def test_pasted_stream(page: "Page") -> None:
    """Several lines are a stream; a message that its state does not permit is refused, by the session."""
    begin, commit = "42000000000000000100000000000000020000000a", "4300000000000000000100000000000000020000000000000003"
    options = json.dumps({"proto_version": 2, "streaming": "on"})
    page.fill("#text", f"# {options}\n{begin}\n{commit}\n530000000a01\n{begin}\n")
    assert page.input_value("#setting-proto_version") == "2"
    refused = page.locator("#stream .refused")
    assert refused.count() == 1
    assert "not permitted in this state" in refused.inner_text()
    assert page.locator("#stream .state").all_text_contents() == ["transaction", "", "stream", ""]


def _paste(page: "Page", text: str) -> None:
    """Copy text, and paste it as a user does."""
    copied = "e => { e.clipboardData.setData('text', text); e.preventDefault() }"
    page.evaluate(f"text => {{ document.oncopy = {copied} }}", text)
    page.focus("#text")
    page.keyboard.press("ControlOrMeta+c")
    page.keyboard.press("ControlOrMeta+v")


def test_long_stream(page: "Page") -> None:
    """Of many messages those in sight are drawn; names of tables are those before a message; Back leads to them."""
    relation = "52000000017075626c69630061006400010069640000000017ffffffff"
    change = "4900000001" + "4e00017400000001"
    first = [f"42{20 * '00'}", relation, *[f"{change}31"] * 6000]
    lines = [*first, relation.replace("6964", "6f6b"), *[f"{change}32"] * 6000, f"43{25 * '00'}"]
    _paste(page, "\n".join(lines))
    rows = page.locator("#stream [role=option]")
    page.focus("#stream")
    page.keyboard.press("End")
    page.wait_for_function(f"document.querySelector('#stream [aria-posinset=\"{len(lines)}\"]')")
    page.keyboard.press("ArrowUp")
    assert rows.count() < 500
    assert page.get_attribute("#stream [aria-selected=true]", "aria-posinset") == str(len(lines) - 1)
    assert page.locator("#tree .label").all_text_contents() == ["public.a", "ok"]
    page.keyboard.press("Home")
    page.click("#stream [aria-posinset='3']")
    assert page.locator("#tree .label").all_text_contents() == ["public.a", "id"]
    assert page.locator("#stream .table").nth(2).inner_text() == "public.a"
    assert page.input_value("#text") == "" and "too many" in (page.get_attribute("#text", "placeholder") or "")
    _open(page, "example=Begin")
    page.go_back()
    assert page.get_attribute("#stream [aria-selected=true]", "aria-posinset") == "3"


def test_long_column(page: "Page") -> None:
    """Of a value of megabytes those bytes in sight are drawn; bytes and fields stay linked."""
    size, key = 1_000_000, "Insert.new.columns[0].data"
    _paste(page, f"49000000014e000274{size:08x}{size * '61'}7400000001{62:x}")
    assert page.inner_text("#status") == f"Insert, {size + 19} bytes"
    page.click(f"{_TREE}[data-id='{key}'] .name")
    marked = _marked(page)
    assert marked[0] == 13 and marked == [*range(13, marked[-1] + 1)] and len(marked) < 10_000
    assert len(page.inner_text("#detail")) < 10_000
    page.focus("#bytes")
    page.keyboard.press("ArrowDown")
    assert _selected(page) == "Insert.new.columns[1]"
    assert _marked(page) == [size + 13]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    assert _marked(page) == [size + 18]
    page.hover(f"#bytes .digits [data-at='{size + 12}']")
    assert _marked(page, "hovered")[-1] == size + 12
    assert page.locator(f"{_TREE}.hovered").get_attribute("data-id") == key
    assert _change(page, "Insert.relation_oid", "2").startswith("49000000024e")
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000


@pytest.mark.parametrize("fragment", ["example=Update", "recording=18-v4-text&index=82", "example=StartupMessage"])
def test_sizes(page: "Page", fragment: str) -> None:
    """No screen needs scrolling sideways, and the bytes are all in sight."""
    _open(page, fragment)
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("(b => b.scrollWidth <= b.clientWidth)(document.getElementById('bytes'))"), width


def test_dark(browser: "Browser", built: Path) -> None:
    """The page is dark where the system is, and where the documentation was set to it."""
    seen = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(f"{built.as_uri()}/index.html")
        seen[scheme] = _paper(page)
        if scheme == "light":
            page.evaluate("localStorage.setItem('theme', 'dark')")
            page.reload()
            assert _paper(page) < 0.2
        page.close()
    assert seen["dark"] < 0.2 and seen["light"] > 0.9


def _paper(page: "Page") -> float:
    """Return how light the background is."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 765


def test_every_message_opens(page: "Page") -> None:
    """Each message of the reference has an example, and its link opens it."""
    specs = [load(_SPEC / name) for name in ("pgoutput.yaml", "replication.yaml", "protocol.yaml")]
    for name in [message.class_name for spec in specs for message in spec.messages]:
        _open(page, f"example={name}")
        assert page.inner_text("#status").startswith(f"{name}, ") or name == "XLogData"
        assert page.get_attribute("#status", "class") != "fault", name
