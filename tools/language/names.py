"""The names that generated code already uses, so that a specification cannot take them."""

import builtins
import keyword

from construct import Container

__all__ = ["LINE_KEYS", "MACHINERY", "RESERVED_CLASSES", "RESERVED_FIELDS", "RESERVED_OPTIONS", "RESERVED_PARAMETERS"]

MACHINERY = frozenset(
    {"at", "bytes", "chr", "data", "end", "in_stream", "index", "isinstance", "len", "length", "list", "m", "message"}
    | {"number", "ord", "parallel", "pieces", "proto_version", "range", "size", "string_bytes", "tag", "tuple", "type"}
    | {"value"}
)
"""Variables and functions of the codec; the variable of a field with such a name gets a suffix there."""

RESERVED_FIELDS = frozenset(name for name in dir(Container) if not name.startswith("_")) | (
    {"mro", "message"} | {"bytes", "field", "int", "property", "str", "tuple"}
)
"""Names that a Container, a class or a JSON object already has, and those that the body of a class refers to."""

LINE_KEYS = frozenset({"before", "line", "offset", "proto_version", "send_time", "seq", "stream_xid", "wal_start"})
"""Keys of a JSON line in addition to a message's fields, the options and the states."""

_BESIDE_OPTIONS = """all as_json changes check_server count create_publication create_slot data database differences
directory dsn duration everything failover failover_slot file file_mode follow form format frame from_lsn given
handle_signals heartbeat help html index json kinds layout limit limits log log_format message metrics new_log
non_default on_lost_slot on_progress on_rewrite open_xid output payload payloads publication publications publish
reconnect_seconds replication_options segment_seconds self sender server_version settings slot slot_timeout snapshot
snapshot_rate source start state states status_interval stop svg system_identifier table tables threads timeline
timeline_origin transactional_heartbeat until_idle until_lsn workers"""
RESERVED_OPTIONS = (LINE_KEYS - {"proto_version"}) | {*_BESIDE_OPTIONS.split()}
"""Further arguments, attributes and options of functions, classes and commands that take options."""

_DEFINITIONS = frozenset({"classes_only", "open_end", "recorder"})
_ROW_VARIABLES = frozenset({"ends", "numbers", "places", "plan", "row", "starts", "streams", "tags", "valid"})
_LOG_COLUMNS = frozenset({"relation_oid", "snapshot", "xid"})
_KNOWN = frozenset({"in_stream", "parallel", "proto_version"})
RESERVED_PARAMETERS = (
    MACHINERY | _DEFINITIONS | _ROW_VARIABLES | _LOG_COLUMNS | RESERVED_OPTIONS | set(keyword.kwlist)
) - _KNOWN
"""Names of other arguments of functions, of generated ones or of those that take a state."""

_TYPING = frozenset({"Any", "Callable", "ClassVar", "Final", "Mapping", "SearchStrategy", "TypeAlias", "TYPE_CHECKING"})
_WIRE = frozenset(
    {
        "BY_TAG",
        "ConnectionMessage",
        "Extended",
        "FOLLOWING",
        "FORMS",
        "FieldedBytes",
        "Float",
        "FormattedBytes",
        "Frame",
        "Lsn",
    }
    | {"Marker", "PLAIN_COPY", "PgoutputMessage", "REQUIRED", "Reject", "Timestamp", "VALUES", "VALUE_TAGS"}
)
_CONSTRUCTS = frozenset(
    {
        "Absent",
        "Area",
        "AreaSize",
        "Bits",
        "Composed",
        "Constant",
        "Counted",
        "Data",
        "End",
        "Extending",
        "FocusedSeq",
        "Kind",
        "Letter",
        "OneOf",
    }
    | {"DEFINITIONS", "HasBit", "ParameterDefaults", "Reserved"}
    | {"Closed", "Length", "Record", "Since", "SizeOf", "Struct", "Switch", "Terminated", "ToEnd", "Valued"}
)
_PACKAGE = frozenset(
    {"ChangeLogError", "DecodeError", "EncodeError", "EngineError", "PgoutputError", "ProtocolError"}
    | {"ReplicationError", "Session", "SpecError"}
)
_PROTOCOL = frozenset(
    {"ASKED_BY", "BEGINS", "BOUNDS", "CHANGES", "DESCRIPTIONS", "ENDS", "LAID_OUT_BY_STATE", "OPTIONS", "PARAMETERS"}
    | {"PROTOCOL_VERSIONS", "SINCE", "STATES", "TRANSITIONS", "UNREAD"}
    | {"GivenOptions", "MoreOptions", "ParseOptions", "ReplicationOptions", "Streaming"}
    | {"DeleteOldKind", "MessageFlags", "RelationColumnFlags", "RelationReplicaIdentity", "StreamStartFirstSegment"}
    | {"TruncateOptions", "UpdateOldKind"}
)
RESERVED_CLASSES = frozenset(dir(builtins)) | _TYPING | _WIRE | _CONSTRUCTS | _PACKAGE | _PROTOCOL
"""Names that the generated modules import, that the package exports next to its messages, and that are in
wire/protocol.py; the constructs of the types are in spec/types.yaml."""
