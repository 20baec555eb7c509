# Generated from spec/builtin_types.yaml by: python -m tools.generate. Do not edit.

"""PostgreSQL's built-in types: OIDs, sizes and Arrow types, by OID and by name."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["BUILTIN_TYPES", "FIRST_USER_OID", "TYPE_NAMES", "BuiltinType"]


class BuiltinType(NamedTuple):
    """One built-in type, as pg_type has it."""

    name: str
    """typname; that of an array type is the name of its elements after an underscore."""
    oid: int
    """Its OID, the same on every server."""
    array_oid: int
    """OID of the array type, 0 where there is none."""
    size: int
    """Size in bytes (typlen), -1 if it varies."""
    arrow: str
    """Name of the Arrow type of its columns; ``list`` for arrays, ``string`` for types kept as PostgreSQL's text."""
    element_oid: int = 0
    """OID of the elements of an array type, 0 for others."""
    subtype_oid: int = 0
    """The OID of a range's subtype, or of a multirange's range; 0 for other types."""
    delimiter: str = ","
    """For an array type, the delimiter of its elements in text."""
    sends_text: str = ""
    """Which text its send function converts to client_encoding: ``plain`` (all bytes, as textsend()), ``versioned``
    (all after a byte with a version, as jsonb_send()), ``xml`` (xml_send(), which declares the encoding), ``lexemes``
    (tsvectorsend()), ``operands`` (tsquerysend()); empty for none."""
    text_like: int = 0
    """OID of the type whose text format its values have, 0 for its own."""
    binary_like: int = 0
    """OID of the type whose binary format its values have, 0 for its own."""


_ROWS: Final = (
    BuiltinType("bool", 16, 1000, 1, "bool"),
    BuiltinType("_bool", 1000, 0, -1, "list", element_oid=16),
    BuiltinType("bytea", 17, 1001, -1, "binary"),
    BuiltinType("_bytea", 1001, 0, -1, "list", element_oid=17),
    BuiltinType("char", 18, 1002, 1, "string"),
    BuiltinType("_char", 1002, 0, -1, "list", element_oid=18),
    BuiltinType("name", 19, 1003, 64, "string", sends_text="plain"),
    BuiltinType("_name", 1003, 0, -1, "list", element_oid=19),
    BuiltinType("int8", 20, 1016, 8, "int64"),
    BuiltinType("_int8", 1016, 0, -1, "list", element_oid=20),
    BuiltinType("int2", 21, 1005, 2, "int16"),
    BuiltinType("_int2", 1005, 0, -1, "list", element_oid=21),
    BuiltinType("int2vector", 22, 1006, -1, "string"),
    BuiltinType("_int2vector", 1006, 0, -1, "list", element_oid=22),
    BuiltinType("int4", 23, 1007, 4, "int32"),
    BuiltinType("_int4", 1007, 0, -1, "list", element_oid=23),
    BuiltinType("regproc", 24, 1008, 4, "string"),
    BuiltinType("_regproc", 1008, 0, -1, "list", element_oid=24),
    BuiltinType("text", 25, 1009, -1, "string", sends_text="plain"),
    BuiltinType("_text", 1009, 0, -1, "list", element_oid=25),
    BuiltinType("oid", 26, 1028, 4, "int64", text_like=20),
    BuiltinType("_oid", 1028, 0, -1, "list", element_oid=26, text_like=1016),
    BuiltinType("tid", 27, 1010, 6, "string"),
    BuiltinType("_tid", 1010, 0, -1, "list", element_oid=27),
    BuiltinType("xid", 28, 1011, 4, "string"),
    BuiltinType("_xid", 1011, 0, -1, "list", element_oid=28),
    BuiltinType("cid", 29, 1012, 4, "string"),
    BuiltinType("_cid", 1012, 0, -1, "list", element_oid=29),
    BuiltinType("oidvector", 30, 1013, -1, "string"),
    BuiltinType("_oidvector", 1013, 0, -1, "list", element_oid=30),
    BuiltinType("json", 114, 199, -1, "string", sends_text="plain"),
    BuiltinType("_json", 199, 0, -1, "list", element_oid=114),
    BuiltinType("xml", 142, 143, -1, "string", sends_text="xml"),
    BuiltinType("_xml", 143, 0, -1, "list", element_oid=142),
    BuiltinType("point", 600, 1017, 16, "string"),
    BuiltinType("_point", 1017, 0, -1, "list", element_oid=600),
    BuiltinType("lseg", 601, 1018, 32, "string"),
    BuiltinType("_lseg", 1018, 0, -1, "list", element_oid=601),
    BuiltinType("path", 602, 1019, -1, "string"),
    BuiltinType("_path", 1019, 0, -1, "list", element_oid=602),
    BuiltinType("box", 603, 1020, 32, "string"),
    BuiltinType("_box", 1020, 0, -1, "string", element_oid=603, delimiter=";"),
    BuiltinType("polygon", 604, 1027, -1, "string"),
    BuiltinType("_polygon", 1027, 0, -1, "list", element_oid=604),
    BuiltinType("line", 628, 629, 24, "string"),
    BuiltinType("_line", 629, 0, -1, "list", element_oid=628),
    BuiltinType("cidr", 650, 651, -1, "string"),
    BuiltinType("_cidr", 651, 0, -1, "list", element_oid=650),
    BuiltinType("float4", 700, 1021, 4, "float32"),
    BuiltinType("_float4", 1021, 0, -1, "list", element_oid=700),
    BuiltinType("float8", 701, 1022, 8, "float64"),
    BuiltinType("_float8", 1022, 0, -1, "list", element_oid=701),
    BuiltinType("circle", 718, 719, 24, "string"),
    BuiltinType("_circle", 719, 0, -1, "list", element_oid=718),
    BuiltinType("macaddr8", 774, 775, 8, "string"),
    BuiltinType("_macaddr8", 775, 0, -1, "list", element_oid=774),
    BuiltinType("money", 790, 791, 8, "string"),
    BuiltinType("_money", 791, 0, -1, "list", element_oid=790),
    BuiltinType("macaddr", 829, 1040, 6, "string"),
    BuiltinType("_macaddr", 1040, 0, -1, "list", element_oid=829),
    BuiltinType("inet", 869, 1041, -1, "string"),
    BuiltinType("_inet", 1041, 0, -1, "list", element_oid=869),
    BuiltinType("aclitem", 1033, 1034, 16, "string"),
    BuiltinType("_aclitem", 1034, 0, -1, "list", element_oid=1033),
    BuiltinType("bpchar", 1042, 1014, -1, "string", sends_text="plain"),
    BuiltinType("_bpchar", 1014, 0, -1, "list", element_oid=1042),
    BuiltinType("varchar", 1043, 1015, -1, "string", sends_text="plain"),
    BuiltinType("_varchar", 1015, 0, -1, "list", element_oid=1043),
    BuiltinType("date", 1082, 1182, 4, "date32"),
    BuiltinType("_date", 1182, 0, -1, "list", element_oid=1082),
    BuiltinType("time", 1083, 1183, 8, "string"),
    BuiltinType("_time", 1183, 0, -1, "list", element_oid=1083),
    BuiltinType("timestamp", 1114, 1115, 8, "timestamp"),
    BuiltinType("_timestamp", 1115, 0, -1, "list", element_oid=1114),
    BuiltinType("timestamptz", 1184, 1185, 8, "timestamptz"),
    BuiltinType("_timestamptz", 1185, 0, -1, "list", element_oid=1184),
    BuiltinType("interval", 1186, 1187, 16, "string"),
    BuiltinType("_interval", 1187, 0, -1, "list", element_oid=1186),
    BuiltinType("timetz", 1266, 1270, 12, "string"),
    BuiltinType("_timetz", 1270, 0, -1, "list", element_oid=1266),
    BuiltinType("bit", 1560, 1561, -1, "string"),
    BuiltinType("_bit", 1561, 0, -1, "list", element_oid=1560),
    BuiltinType("varbit", 1562, 1563, -1, "string"),
    BuiltinType("_varbit", 1563, 0, -1, "list", element_oid=1562),
    BuiltinType("numeric", 1700, 1231, -1, "decimal"),
    BuiltinType("_numeric", 1231, 0, -1, "list", element_oid=1700),
    BuiltinType("refcursor", 1790, 2201, -1, "string", sends_text="plain"),
    BuiltinType("_refcursor", 2201, 0, -1, "list", element_oid=1790),
    BuiltinType("regprocedure", 2202, 2207, 4, "string"),
    BuiltinType("_regprocedure", 2207, 0, -1, "list", element_oid=2202),
    BuiltinType("regoper", 2203, 2208, 4, "string"),
    BuiltinType("_regoper", 2208, 0, -1, "list", element_oid=2203),
    BuiltinType("regoperator", 2204, 2209, 4, "string"),
    BuiltinType("_regoperator", 2209, 0, -1, "list", element_oid=2204),
    BuiltinType("regclass", 2205, 2210, 4, "string"),
    BuiltinType("_regclass", 2210, 0, -1, "list", element_oid=2205),
    BuiltinType("regtype", 2206, 2211, 4, "string"),
    BuiltinType("_regtype", 2211, 0, -1, "list", element_oid=2206),
    BuiltinType("record", 2249, 2287, -1, "string"),
    BuiltinType("_record", 2287, 0, -1, "list", element_oid=2249),
    BuiltinType("uuid", 2950, 2951, 16, "string"),
    BuiltinType("_uuid", 2951, 0, -1, "list", element_oid=2950),
    BuiltinType("txid_snapshot", 2970, 2949, -1, "string"),
    BuiltinType("_txid_snapshot", 2949, 0, -1, "list", element_oid=2970),
    BuiltinType("pg_lsn", 3220, 3221, 8, "string"),
    BuiltinType("_pg_lsn", 3221, 0, -1, "list", element_oid=3220),
    BuiltinType("tsvector", 3614, 3643, -1, "string", sends_text="lexemes"),
    BuiltinType("_tsvector", 3643, 0, -1, "list", element_oid=3614),
    BuiltinType("tsquery", 3615, 3645, -1, "string", sends_text="operands"),
    BuiltinType("_tsquery", 3645, 0, -1, "list", element_oid=3615),
    BuiltinType("gtsvector", 3642, 3644, -1, "string"),
    BuiltinType("_gtsvector", 3644, 0, -1, "list", element_oid=3642),
    BuiltinType("regconfig", 3734, 3735, 4, "string"),
    BuiltinType("_regconfig", 3735, 0, -1, "list", element_oid=3734),
    BuiltinType("regdictionary", 3769, 3770, 4, "string"),
    BuiltinType("_regdictionary", 3770, 0, -1, "list", element_oid=3769),
    BuiltinType("jsonb", 3802, 3807, -1, "string", sends_text="versioned"),
    BuiltinType("_jsonb", 3807, 0, -1, "list", element_oid=3802),
    BuiltinType("jsonpath", 4072, 4073, -1, "string", sends_text="versioned"),
    BuiltinType("_jsonpath", 4073, 0, -1, "list", element_oid=4072),
    BuiltinType("regnamespace", 4089, 4090, 4, "string"),
    BuiltinType("_regnamespace", 4090, 0, -1, "list", element_oid=4089),
    BuiltinType("regrole", 4096, 4097, 4, "string"),
    BuiltinType("_regrole", 4097, 0, -1, "list", element_oid=4096),
    BuiltinType("regcollation", 4191, 4192, 4, "string"),
    BuiltinType("_regcollation", 4192, 0, -1, "list", element_oid=4191),
    BuiltinType("pg_snapshot", 5038, 5039, -1, "string"),
    BuiltinType("_pg_snapshot", 5039, 0, -1, "list", element_oid=5038),
    BuiltinType("xid8", 5069, 271, 8, "string"),
    BuiltinType("_xid8", 271, 0, -1, "list", element_oid=5069),
    BuiltinType("oid8", 6437, 6442, 8, "string"),
    BuiltinType("_oid8", 6442, 0, -1, "list", element_oid=6437),
    BuiltinType("regdatabase", 6490, 6491, 4, "string"),
    BuiltinType("_regdatabase", 6491, 0, -1, "list", element_oid=6490),
    BuiltinType("int4range", 3904, 3905, -1, "string", subtype_oid=23),
    BuiltinType("_int4range", 3905, 0, -1, "list", element_oid=3904),
    BuiltinType("numrange", 3906, 3907, -1, "string", subtype_oid=1700),
    BuiltinType("_numrange", 3907, 0, -1, "list", element_oid=3906),
    BuiltinType("tsrange", 3908, 3909, -1, "string", subtype_oid=1114),
    BuiltinType("_tsrange", 3909, 0, -1, "list", element_oid=3908),
    BuiltinType("tstzrange", 3910, 3911, -1, "string", subtype_oid=1184),
    BuiltinType("_tstzrange", 3911, 0, -1, "list", element_oid=3910),
    BuiltinType("daterange", 3912, 3913, -1, "string", subtype_oid=1082),
    BuiltinType("_daterange", 3913, 0, -1, "list", element_oid=3912),
    BuiltinType("int8range", 3926, 3927, -1, "string", subtype_oid=20),
    BuiltinType("_int8range", 3927, 0, -1, "list", element_oid=3926),
    BuiltinType("int4multirange", 4451, 6150, -1, "string", subtype_oid=3904),
    BuiltinType("_int4multirange", 6150, 0, -1, "list", element_oid=4451),
    BuiltinType("nummultirange", 4532, 6151, -1, "string", subtype_oid=3906),
    BuiltinType("_nummultirange", 6151, 0, -1, "list", element_oid=4532),
    BuiltinType("tsmultirange", 4533, 6152, -1, "string", subtype_oid=3908),
    BuiltinType("_tsmultirange", 6152, 0, -1, "list", element_oid=4533),
    BuiltinType("tstzmultirange", 4534, 6153, -1, "string", subtype_oid=3910),
    BuiltinType("_tstzmultirange", 6153, 0, -1, "list", element_oid=4534),
    BuiltinType("datemultirange", 4535, 6155, -1, "string", subtype_oid=3912),
    BuiltinType("_datemultirange", 6155, 0, -1, "list", element_oid=4535),
    BuiltinType("int8multirange", 4536, 6157, -1, "string", subtype_oid=3926),
    BuiltinType("_int8multirange", 6157, 0, -1, "list", element_oid=4536),
)


FIRST_USER_OID: Final = 16384
"""FirstNormalObjectId (access/transam.h): what users create has OIDs from here on."""

BUILTIN_TYPES: Final[Mapping[int, BuiltinType]] = {row.oid: row for row in _ROWS}
"""The built-in types and their array types, by OID."""

TYPE_NAMES: Final[Mapping[str, BuiltinType]] = {row.name: row for row in _ROWS}
"""The same by name."""
