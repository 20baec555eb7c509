"""The names that generated code already uses, so that a specification cannot take them."""

import builtins
import keyword

from construct import Container

__all__ = ["MACHINERY", "RESERVED_CLASSES", "RESERVED_FIELDS", "RESERVED_PARAMETERS"]

MACHINERY = frozenset(
    {"at", "bytes", "chr", "data", "end", "in_stream", "index", "isinstance", "len", "length", "list", "m", "message"}
    | {"number", "ord", "parallel", "pieces", "proto_version", "range", "size", "string_bytes", "tag", "tuple", "type"}
    | {"unpack_from", "value"}
)
"""What the codec calls its own variables, and what it calls: a field of that name is written apart there."""

RESERVED_FIELDS = frozenset(name for name in dir(Container) if not name.startswith("_")) | (
    {"mro", "message"} | {"bytes", "field", "int", "str", "tuple"}
)
"""Names that a Container, a class or a JSON object already has, and those that the body of a class refers to."""

_DEFINITIONS = frozenset({"classes_only", "open_end", "recorder"})
_ROW_VARIABLES = frozenset({"ends", "places", "row", "starts", "streams", "tags", "valid"})
RESERVED_PARAMETERS = (MACHINERY | _DEFINITIONS | _ROW_VARIABLES | set(keyword.kwlist)) - {
    "in_stream",
    "parallel",
    "proto_version",
}
"""Names that the generated functions give to other arguments."""

_TYPING = frozenset({"Any", "Callable", "ClassVar", "Final", "Mapping", "SearchStrategy", "TypeAlias"})
_WIRE = frozenset(
    {"BY_TAG", "Extended", "FormattedBytes", "Frame", "Lsn", "Marker", "PgoutputMessage", "REQUIRED", "Reject"}
    | {"Timestamp", "VALUES"}
)
_CONSTRUCTS = frozenset(
    {"Absent", "Bits", "Constant", "Counted", "Data", "End", "Extending", "FocusedSeq", "Kind", "Letter", "OneOf"}
    | {"Record", "Since", "SizeOf", "Struct", "Switch", "Valued"}
)
RESERVED_CLASSES = frozenset(dir(builtins)) | _TYPING | _WIRE | _CONSTRUCTS
"""Names that the generated modules import; the constructs of the types are in spec/types.yaml."""
