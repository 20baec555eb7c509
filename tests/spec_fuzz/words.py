"""The words that generated specifications are made of: many of them meet words of the generated code."""

import keyword

from tools.language.names import RESERVED_CLASSES, RESERVED_FIELDS, RESERVED_PARAMETERS

__all__ = ["CLASSES", "CONSTANTS", "FLAGS", "MESSAGES", "NAMES", "STATES", "TAGS", "TEXTS"]

_PLAIN = "alpha beta gamma delta epsilon zeta eta theta iota kappa xid relation_oid name flags tag columns old new"
_CODEC = """at data end size kind value item length message number pieces new m list tuple type bytes range len
    chr ord isinstance unpack_from string_bytes at_ data_ value_ kind_ length_ setters struct alpha_item beta_
    alpha_kind value_kind"""
_KERNELS = """row rows streams places starts ends tags valid index kernel u8 u16 find_nul np pa column lengths
    alpha_starts alpha_lengths has_alpha has_xid in_stream parallel proto_version stream_xid"""
_OTHERS = """int str bool field dataclass object set float self cls context stream path obj params this when record
    bits st draw strings blobs lsns signed unsigned branches required principal payload count fields x"""
_CLASSES = "Row Tuple Item XLog ABTest AbC Abc Value Values Parse Build Walk Read Unpack Alpha Record2 T"
_MESSAGES = "First|Second|Third|Fourth|Stream Start|Parse|Build|X|Index|Walk Row|Read|Begin|A B|Insert"
_FLAGS = "in_stream parallel extra verbose x value_flag flags xid alpha"
_REFUSED = {*keyword.kwlist, *RESERVED_CLASSES, *RESERVED_FIELDS}

NAMES = tuple(name for name in dict.fromkeys(f"{_PLAIN} {_CODEC} {_KERNELS} {_OTHERS}".split()) if name not in _REFUSED)
"""Names of fields, choices and repeats: all that meet a word of generated code, and that the language allows."""

CLASSES = tuple(name for name in _CLASSES.split() if name not in _REFUSED)
"""Names of parts, of items and of classes of bytes: some are the same in lower case."""

MESSAGES = tuple(_MESSAGES.split("|"))
"""Names of messages."""

CONSTANTS = ("UNCHANGED", "MISSING", "NOT_SENT", "B_C")
"""Names of constant values."""

FLAGS = tuple(name for name in _FLAGS.split() if name not in RESERVED_PARAMETERS)
"""Names of bool parameters."""

STATES = ("idle", "transaction", "stream", "apart")
"""Names of states."""

TAGS = 'ABKNOXYZabknoxyz0179!~"#%\\{'
"""Bytes of tags that the documents' notation can write."""

TEXTS = ("A text.", 'With "quotes".', '"""', "A backslash \\", "\\N{x} {braces} %s", "é \U0001f600", "# no comment")
"""Descriptions."""
