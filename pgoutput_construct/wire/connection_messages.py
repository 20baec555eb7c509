# Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

"""Frontend and backend messages: the message classes, fields in wire order.

Constants, counts and lengths are on the wire and not here; what is absent on the wire is None.
Source: PostgreSQL's documentation, protocol-message-formats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = [
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
    "ConnectionMessage",
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
    "ResultColumn",
    "RowDescription",
    "SASLInitialResponse",
    "SASLResponse",
    "SSLRequest",
    "ServerCopyDone",
    "StartupMessage",
    "StartupParameter",
    "Sync",
    "Terminate",
]


@dataclass(frozen=True, slots=True)
class NoticeField:
    """One detail of an error or a notice.

    Attributes:
        code: What is said.
        value: The text.
    """

    code: str
    value: str


@dataclass(frozen=True, slots=True)
class StartupParameter:
    """What the client asks for: user, database, replication, and settings of the session.

    Attributes:
        name: Name of the parameter.
        value: Its value.
    """

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of the result.

    Attributes:
        name: Name of the column.
        table_oid: OID of the table that the column belongs to, 0 for none.
        column_number: Its number in that table, 0 for none.
        type_oid: OID of the type.
        type_size: Size of the type, as typlen in pg_type.
        type_modifier: Type modifier, as atttypmod in pg_attribute; -1 for none.
        format: Format of the values.
    """

    name: str
    table_oid: int
    column_number: int
    type_oid: int
    type_size: int
    type_modifier: int
    format: int


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """Opens a connection.

    Source: protocol-message-formats, StartupMessage.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        minor_version: Minor version of the protocol.
        parameters: What the client asks for: user, database, replication, and settings of the session.
    """

    TAG = b""
    LENGTH_AT = 0
    CODE = b"\x00\x03"

    minor_version: int
    parameters: tuple[StartupParameter, ...]


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """Asks for TLS before anything else is said.

    Source: protocol-message-formats, SSLRequest.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG = b""
    LENGTH_AT = 0
    CODE = b"\x04\xd2\x16/"


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    """Asks for GSSAPI encryption before anything else is said.

    Source: protocol-message-formats, GSSENCRequest.
    PostgreSQL 12 and newer, sent by the client.
    """

    TAG = b""
    LENGTH_AT = 0
    CODE = b"\x04\xd2\x160"


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Requests that another connection's query be cancelled.

    Source: protocol-message-formats, CancelRequest.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        process_id: Process ID of the backend.
        secret_key: Its secret key, as long as in BackendKeyData.
    """

    TAG = b""
    LENGTH_AT = 0
    CODE = b"\x04\xd2\x16."

    process_id: int
    secret_key: bytes


@dataclass(frozen=True, slots=True)
class EncryptionAccepted:
    """The client may begin its TLS handshake.

    Source: protocol-message-formats, Encryption Accepted.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"S"
    LENGTH_AT = None
    CODE = b""


@dataclass(frozen=True, slots=True)
class GSSEncryptionAccepted:
    """The client may begin to establish a GSSAPI context.

    Source: protocol-message-formats, GSS Encryption Accepted.
    PostgreSQL 12 and newer, sent by the server.
    """

    TAG = b"G"
    LENGTH_AT = None
    CODE = b""


@dataclass(frozen=True, slots=True)
class EncryptionRefused:
    """The server continues without encryption.

    Source: protocol-message-formats, Encryption Refused.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"N"
    LENGTH_AT = None
    CODE = b""


@dataclass(frozen=True, slots=True)
class AuthenticationOk:
    """The client has been authenticated.

    Source: protocol-message-formats, AuthenticationOk.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x00"


@dataclass(frozen=True, slots=True)
class AuthenticationKerberosV5:
    """Asks for Kerberos V5 authentication; no supported server does.

    Source: protocol-message-formats, AuthenticationKerberosV5.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x02"


@dataclass(frozen=True, slots=True)
class AuthenticationCleartextPassword:
    """Asks for a password as it is.

    Source: protocol-message-formats, AuthenticationCleartextPassword.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x03"


@dataclass(frozen=True, slots=True)
class AuthenticationMD5Password:
    """Asks for a password that is hashed with MD5.

    Source: protocol-message-formats, AuthenticationMD5Password.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        salt: Bytes to hash with the MD5 of password and user name.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x05"

    salt: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationGSS:
    """Asks for GSSAPI authentication.

    Source: protocol-message-formats, AuthenticationGSS.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x07"


@dataclass(frozen=True, slots=True)
class AuthenticationGSSContinue:
    """Data of GSSAPI or SSPI; the client answers unless its context is complete.

    Source: protocol-message-formats, AuthenticationGSSContinue.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        data: The data.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x08"

    data: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSSPI:
    """Asks for SSPI authentication.

    Source: protocol-message-formats, AuthenticationSSPI.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\t"


@dataclass(frozen=True, slots=True)
class AuthenticationSASL:
    """Asks for SASL authentication.

    Source: protocol-message-formats, AuthenticationSASL.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        mechanisms: Mechanisms that the server has, in the order of its preference.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\n"

    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuthenticationSASLContinue:
    """A challenge of the SASL mechanism.

    Source: protocol-message-formats, AuthenticationSASLContinue.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        data: Content of the challenge, as the mechanism has it.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x0b"

    data: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSASLFinal:
    """The last word of the SASL mechanism.

    Source: protocol-message-formats, AuthenticationSASLFinal.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        data: The mechanism's final data.
    """

    TAG = b"R"
    LENGTH_AT = 1
    CODE = b"\x00\x00\x00\x0c"

    data: bytes


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """The requested password.

    Source: protocol-message-formats, PasswordMessage.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        password: The password.
    """

    TAG = b"p"
    LENGTH_AT = 1
    CODE = b""

    password: str


@dataclass(frozen=True, slots=True)
class GSSResponse:
    """Data of GSSAPI or SSPI for the server.

    Source: protocol-message-formats, GSSResponse.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        data: The data.
    """

    TAG = b"p"
    LENGTH_AT = 1
    CODE = b""

    data: bytes


@dataclass(frozen=True, slots=True)
class SASLInitialResponse:
    """Chooses a SASL mechanism.

    Source: protocol-message-formats, SASLInitialResponse.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        mechanism: Name of the mechanism that the client has chosen.
        data: The mechanism's initial data.
    """

    TAG = b"p"
    LENGTH_AT = 1
    CODE = b""

    mechanism: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class SASLResponse:
    """Answers a challenge of the SASL mechanism.

    Source: protocol-message-formats, SASLResponse.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        data: Content of the answer, as the mechanism has it.
    """

    TAG = b"p"
    LENGTH_AT = 1
    CODE = b""

    data: bytes


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The server does not know the minor version or some of the requested options.

    Source: protocol-message-formats, NegotiateProtocolVersion.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        newest_version: Newest version of the protocol that the server speaks.
        options: Options that the server does not know.
    """

    TAG = b"v"
    LENGTH_AT = 1
    CODE = b""

    newest_version: int
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """Tells a setting of the session.

    Source: protocol-message-formats, ParameterStatus.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        name: Name of the setting.
        value: Its value.
    """

    TAG = b"S"
    LENGTH_AT = 1
    CODE = b""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """The key that a CancelRequest must have.

    Source: protocol-message-formats, BackendKeyData.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        process_id: Process ID of the backend.
        secret_key: Its secret key: four bytes, up to 256 from version 3.2 of the protocol on.
    """

    TAG = b"K"
    LENGTH_AT = 1
    CODE = b""

    process_id: int
    secret_key: bytes


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """A notification of a channel to which the session listens.

    Source: protocol-message-formats, NotificationResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        process_id: Process ID of the backend that has notified.
        channel: Name of the channel.
        payload: What the notification carries, empty for nothing.
    """

    TAG = b"A"
    LENGTH_AT = 1
    CODE = b""

    process_id: int
    channel: str
    payload: str


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """The server waits for a command.

    Source: protocol-message-formats, ReadyForQuery.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        status: The transaction status of the session.
    """

    TAG = b"Z"
    LENGTH_AT = 1
    CODE = b""

    status: str


@dataclass(frozen=True, slots=True)
class Query:
    """A simple query.

    Source: protocol-message-formats, Query.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        text: SQL, or a replication command.
    """

    TAG = b"Q"
    LENGTH_AT = 1
    CODE = b""

    text: str


@dataclass(frozen=True, slots=True)
class RowDescription:
    """Describes the rows that follow.

    Source: protocol-message-formats, RowDescription.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        columns: One column of the result.
    """

    TAG = b"T"
    LENGTH_AT = 1
    CODE = b""

    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row of a result.

    Source: protocol-message-formats, DataRow.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        row: One value of the row.
    """

    TAG = b"D"
    LENGTH_AT = 1
    CODE = b""

    row: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class CommandComplete:
    """A command has ended.

    Source: protocol-message-formats, CommandComplete.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        command: The command tag, with the number of rows if it has any.
    """

    TAG = b"C"
    LENGTH_AT = 1
    CODE = b""

    command: str


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse:
    """The query held no command.

    Source: protocol-message-formats, EmptyQueryResponse.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"I"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error: the command has failed, or the connection ends.

    Source: protocol-message-formats, ErrorResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        details: The details of the message.
    """

    TAG = b"E"
    LENGTH_AT = 1
    CODE = b""

    details: tuple[NoticeField, ...]


@dataclass(frozen=True, slots=True)
class NoticeResponse:
    """A warning or another notice.

    Source: protocol-message-formats, NoticeResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        details: The details of the message.
    """

    TAG = b"N"
    LENGTH_AT = 1
    CODE = b""

    details: tuple[NoticeField, ...]


@dataclass(frozen=True, slots=True)
class CopyInResponse:
    """The server is ready for the data of a COPY FROM STDIN.

    Source: protocol-message-formats, CopyInResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        format: Format of the copy.
        column_formats: Format of each column.
    """

    TAG = b"G"
    LENGTH_AT = 1
    CODE = b""

    format: int
    column_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """The data of a COPY TO STDOUT follow.

    Source: protocol-message-formats, CopyOutResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        format: Format of the copy.
        column_formats: Format of each column.
    """

    TAG = b"H"
    LENGTH_AT = 1
    CODE = b""

    format: int
    column_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyBothResponse:
    """The stream begins: both may send CopyData.

    Source: protocol-message-formats, CopyBothResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        format: Format of the copy.
        column_formats: Format of each column.
    """

    TAG = b"W"
    LENGTH_AT = 1
    CODE = b""

    format: int
    column_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of a copy: in replication one frame of the envelope, of a COPY TO one row.

    Source: protocol-message-formats, CopyData.
    PostgreSQL 10 and newer.

    Attributes:
        data: The frame or the row, to the end.
    """

    TAG = b"d"
    LENGTH_AT = 1
    CODE = b""

    data: bytes


@dataclass(frozen=True, slots=True)
class ClientCopyDone:
    """The client sends no more CopyData.

    Source: protocol-message-formats, Client Copy Done.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG = b"c"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class ServerCopyDone:
    """The server sends no more CopyData.

    Source: protocol-message-formats, Server Copy Done.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"c"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client cannot continue a copy.

    Source: protocol-message-formats, CopyFail.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        reason: What failed.
    """

    TAG = b"f"
    LENGTH_AT = 1
    CODE = b""

    reason: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepares a statement.

    Source: protocol-message-formats, Parse.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        statement: Name of the statement, empty for the one without a name.
        text: SQL.
        types: Types of the first parameters.
    """

    TAG = b"P"
    LENGTH_AT = 1
    CODE = b""

    statement: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Gives a statement its parameters.

    Source: protocol-message-formats, Bind.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        portal: Name of the portal, empty for the one without a name.
        statement: Name of the statement, empty for the one without a name.
        formats: Formats of the parameters.
        parameters: The parameters.
        result_formats: Formats of the columns of the result.
    """

    TAG = b"B"
    LENGTH_AT = 1
    CODE = b""

    portal: str
    statement: str
    formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """Requests the description of a statement or a portal.

    Source: protocol-message-formats, Describe.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        subject: The kind of object.
        name: Its name.
    """

    TAG = b"D"
    LENGTH_AT = 1
    CODE = b""

    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Runs a portal.

    Source: protocol-message-formats, Execute.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        portal: Name of the portal, empty for the one without a name.
        row_limit: Number of rows to return at most, 0 for all.
    """

    TAG = b"E"
    LENGTH_AT = 1
    CODE = b""

    portal: str
    row_limit: int


@dataclass(frozen=True, slots=True)
class Close:
    """Closes a statement or a portal.

    Source: protocol-message-formats, Close.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        subject: What is closed.
        name: Its name.
    """

    TAG = b"C"
    LENGTH_AT = 1
    CODE = b""

    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Asks for the answers that there are.

    Source: protocol-message-formats, Flush.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG = b"H"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class Sync:
    """Ends a series of messages of the extended query protocol.

    Source: protocol-message-formats, Sync.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG = b"S"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class ParseComplete:
    """A statement has been prepared.

    Source: protocol-message-formats, ParseComplete.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"1"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class BindComplete:
    """A portal has been created.

    Source: protocol-message-formats, BindComplete.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"2"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class CloseComplete:
    """A statement or a portal has been closed, or did not exist.

    Source: protocol-message-formats, CloseComplete.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"3"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    """Describes the parameters of a statement.

    Source: protocol-message-formats, ParameterDescription.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        types: Types of the parameters.
    """

    TAG = b"t"
    LENGTH_AT = 1
    CODE = b""

    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoData:
    """The statement or the portal returns no rows.

    Source: protocol-message-formats, NoData.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"n"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class PortalSuspended:
    """An Execute has returned as many rows as it requested; the portal may have more.

    Source: protocol-message-formats, PortalSuspended.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG = b"s"
    LENGTH_AT = 1
    CODE = b""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Calls a function by its OID.

    Source: protocol-message-formats, FunctionCall.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        function_oid: OID of the function.
        formats: Formats of the arguments.
        arguments: The arguments.
        result_format: Format of the result.
    """

    TAG = b"F"
    LENGTH_AT = 1
    CODE = b""

    function_oid: int
    formats: tuple[int, ...]
    arguments: tuple[bytes | None, ...]
    result_format: int


@dataclass(frozen=True, slots=True)
class FunctionCallResponse:
    """The result of a function call.

    Source: protocol-message-formats, FunctionCallResponse.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        result: The result in the requested format.
    """

    TAG = b"V"
    LENGTH_AT = 1
    CODE = b""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Terminate:
    """The client ends the connection.

    Source: protocol-message-formats, Terminate.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG = b"X"
    LENGTH_AT = 1
    CODE = b""


ConnectionMessage: TypeAlias = (
    StartupMessage
    | SSLRequest
    | GSSENCRequest
    | CancelRequest
    | EncryptionAccepted
    | GSSEncryptionAccepted
    | EncryptionRefused
    | AuthenticationOk
    | AuthenticationKerberosV5
    | AuthenticationCleartextPassword
    | AuthenticationMD5Password
    | AuthenticationGSS
    | AuthenticationGSSContinue
    | AuthenticationSSPI
    | AuthenticationSASL
    | AuthenticationSASLContinue
    | AuthenticationSASLFinal
    | PasswordMessage
    | GSSResponse
    | SASLInitialResponse
    | SASLResponse
    | NegotiateProtocolVersion
    | ParameterStatus
    | BackendKeyData
    | NotificationResponse
    | ReadyForQuery
    | Query
    | RowDescription
    | DataRow
    | CommandComplete
    | EmptyQueryResponse
    | ErrorResponse
    | NoticeResponse
    | CopyInResponse
    | CopyOutResponse
    | CopyBothResponse
    | CopyData
    | ClientCopyDone
    | ServerCopyDone
    | CopyFail
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | ParseComplete
    | BindComplete
    | CloseComplete
    | ParameterDescription
    | NoData
    | PortalSuspended
    | FunctionCall
    | FunctionCallResponse
    | Terminate
)
"""Any of the messages."""

FOLLOWING: Final[Mapping[tuple[str, str], Mapping[type[ConnectionMessage], str]]] = {
    ("startup", "server"): {ErrorResponse: "startup"},
    ("startup", "client"): {
        StartupMessage: "authentication",
        SSLRequest: "encryption",
        GSSENCRequest: "encryption",
        CancelRequest: "closed",
    },
    ("encryption", "server"): {
        EncryptionAccepted: "startup",
        GSSEncryptionAccepted: "startup",
        EncryptionRefused: "startup",
        ErrorResponse: "encryption",
    },
    ("encryption", "client"): {},
    ("authentication", "server"): {
        AuthenticationOk: "starting",
        AuthenticationKerberosV5: "authentication",
        AuthenticationCleartextPassword: "password",
        AuthenticationMD5Password: "password",
        AuthenticationGSS: "gss",
        AuthenticationGSSContinue: "gss",
        AuthenticationSSPI: "gss",
        AuthenticationSASL: "sasl",
        AuthenticationSASLContinue: "sasl_response",
        AuthenticationSASLFinal: "authentication",
        NegotiateProtocolVersion: "authentication",
        ErrorResponse: "authentication",
        NoticeResponse: "authentication",
    },
    ("authentication", "client"): {},
    ("password", "server"): {ErrorResponse: "password"},
    ("password", "client"): {PasswordMessage: "authentication"},
    ("gss", "server"): {
        AuthenticationOk: "starting",
        AuthenticationKerberosV5: "gss",
        AuthenticationCleartextPassword: "password",
        AuthenticationMD5Password: "password",
        AuthenticationGSS: "gss",
        AuthenticationGSSContinue: "gss",
        AuthenticationSSPI: "gss",
        AuthenticationSASL: "sasl",
        ErrorResponse: "gss",
        NoticeResponse: "gss",
    },
    ("gss", "client"): {GSSResponse: "authentication"},
    ("sasl", "server"): {ErrorResponse: "sasl"},
    ("sasl", "client"): {SASLInitialResponse: "authentication"},
    ("sasl_response", "server"): {ErrorResponse: "sasl_response"},
    ("sasl_response", "client"): {SASLResponse: "authentication"},
    ("starting", "server"): {
        ParameterStatus: "starting",
        BackendKeyData: "starting",
        NotificationResponse: "starting",
        ReadyForQuery: "idle",
        ErrorResponse: "starting",
        NoticeResponse: "starting",
    },
    ("starting", "client"): {},
    ("idle", "server"): {
        ParameterStatus: "idle",
        NotificationResponse: "idle",
        ReadyForQuery: "idle",
        RowDescription: "idle",
        DataRow: "idle",
        CommandComplete: "idle",
        EmptyQueryResponse: "idle",
        ErrorResponse: "idle",
        NoticeResponse: "idle",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyBothResponse: "copy_both",
        ParseComplete: "idle",
        BindComplete: "idle",
        CloseComplete: "idle",
        ParameterDescription: "idle",
        NoData: "idle",
        PortalSuspended: "idle",
        FunctionCallResponse: "idle",
    },
    ("idle", "client"): {
        Query: "query",
        CopyData: "idle",
        ClientCopyDone: "idle",
        CopyFail: "idle",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "idle",
        Sync: "idle",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("query", "server"): {
        ParameterStatus: "query",
        NotificationResponse: "query",
        ReadyForQuery: "idle",
        RowDescription: "query",
        DataRow: "query",
        CommandComplete: "query",
        EmptyQueryResponse: "query",
        ErrorResponse: "query",
        NoticeResponse: "query",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyBothResponse: "copy_both",
        CopyData: "query",
        ServerCopyDone: "copy_server_done",
        ParseComplete: "query",
        BindComplete: "query",
        CloseComplete: "query",
        ParameterDescription: "query",
        NoData: "query",
        PortalSuspended: "query",
        FunctionCallResponse: "query",
    },
    ("query", "client"): {
        Query: "query",
        CopyData: "query",
        ClientCopyDone: "query",
        CopyFail: "query",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "query",
        Sync: "query",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("extended", "server"): {
        ParameterStatus: "extended",
        NotificationResponse: "extended",
        ReadyForQuery: "idle",
        RowDescription: "extended",
        DataRow: "extended",
        CommandComplete: "extended",
        EmptyQueryResponse: "extended",
        ErrorResponse: "extended",
        NoticeResponse: "extended",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyData: "extended",
        ServerCopyDone: "copy_server_done",
        ParseComplete: "extended",
        BindComplete: "extended",
        CloseComplete: "extended",
        ParameterDescription: "extended",
        NoData: "extended",
        PortalSuspended: "extended",
        FunctionCallResponse: "extended",
    },
    ("extended", "client"): {
        Query: "query",
        CopyData: "extended",
        ClientCopyDone: "extended",
        CopyFail: "extended",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "extended",
        Sync: "extended",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("copy_in", "server"): {
        ParameterStatus: "copy_in",
        NotificationResponse: "copy_in",
        ReadyForQuery: "idle",
        RowDescription: "copy_in",
        DataRow: "copy_in",
        CommandComplete: "copy_in",
        EmptyQueryResponse: "copy_in",
        ErrorResponse: "copy_in",
        NoticeResponse: "copy_in",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyData: "copy_in",
        ParseComplete: "copy_in",
        BindComplete: "copy_in",
        CloseComplete: "copy_in",
        ParameterDescription: "copy_in",
        NoData: "copy_in",
        PortalSuspended: "copy_in",
        FunctionCallResponse: "copy_in",
    },
    ("copy_in", "client"): {
        CopyData: "copy_in",
        ClientCopyDone: "copy_client_done",
        CopyFail: "copy_client_done",
        Flush: "copy_in",
        Sync: "copy_in",
        Terminate: "closed",
    },
    ("copy_out", "server"): {
        ParameterStatus: "copy_out",
        NotificationResponse: "copy_out",
        ReadyForQuery: "idle",
        ErrorResponse: "copy_out",
        NoticeResponse: "copy_out",
        CopyData: "copy_out",
        ServerCopyDone: "copy_server_done",
    },
    ("copy_out", "client"): {
        Query: "query",
        CopyData: "copy_out",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "copy_out",
        Sync: "copy_out",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("copy_both", "server"): {
        ParameterStatus: "copy_both",
        NotificationResponse: "copy_both",
        ReadyForQuery: "idle",
        CommandComplete: "copy_both",
        ErrorResponse: "copy_both",
        NoticeResponse: "copy_both",
        CopyData: "copy_both",
        ServerCopyDone: "copy_server_done",
    },
    ("copy_both", "client"): {
        CopyData: "copy_both",
        ClientCopyDone: "copy_client_done",
        CopyFail: "copy_client_done",
        Terminate: "closed",
    },
    ("copy_client_done", "server"): {
        ParameterStatus: "copy_client_done",
        NotificationResponse: "copy_client_done",
        ReadyForQuery: "idle",
        RowDescription: "copy_client_done",
        DataRow: "copy_client_done",
        CommandComplete: "copy_client_done",
        EmptyQueryResponse: "copy_client_done",
        ErrorResponse: "copy_client_done",
        NoticeResponse: "copy_client_done",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyData: "copy_client_done",
        ServerCopyDone: "copy_server_done",
        ParseComplete: "copy_client_done",
        BindComplete: "copy_client_done",
        CloseComplete: "copy_client_done",
        ParameterDescription: "copy_client_done",
        NoData: "copy_client_done",
        PortalSuspended: "copy_client_done",
        FunctionCallResponse: "copy_client_done",
    },
    ("copy_client_done", "client"): {
        Query: "query",
        CopyData: "copy_client_done",
        ClientCopyDone: "copy_client_done",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "copy_client_done",
        Sync: "copy_client_done",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("copy_server_done", "server"): {
        ParameterStatus: "copy_server_done",
        NotificationResponse: "copy_server_done",
        ReadyForQuery: "idle",
        RowDescription: "copy_server_done",
        DataRow: "copy_server_done",
        CommandComplete: "copy_server_done",
        EmptyQueryResponse: "copy_server_done",
        ErrorResponse: "copy_server_done",
        NoticeResponse: "copy_server_done",
        CopyInResponse: "copy_in",
        CopyOutResponse: "copy_out",
        CopyData: "copy_server_done",
        ParseComplete: "copy_server_done",
        BindComplete: "copy_server_done",
        CloseComplete: "copy_server_done",
        ParameterDescription: "copy_server_done",
        NoData: "copy_server_done",
        PortalSuspended: "copy_server_done",
        FunctionCallResponse: "copy_server_done",
    },
    ("copy_server_done", "client"): {
        Query: "query",
        CopyData: "copy_server_done",
        ClientCopyDone: "copy_client_done",
        CopyFail: "copy_client_done",
        Parse: "extended",
        Bind: "extended",
        Describe: "extended",
        Execute: "extended",
        Close: "extended",
        Flush: "copy_server_done",
        Sync: "copy_server_done",
        FunctionCall: "query",
        Terminate: "closed",
    },
    ("closed", "server"): {},
    ("closed", "client"): {},
}
"""The messages that each side can send in each state of a connection, and the state that follows."""

PLAIN_COPY: Final[tuple[str, ...]] = (
    "copy_in",
    "copy_out",
)
"""The states in which a CopyData has rows of a COPY, and no frame."""
