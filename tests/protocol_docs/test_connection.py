"""check on the page about the messages of a connection: its own forms, and one line for each planted change."""

import re

import pytest
import yaml

from tests.protocol_docs.pages import SPECIFICATIONS, document, page, report
from tools.language import SPEC, load_text
from tools.protocol_docs.check import check
from tools.protocol_docs.propose import propose

PAGE = page("connection-18.html")
BYTEN = 'Byte<em class="replaceable"><code>n</code></em>'


def fields(*given: tuple[str, str]) -> str:
    """Return fields as the page has them: notations and what their descriptions end with."""
    return "</dd>".join(f'<dt><span class="term">{n}</span></dt><dd><p>\nHere stands the {w}.\n</p>' for n, w in given)


KEY = fields((BYTEN, "secret key"))
FOUR_BYTES = fields(("Int32", "secret key"))
NAME_AND_VALUE = fields(("String", "name"), ("String", "value"))
TEXT = fields(("String", "text"))

CHANGES = {
    "the length of a message": (
        f"{fields(('Int32(8)', 'length'), ('Int32(0)', 'request'))}",
        f"{fields(('Int32(9)', 'length'), ('Int32(0)', 'request'))}",
        "AuthenticationOk, length: literal: the document says Int32(9)",
    ),
    "a length of a message whose size varies": (
        f"{fields(('Int32', 'length'))}</dd>{TEXT}",
        f"{fields(('Int32(4)', 'length'))}</dd>{TEXT}",
        "Query, length: literal: the document says Int32(4)",
    ),
    "the constant behind a length": (
        fields(("Int32(80877103)", "request code")),
        fields(("Int32(80877105)", "request code")),
        "SSLRequest, request_code: literal: the document says Int32(80877105)",
    ),
    "a letter that is a number": (
        "<span class=\"term\">Byte1</span></dt><dd><p>\nHere stands the status: 'I', 'T' or 'E'",
        "<span class=\"term\">Int16</span></dt><dd><p>\nHere stands the status: 'I', 'T' or 'E'",
        "ReadyForQuery, status: type: the document says Int16",
    ),
    "another letter": (
        "'I', 'T' or 'E'",
        "'I', 'T' or 'F'",
        "ReadyForQuery, status: values: the document says F, I, T",
    ),
    "a value that cannot be absent": (
        "data length; -1 indicates that there is none",
        "data length",
        "SASLInitialResponse, data_length: values: the document says a length that is never -1",
    ),
    "the length of a salt": (
        fields(("Byte4", "salt")),
        fields(("Byte8", "salt")),
        "AuthenticationMD5Password, salt: type: the document says Byte8",
    ),
    "a result that cannot be absent": (
        "result length; -1 indicates that there is none",
        "result length",
        "FunctionCallResponse, result_length: values: the document says a length that is never -1",
    ),
    "a number instead of many": (
        'Int16[<em class="replaceable"><code>C</code></em>]',
        "Int16",
        "Bind, formats.parameter_format: repeat: the document says once",
    ),
    "a repeat without its end": (
        ", followed by a zero byte as a terminator",
        "",
        "ErrorResponse, details.detail.code: repeat: the document says repeated at",
    ),
    "a repeat that goes on": (
        "After the last value, the following fields appear:",
        "There is more:",
        "Bind, result_count: repeat: the document says repeated at",
    ),
    "one pair instead of many": (
        "Each parameter is specified as:",
        "The parameter is:",
        "StartupMessage, parameters.name: repeat: the document says once",
    ),
    "a new field": (TEXT, f"{TEXT}</dd>{fields(('Int8', 'more'))}", "Parse, 1_5_Int8: extra field"),
    "a removed field": (NAME_AND_VALUE, fields(("String", "name")), "ParameterStatus, name: missing field"),
    "a removed field of a part": (
        f"{fields(('Byte1', 'code'))}</dd>{fields(('String', 'value'))}",
        fields(("Byte1", "code")),
        "ErrorResponse, details.detail.value: missing field",
    ),
    "another sender": ("Query (F)", "Query (B)", "Query: sender: the document says server"),
    "another name": ("DataRow (B)", "RowData (B)", "DataRow: name: the document says RowData"),
    "a new message": (
        '<dt id="PROTOCOL-MESSAGE-FORMATS-SYNC">',
        '<dt><span class="term">News (B)</span></dt><dd><div><dl>'
        + fields(("Byte1('x')", "tag"))
        + "</dd></dl></div></dd>"
        '<dt id="PROTOCOL-MESSAGE-FORMATS-SYNC">',
        "News: extra message: the document has it (Byte1('x'))",
    ),
}


def test_the_page_agrees() -> None:
    """Lengths, letters, arrays and repeats told in prose are read; what the page calls otherwise is known."""
    found = report(PAGE)
    assert (found.problems, found.notes) == ([], [])
    assert len(found.known) == 10


def test_keys_had_four_bytes_before_postgresql_18() -> None:
    """A deviation holds for the versions whose documents have it: keys of four bytes are none of PostgreSQL 18."""
    head, mark, rest = PAGE.replace(KEY, FOUR_BYTES).partition('id="PROTOCOL-MESSAGE-FORMATS-BACKENDKEYDATA"')
    older = head + mark + rest.replace(fields(("Int32", "length")), fields(("Int32(12)", "length")), 1)
    assert report(older.replace("18.3 Documentation", "17.5 Documentation")).problems == []
    problems = "\n".join(report(older).problems)
    assert "BackendKeyData, secret_key: type: the document says Int32" in problems
    assert "CancelRequest, secret_key: type: the document says Int32" in problems


NEW = """<dt><span class="term">Feed (B)</span></dt><dd><dl>{}</dd></dl><p>
Next, the following pair of fields appear for each value:
</p><dl>{}</dd></dl><p>
After the last value, the following fields appear:
</p><dl>{}</dd></dl><p>
A zero byte is required as a terminator. For each name there is the following:
</p><dl>{}</dd></dl></dd><dt id="PROTOCOL-MESSAGE-FORMATS-SYNC">"""

FILLED = {
    "state": "idle",
    "1_3_name": "kind",
    "1_4_name": "value_count",
    "repeat_1_name": "feed_values",
    "repeat_1_Class": "FeedValue",
    "2_1_name": "value_length",
    "2_2_name": "value",
    "3_1_name": "total",
    "repeat_2_name": "names",
    "4_1_name": "name",
}
"""What a maintainer writes for each mark."""


@pytest.mark.slow
def test_a_new_message_is_proposed_as_one_of_a_connection() -> None:
    """Lengths, letters, values that may be absent and ends of repeats are drafted; filled in, the page agrees."""
    head = fields(("Byte1('x')", "tag"), ("Int32", "length"), ("Byte1", "kind: 'a' or 'b'"), ("Int16", "value count"))
    value = fields(("Int32", "value length; -1 indicates that there is none"), (BYTEN, "value"))
    new = NEW.format(head, value, fields(("Int64", "total")), fields(("String", "name")))
    text = PAGE.replace('<dt id="PROTOCOL-MESSAGE-FORMATS-SYNC">', new, 1)
    draft = propose(document(text), SPECIFICATIONS, SPEC)
    draft = re.sub(r"FILL_IN_\w+_(?:description|[ab])\b", "Made up.", draft)
    draft = re.sub(r"FILL_IN_Feed_(\w+)", lambda match: FILLED[match[1]], draft)
    raw = yaml.safe_load((SPEC / "protocol.yaml").read_text("utf-8"))
    (message,) = yaml.safe_load(draft)["messages"]
    raw["messages"].append(message)
    spec = load_text(yaml.safe_dump(raw, sort_keys=False))
    assert check(document(text), [spec]).problems == []
    assert {"until", "absent", "measures"} <= set(re.findall(r"\w+", draft))


@pytest.mark.parametrize("name", CHANGES)
def test_planted_change_is_found(name: str) -> None:
    """A change of one place in the page is one line, or one for each field that it concerns."""
    old, new, problem = CHANGES[name]
    assert old in PAGE
    problems = report(PAGE.replace(old, new, 1)).problems
    assert any(problem in line for line in problems), problems
    assert len(problems) <= 2
