"""Specifications on which engines disagreed once, as small as they can be, each with what was wrong.

A case whose defect still stands names the emitter at fault.
"""

from typing import NamedTuple

__all__ = ["CASES", "REFUSED", "Case"]


class Case(NamedTuple):
    """One small specification: what follows its title."""

    reason: str
    """What was wrong with it."""
    text: str
    """YAML; the first message is called First."""
    defect: str = ""
    """The emitter whose defect it still shows, empty for none."""


def _first(elements: str, rest: str = "") -> str:
    """Return a specification of one message; ``elements`` are fields after its tag, or blocks where they say type."""
    fields = [line.strip() for line in elements.strip().splitlines()]
    blocks = ["{type: header, fields: [{field: Byte1('F'), name: tag}]}"]
    blocks += [line if line.startswith("{type") else f"{{type: body, fields: [{line}]}}" for line in fields]
    return f"messages: [{{name: First, blocks: [{', '.join(blocks)}]}}]\n{rest}"


_VERSIONS = "versions: [{version: 1, server: 10}, {version: 5, server: 20}]\nparameters: {proto_version: {type: int}}"
_CHOICE = "{{type: choice_1, name: {name}, alternatives: [{{field: {tag}, name: one}}]}}"
_ROW = """parts:
  - name: Row
    blocks:
      - {{type: header, fields: [{{field: Int16, name: column_count}}]}}
      - type: repeat_1
        name: columns
        count: column_count
        blocks:
          - type: choice_1
            name: value
            alternatives:
              - {{field: Byte1('n'), name: "null", python: None}}
              - {{field: Byte1('t'), name: text, python: bytes, then: [{then}]}}
"""

_TWO_FIELDS = """parts:
  - name: Row
    blocks:
      - {type: header, fields: [{field: Int16, name: column_count}]}
      - type: repeat_1
        name: columns
        count: column_count
        blocks:
          - type: choice_1
            name: value
            alternatives:
              - {field: Byte1('n'), name: "null", python: None}
              - field: Byte1('t')
                name: text
                python: bytes
                then: [{field: Int32, name: size}, {field: Byten, name: data, length: size}]
              - field: Byte1('z')
                name: packed
                python: Packed
                then:
                  - {field: Int8, name: way, values: {l: lz4, p: pglz}}
                  - {field: Int16, name: raw_size}
                  - {field: Int8(0), name: gap}
                  - {field: Int32, name: size}
                  - {field: Byten, name: data, length: size}
                  - {field: String, name: note}
              - {field: Byte1('u'), name: uuid, python: Uuid, then: [{field: Byte16, name: uuid}]}
"""

CASES = {
    "values of several fields, and of a fixed length": Case(
        "values were bytes after their length alone",
        _first("{field: Row, name: new}", _TWO_FIELDS),
    ),
    "what only a bit tells": Case(
        "a field was there or not by parameters alone",
        _first(
            "{field: Int8, name: flags, bits: {1: one, 2: two}}\n"
            "{field: Int16, name: size, when: {bit: 1, of: flags}}\n"
            "{field: Byten, name: data, length: size, when: {bit: 1, of: flags}}\n"
            "{field: Int64, name: late, when: {not: {bit: 2, of: flags}}}\n"
            "{type: repeat_1, name: rest, while: bytes remain, when: {bit: 2, of: flags}, "
            "blocks: [{type: header, fields: [{field: Byte4, name: block}]}]}"
        ),
    ),
    "a quote as a tag": Case(
        "the codec and the strategies wrote tags between double quotes",
        _first(_CHOICE.format(name="one", tag="""'Byte1(''"'')'"""), "parameters: {proto_version: {type: int}}"),
    ),
    "a backslash as a tag": Case(
        "the codec and the strategies wrote tags between double quotes",
        _first(_CHOICE.format(name="one", tag=r"""'Byte1(''\'')'"""), "parameters: {proto_version: {type: int}}"),
    ),
    "a choice named as a parameter": Case(
        "the local variable hid the parameter",
        _first(
            _CHOICE.format(name="extra", tag="Byte1('a')") + "\n{field: Int32, name: more, when: extra}",
            "parameters: {proto_version: {type: int}, extra: {type: bool}}",
        ),
    ),
    "a choice without versions": Case(
        "Kind read the protocol version where a specification has none",
        _first(_CHOICE.format(name="one", tag="Byte1('a')")),
    ),
    "a number after a choice": Case(
        "the column of the headers stayed zero",
        _first(
            _CHOICE.format(name="one", tag="Byte1('a')") + "\n{field: Int8, name: more}",
            "parameters: {proto_version: {type: int}}",
        ),
    ),
    "a number after a repeat": Case(
        "the column of the headers stayed zero",
        _first(
            "{field: Int8, name: number_count}\n"
            "{type: repeat_1, name: numbers, count: number_count,"
            " blocks: [{type: body, fields: [{field: Int8, name: one}]}]}\n"
            "{field: Int8, name: more}"
        ),
    ),
    "a number after a part": Case(
        "the column of the headers was read where the part begins",
        _first(
            "{field: Pair, name: pair}\n{field: Int8, name: more}",
            "parts: [{name: Pair, blocks: [{type: header, fields: [{field: Int8, name: a}, {field: Int8, name: b}]}]}]",
        ),
    ),
    "bytes to the end": Case(
        "the kernels looked for a NUL after them, also beyond the payload",
        _first("{field: Byten, name: rest}"),
    ),
    "fields named as arguments of kernels": Case(
        "the functions had two arguments of one name",
        _first("{field: Int8, name: streams}\n{field: String, name: data}\n{field: Int16, name: row}"),
    ),
    "a header field named as a parameter": Case(
        "the functions had two arguments of one name",
        _first("{field: Int8, name: in_stream}", "parameters: {in_stream: {type: bool}}"),
    ),
    "a header field named as a function": Case(
        "the array of the column hid the function that reads",
        _first("{field: Int64, name: find_nul}\n{field: String, name: u8}"),
    ),
    "a length named as a function": Case(
        "the local variable hid the function that reads",
        _first("{field: Int32, name: u8}\n{field: Byten, name: content, length: u8}\n{field: Int8, name: more}"),
    ),
    "a field of two types": Case(
        "a ValueError, since a batch of messages has one column for both",
        _first("{field: Int8, name: same}").replace(
            "]}]}]",
            "]}]}, {name: Second, blocks: [{type: header, fields: "
            "[{field: Byte1('S'), name: tag}, {field: String, name: same}]}]}]",
        ),
    ),
    "a constant of 64 bits": Case(
        "numba's words of 64 bits have a sign",
        _first("{field: Int64(18446744073709551615), name: reserved}"),
    ),
    "values of 64 bits": Case(
        "numba's words of 64 bits have a sign",
        _first("{field: Int64, name: code, values: {18446744073709551615: all}}"),
    ),
    "bits of 64 bits": Case(
        "numba's words of 64 bits have a sign",
        _first("{field: Int64, name: flags, bits: {9223372036854775808: highest, 1: lowest}}"),
    ),
    "a length of 64 bits": Case(
        "a length beyond 2**63 was negative, and the walk went backwards",
        _first("{field: Int64, name: size}\n{field: Byten, name: content, length: size}\n{field: Int8(0), name: more}"),
    ),
    "a row's value with a constant in front": Case(
        "the length was read where the constant is",
        _first(
            "{field: Row, name: new}",
            "parameters: {proto_version: {type: int}}\n"
            + _ROW.format(
                then="{field: Byte1('x'), name: mark}, {field: Int16, name: size}, "
                "{field: Byten, name: content, length: size}"
            ),
        ),
    ),
    "a row's value with a constant after": Case(
        "the next value was looked for before the constant",
        _first(
            "{field: Row, name: new}",
            "parameters: {proto_version: {type: int}}\n"
            + _ROW.format(
                then="{field: Int16, name: size}, {field: Byten, name: content, length: size}, "
                "{field: Byte1('x'), name: mark}"
            ),
        ),
    ),
    "a field called cls": Case(
        "the strategies' function has an argument of that name",
        _first("{field: Int8, name: cls}"),
    ),
    "a field called self next to one with a former name": Case(
        "what takes former names has an argument of that name",
        _first("{field: Int8, name: self}\n{field: Int8, name: count, formerly: number}"),
    ),
    "items up to the end that may be known by one thing": Case(
        "the codec made objects where nothing of their conditions held",
        _first(
            "{type: repeat_1, name: things, while: bytes remain, class: Thing, blocks: [{type: header, fields: ["
            "{field: Int8, name: one}, {field: Int32, name: more, since: 5}]}]}",
            _VERSIONS,
        ),
    ),
    "items of a later version": Case(
        "the strategies drew items of nothing",
        _first(
            """{field: Int8, name: item_count}
            {type: repeat_1, name: things, count: item_count, class: Thing, blocks: [{type: choice_1, name: one,
            alternatives: [{field: Byte1('a'), name: a, since: 5}]}]}""".replace(",\n            ", ", "),
            _VERSIONS,
        ),
    ),
    "a part that is null alone": Case(
        "None | None is no type",
        _first(
            "{type: choice_1, name: one, alternatives: [{field: Byte1('a'), name: a, then: Nothing},"
            " {field: Byte1('b'), name: b}]}",
            "parameters: {proto_version: {type: int}}\nparts: [{name: Nothing, blocks: [{type: choice_1, name: value,"
            " alternatives: [{field: Byte1('n'), name: nothing, python: None}]}]}]",
        ),
    ),
    "a value after a tag": Case(
        "the trace knew only one of the two tags at the place of the branch",
        _first(
            "{type: choice_1, name: one, alternatives: [{field: Byte1('a'), name: a, then: Value}]}",
            "parts: [{name: Value, blocks: [{type: choice_1, name: value, alternatives: [{field: Byte1('t'),"
            " name: text, python: bytes, then:"
            " [{field: Int8, name: size}, {field: Byten, name: data, length: size}]}]}]}]",
        ),
    ),
    "values of a later version": Case(
        "the strategies drew items of nothing",
        _first(
            "{field: Int8, name: item_count}\n"
            "{type: repeat_1, name: things, count: item_count, blocks: [{type: choice_1, name: one,"
            " alternatives: [{field: Byte1('a'), name: a, since: 5, python: None}]}]}",
            _VERSIONS,
        ),
    ),
    "an item whose part begins with a text": Case(
        "the strategies drew an empty text where the end of the items would stand",
        "states: [{name: idle}]\n"
        + _first(
            "{field: Int32, name: length, measures: rest}\n"
            "{type: repeat_1, name: things, until: Int8(0), class: Thing, blocks: [{type: body, fields: ["
            "{field: Pair, name: pair}, {field: Int8, name: more}]}]}",
            "parts: [{name: Pair, blocks: [{type: body, fields: [{field: String, name: a}, {field: Int8, name: b}]}]}]",
        ).replace("blocks", "in: [idle], blocks", 1),
    ),
    "lists of one count, and of a fixed one": Case(
        "a count measured one list, and each list had its own",
        _first(
            "{field: Int8, name: item_count}\n{type: repeat_1, name: things, count: item_count, blocks: "
            "[{type: header, fields: [{field: String, name: label}]}]}\n{type: repeat_2, name: others, "
            "count: item_count, when: extra, class: Other, blocks: [{type: repeat_1, name: pair, count: 2, "
            "blocks: [{type: header, fields: [{field: Int16, name: one}]}]}]}\n{type: repeat_3, name: kinds, "
            "count: 3, since: 5, blocks: [{type: choice_1, name: kind, alternatives: "
            "[{field: Byte1('a'), name: a}, {field: Byte1('b'), name: b, when: extra}]}], class: Kinds}",
            _VERSIONS.replace("{proto", "{extra: {type: bool}, proto"),
        ),
    ),
    "bits of a later version next to a value": Case(
        "the codec left out the byte that older versions have, where the part is its value alone",
        _first(
            "{field: Row, name: row}",
            _VERSIONS + "\nparts: [{name: Row, blocks: [{type: body, fields: ["
            "{field: Int8, name: flags, bits: {1: {meaning: one, since: 5}}}, {field: Int8, name: value}]}]}]",
        ),
    ),
}
"""By a name that says what is special."""

REFUSED = {
    "bytes that are a number": Case(
        "bytes(number) was made of what the wire says",
        _first(
            "{type: choice_1, name: one, alternatives: [{field: Byte1('a'), name: a, python: bytes,"
            " then: [{field: Int32, name: number}]}]}",
            "parameters: {proto_version: {type: int}}",
        ),
    ),
    "a class of bytes that is a text": Case(
        "the class was called with a str",
        _first(
            "{type: choice_1, name: one, alternatives: [{field: Byte1('a'), name: a, python: Formatted,"
            " then: [{field: String, name: text}]}]}",
            "parameters: {proto_version: {type: int}}",
        ),
    ),
    "a value beyond the signed": Case(
        "it could not be built",
        _first("{field: Int32, name: code, signed: true, values: {4294967295: none}}"),
    ),
    "the sign as a bit": Case(
        "it could not be built",
        _first("{field: Int32, name: flags, signed: true, bits: {2147483648: highest}}"),
    ),
}
"""Specifications that the language must refuse, which it accepted once."""
