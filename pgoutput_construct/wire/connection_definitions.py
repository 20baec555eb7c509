# Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

"""Frontend and backend messages: the construct definitions, which parse and build.

Source: PostgreSQL's documentation, protocol-message-formats.
"""

from collections.abc import Mapping
from typing import Final

from construct import FocusedSeq, Struct, this

from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.parameters import ParameterDefaults
from pgoutput_construct.wire.primitives import (
    Constant,
    Data,
    End,
    Letter,
    Oid,
    OneOf,
    SInt16,
    SInt32,
    String,
    UInt8,
    UInt16,
    UInt32,
)
from pgoutput_construct.wire.structures import (
    Closed,
    Counted,
    Length,
    Record,
    SizeOf,
    Terminated,
)

__all__ = [
    "DEFINITIONS",
    "AuthenticationCleartextPassword",
    "AuthenticationGSS",
    "AuthenticationGSSContinue",
    "AuthenticationKerberosV5",
    "AuthenticationMD5Password",
    "AuthenticationOk",
    "AuthenticationSASL",
    "AuthenticationSASLContinue",
    "AuthenticationSASLFinal",
    "AuthenticationSSPI",
    "BackendKeyData",
    "Bind",
    "BindComplete",
    "CancelRequest",
    "ClientCopyDone",
    "Close",
    "CloseComplete",
    "CommandComplete",
    "CopyBothResponse",
    "CopyData",
    "CopyFail",
    "CopyInResponse",
    "CopyOutResponse",
    "DataRow",
    "Describe",
    "EmptyQueryResponse",
    "EncryptionAccepted",
    "EncryptionRefused",
    "ErrorResponse",
    "Execute",
    "Flush",
    "FunctionCall",
    "FunctionCallResponse",
    "GSSENCRequest",
    "GSSEncryptionAccepted",
    "GSSResponse",
    "NegotiateProtocolVersion",
    "NoData",
    "NoticeField",
    "NoticeResponse",
    "NotificationResponse",
    "ParameterDescription",
    "ParameterStatus",
    "Parse",
    "ParseComplete",
    "PasswordMessage",
    "PortalSuspended",
    "Query",
    "ReadyForQuery",
    "RowDescription",
    "SASLInitialResponse",
    "SASLResponse",
    "SSLRequest",
    "ServerCopyDone",
    "StartupMessage",
    "Sync",
    "Terminate",
]

parameters: Final = ParameterDefaults()
"""The parameters, and what holds where one is left out."""

NoticeField = Record(
    m.NoticeField,
    Struct(
        "code" / Letter("SVCMDHPpqWstcdnFLR"),
        "value" / String,
    ),
)

StartupMessage = parameters.definition(
    "length" / Length(UInt32),
    "major_version" / Constant(b"\x00\x03"),
    "minor_version" / UInt16,
    "parameters"
    / Terminated(
        Record(
            m.StartupParameter,
            Struct(
                "name" / String,
                "value" / String,
            ),
        )
    ),
    Closed(0, UInt32),
)

SSLRequest = parameters.definition(
    "length" / Length(UInt32),
    "request_code" / Constant(b"\x04\xd2\x16/"),
    Closed(0, UInt32),
)

GSSENCRequest = parameters.definition(
    "length" / Length(UInt32),
    "request_code" / Constant(b"\x04\xd2\x160"),
    Closed(0, UInt32),
)

CancelRequest = parameters.definition(
    "length" / Length(UInt32),
    "request_code" / Constant(b"\x04\xd2\x16."),
    "process_id" / UInt32,
    "secret_key" / Data(),
    Closed(0, UInt32),
)

EncryptionAccepted = parameters.definition(
    "tag" / Constant(b"S"),
    End,
)

GSSEncryptionAccepted = parameters.definition(
    "tag" / Constant(b"G"),
    End,
)

EncryptionRefused = parameters.definition(
    "tag" / Constant(b"N"),
    End,
)

AuthenticationOk = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x00"),
    Closed(1, UInt32),
)

AuthenticationKerberosV5 = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x02"),
    Closed(1, UInt32),
)

AuthenticationCleartextPassword = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x03"),
    Closed(1, UInt32),
)

AuthenticationMD5Password = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x05"),
    "salt" / Data(4),
    Closed(1, UInt32),
)

AuthenticationGSS = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x07"),
    Closed(1, UInt32),
)

AuthenticationGSSContinue = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x08"),
    "data" / Data(),
    Closed(1, UInt32),
)

AuthenticationSSPI = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\t"),
    Closed(1, UInt32),
)

AuthenticationSASL = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\n"),
    "mechanisms" / Terminated(String),
    Closed(1, UInt32),
)

AuthenticationSASLContinue = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x0b"),
    "data" / Data(),
    Closed(1, UInt32),
)

AuthenticationSASLFinal = parameters.definition(
    "tag" / Constant(b"R"),
    "length" / Length(UInt32),
    "request" / Constant(b"\x00\x00\x00\x0c"),
    "data" / Data(),
    Closed(1, UInt32),
)

PasswordMessage = parameters.definition(
    "tag" / Constant(b"p"),
    "length" / Length(UInt32),
    "password" / String,
    Closed(1, UInt32),
)

GSSResponse = parameters.definition(
    "tag" / Constant(b"p"),
    "length" / Length(UInt32),
    "data" / Data(),
    Closed(1, UInt32),
)

SASLInitialResponse = parameters.definition(
    "tag" / Constant(b"p"),
    "length" / Length(UInt32),
    "mechanism" / String,
    "data_length" / SizeOf("data", SInt32, absent=-1),
    "data" / Data(this.data_length, absent=-1),
    Closed(1, UInt32),
)

SASLResponse = parameters.definition(
    "tag" / Constant(b"p"),
    "length" / Length(UInt32),
    "data" / Data(),
    Closed(1, UInt32),
)

NegotiateProtocolVersion = parameters.definition(
    "tag" / Constant(b"v"),
    "length" / Length(UInt32),
    "newest_version" / UInt32,
    "option_count" / SizeOf("options", UInt32),
    "options" / Counted(this.option_count, String),
    Closed(1, UInt32),
)

ParameterStatus = parameters.definition(
    "tag" / Constant(b"S"),
    "length" / Length(UInt32),
    "name" / String,
    "value" / String,
    Closed(1, UInt32),
)

BackendKeyData = parameters.definition(
    "tag" / Constant(b"K"),
    "length" / Length(UInt32),
    "process_id" / UInt32,
    "secret_key" / Data(),
    Closed(1, UInt32),
)

NotificationResponse = parameters.definition(
    "tag" / Constant(b"A"),
    "length" / Length(UInt32),
    "process_id" / UInt32,
    "channel" / String,
    "payload" / String,
    Closed(1, UInt32),
)

ReadyForQuery = parameters.definition(
    "tag" / Constant(b"Z"),
    "length" / Length(UInt32),
    "status" / Letter("ITE"),
    Closed(1, UInt32),
)

Query = parameters.definition(
    "tag" / Constant(b"Q"),
    "length" / Length(UInt32),
    "text" / String,
    Closed(1, UInt32),
)

RowDescription = parameters.definition(
    "tag" / Constant(b"T"),
    "length" / Length(UInt32),
    "column_count" / SizeOf("columns", UInt16),
    "columns"
    / Counted(
        this.column_count,
        Record(
            m.ResultColumn,
            Struct(
                "name" / String,
                "table_oid" / Oid,
                "column_number" / SInt16,
                "type_oid" / Oid,
                "type_size" / SInt16,
                "type_modifier" / SInt32,
                "format" / OneOf(UInt16, 0, 1),
            ),
        ),
    ),
    Closed(1, UInt32),
)

DataRow = parameters.definition(
    "tag" / Constant(b"D"),
    "length" / Length(UInt32),
    "value_count" / SizeOf("row", UInt16),
    "row"
    / Counted(
        this.value_count,
        FocusedSeq(
            "value",
            "value_length" / SizeOf("value", SInt32, absent=-1),
            "value" / Data(this.value_length, absent=-1),
        ),
    ),
    Closed(1, UInt32),
)

CommandComplete = parameters.definition(
    "tag" / Constant(b"C"),
    "length" / Length(UInt32),
    "command" / String,
    Closed(1, UInt32),
)

EmptyQueryResponse = parameters.definition(
    "tag" / Constant(b"I"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

ErrorResponse = parameters.definition(
    "tag" / Constant(b"E"),
    "length" / Length(UInt32),
    "details" / Terminated(NoticeField),
    Closed(1, UInt32),
)

NoticeResponse = parameters.definition(
    "tag" / Constant(b"N"),
    "length" / Length(UInt32),
    "details" / Terminated(NoticeField),
    Closed(1, UInt32),
)

CopyInResponse = parameters.definition(
    "tag" / Constant(b"G"),
    "length" / Length(UInt32),
    "format" / OneOf(UInt8, 0, 1),
    "column_count" / SizeOf("column_formats", UInt16),
    "column_formats" / Counted(this.column_count, OneOf(UInt16, 0, 1)),
    Closed(1, UInt32),
)

CopyOutResponse = parameters.definition(
    "tag" / Constant(b"H"),
    "length" / Length(UInt32),
    "format" / OneOf(UInt8, 0, 1),
    "column_count" / SizeOf("column_formats", UInt16),
    "column_formats" / Counted(this.column_count, OneOf(UInt16, 0, 1)),
    Closed(1, UInt32),
)

CopyBothResponse = parameters.definition(
    "tag" / Constant(b"W"),
    "length" / Length(UInt32),
    "format" / OneOf(UInt8, 0, 1),
    "column_count" / SizeOf("column_formats", UInt16),
    "column_formats" / Counted(this.column_count, OneOf(UInt16, 0, 1)),
    Closed(1, UInt32),
)

CopyData = parameters.definition(
    "tag" / Constant(b"d"),
    "length" / Length(UInt32),
    "data" / Data(),
    Closed(1, UInt32),
)

ClientCopyDone = parameters.definition(
    "tag" / Constant(b"c"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

ServerCopyDone = parameters.definition(
    "tag" / Constant(b"c"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

CopyFail = parameters.definition(
    "tag" / Constant(b"f"),
    "length" / Length(UInt32),
    "reason" / String,
    Closed(1, UInt32),
)

Parse = parameters.definition(
    "tag" / Constant(b"P"),
    "length" / Length(UInt32),
    "statement" / String,
    "text" / String,
    "type_count" / SizeOf("types", UInt16),
    "types" / Counted(this.type_count, Oid),
    Closed(1, UInt32),
)

Bind = parameters.definition(
    "tag" / Constant(b"B"),
    "length" / Length(UInt32),
    "portal" / String,
    "statement" / String,
    "format_count" / SizeOf("formats", UInt16),
    "formats" / Counted(this.format_count, OneOf(UInt16, 0, 1)),
    "value_count" / SizeOf("parameters", UInt16),
    "parameters"
    / Counted(
        this.value_count,
        FocusedSeq(
            "value",
            "value_length" / SizeOf("value", SInt32, absent=-1),
            "value" / Data(this.value_length, absent=-1),
        ),
    ),
    "result_count" / SizeOf("result_formats", UInt16),
    "result_formats" / Counted(this.result_count, OneOf(UInt16, 0, 1)),
    Closed(1, UInt32),
)

Describe = parameters.definition(
    "tag" / Constant(b"D"),
    "length" / Length(UInt32),
    "subject" / Letter("SP"),
    "name" / String,
    Closed(1, UInt32),
)

Execute = parameters.definition(
    "tag" / Constant(b"E"),
    "length" / Length(UInt32),
    "portal" / String,
    "row_limit" / UInt32,
    Closed(1, UInt32),
)

Close = parameters.definition(
    "tag" / Constant(b"C"),
    "length" / Length(UInt32),
    "subject" / Letter("SP"),
    "name" / String,
    Closed(1, UInt32),
)

Flush = parameters.definition(
    "tag" / Constant(b"H"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

Sync = parameters.definition(
    "tag" / Constant(b"S"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

ParseComplete = parameters.definition(
    "tag" / Constant(b"1"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

BindComplete = parameters.definition(
    "tag" / Constant(b"2"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

CloseComplete = parameters.definition(
    "tag" / Constant(b"3"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

ParameterDescription = parameters.definition(
    "tag" / Constant(b"t"),
    "length" / Length(UInt32),
    "type_count" / SizeOf("types", UInt16),
    "types" / Counted(this.type_count, Oid),
    Closed(1, UInt32),
)

NoData = parameters.definition(
    "tag" / Constant(b"n"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

PortalSuspended = parameters.definition(
    "tag" / Constant(b"s"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

FunctionCall = parameters.definition(
    "tag" / Constant(b"F"),
    "length" / Length(UInt32),
    "function_oid" / Oid,
    "format_count" / SizeOf("formats", UInt16),
    "formats" / Counted(this.format_count, OneOf(UInt16, 0, 1)),
    "argument_count" / SizeOf("arguments", UInt16),
    "arguments"
    / Counted(
        this.argument_count,
        FocusedSeq(
            "argument",
            "argument_length" / SizeOf("argument", SInt32, absent=-1),
            "argument" / Data(this.argument_length, absent=-1),
        ),
    ),
    "result_format" / OneOf(UInt16, 0, 1),
    Closed(1, UInt32),
)

FunctionCallResponse = parameters.definition(
    "tag" / Constant(b"V"),
    "length" / Length(UInt32),
    "result_length" / SizeOf("result", SInt32, absent=-1),
    "result" / Data(this.result_length, absent=-1),
    Closed(1, UInt32),
)

Terminate = parameters.definition(
    "tag" / Constant(b"X"),
    "length" / Length(UInt32),
    Closed(1, UInt32),
)

DEFINITIONS: Final[Mapping[type, Struct]] = {
    m.StartupMessage: StartupMessage,
    m.SSLRequest: SSLRequest,
    m.GSSENCRequest: GSSENCRequest,
    m.CancelRequest: CancelRequest,
    m.EncryptionAccepted: EncryptionAccepted,
    m.GSSEncryptionAccepted: GSSEncryptionAccepted,
    m.EncryptionRefused: EncryptionRefused,
    m.AuthenticationOk: AuthenticationOk,
    m.AuthenticationKerberosV5: AuthenticationKerberosV5,
    m.AuthenticationCleartextPassword: AuthenticationCleartextPassword,
    m.AuthenticationMD5Password: AuthenticationMD5Password,
    m.AuthenticationGSS: AuthenticationGSS,
    m.AuthenticationGSSContinue: AuthenticationGSSContinue,
    m.AuthenticationSSPI: AuthenticationSSPI,
    m.AuthenticationSASL: AuthenticationSASL,
    m.AuthenticationSASLContinue: AuthenticationSASLContinue,
    m.AuthenticationSASLFinal: AuthenticationSASLFinal,
    m.PasswordMessage: PasswordMessage,
    m.GSSResponse: GSSResponse,
    m.SASLInitialResponse: SASLInitialResponse,
    m.SASLResponse: SASLResponse,
    m.NegotiateProtocolVersion: NegotiateProtocolVersion,
    m.ParameterStatus: ParameterStatus,
    m.BackendKeyData: BackendKeyData,
    m.NotificationResponse: NotificationResponse,
    m.ReadyForQuery: ReadyForQuery,
    m.Query: Query,
    m.RowDescription: RowDescription,
    m.DataRow: DataRow,
    m.CommandComplete: CommandComplete,
    m.EmptyQueryResponse: EmptyQueryResponse,
    m.ErrorResponse: ErrorResponse,
    m.NoticeResponse: NoticeResponse,
    m.CopyInResponse: CopyInResponse,
    m.CopyOutResponse: CopyOutResponse,
    m.CopyBothResponse: CopyBothResponse,
    m.CopyData: CopyData,
    m.ClientCopyDone: ClientCopyDone,
    m.ServerCopyDone: ServerCopyDone,
    m.CopyFail: CopyFail,
    m.Parse: Parse,
    m.Bind: Bind,
    m.Describe: Describe,
    m.Execute: Execute,
    m.Close: Close,
    m.Flush: Flush,
    m.Sync: Sync,
    m.ParseComplete: ParseComplete,
    m.BindComplete: BindComplete,
    m.CloseComplete: CloseComplete,
    m.ParameterDescription: ParameterDescription,
    m.NoData: NoData,
    m.PortalSuspended: PortalSuspended,
    m.FunctionCall: FunctionCall,
    m.FunctionCallResponse: FunctionCallResponse,
    m.Terminate: Terminate,
}
"""The definition of each message class."""
