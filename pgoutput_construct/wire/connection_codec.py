# Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

"""Frontend and backend messages: the fast engine, the same layouts as straight-line Python.

For input that it does not accept it raises one of codec_runtime.REJECTIONS; the definitions then explain.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.codec_runtime import Reject, draft, string_bytes

__all__ = ["BUILDERS", "LENGTH", "READERS"]

_AuthenticationCleartextPassword = draft(m.AuthenticationCleartextPassword)
_AuthenticationGSS = draft(m.AuthenticationGSS)
_AuthenticationGSSContinue = draft(m.AuthenticationGSSContinue)
_AuthenticationKerberosV5 = draft(m.AuthenticationKerberosV5)
_AuthenticationMD5Password = draft(m.AuthenticationMD5Password)
_AuthenticationOk = draft(m.AuthenticationOk)
_AuthenticationSASL = draft(m.AuthenticationSASL)
_AuthenticationSASLContinue = draft(m.AuthenticationSASLContinue)
_AuthenticationSASLFinal = draft(m.AuthenticationSASLFinal)
_AuthenticationSSPI = draft(m.AuthenticationSSPI)
_BackendKeyData = draft(m.BackendKeyData)
_Bind = draft(m.Bind)
_BindComplete = draft(m.BindComplete)
_CancelRequest = draft(m.CancelRequest)
_ClientCopyDone = draft(m.ClientCopyDone)
_Close = draft(m.Close)
_CloseComplete = draft(m.CloseComplete)
_CommandComplete = draft(m.CommandComplete)
_CopyBothResponse = draft(m.CopyBothResponse)
_CopyData = draft(m.CopyData)
_CopyFail = draft(m.CopyFail)
_CopyInResponse = draft(m.CopyInResponse)
_CopyOutResponse = draft(m.CopyOutResponse)
_DataRow = draft(m.DataRow)
_Describe = draft(m.Describe)
_EmptyQueryResponse = draft(m.EmptyQueryResponse)
_EncryptionAccepted = draft(m.EncryptionAccepted)
_EncryptionRefused = draft(m.EncryptionRefused)
_ErrorResponse = draft(m.ErrorResponse)
_Execute = draft(m.Execute)
_Flush = draft(m.Flush)
_FunctionCall = draft(m.FunctionCall)
_FunctionCallResponse = draft(m.FunctionCallResponse)
_GSSENCRequest = draft(m.GSSENCRequest)
_GSSEncryptionAccepted = draft(m.GSSEncryptionAccepted)
_GSSResponse = draft(m.GSSResponse)
_NegotiateProtocolVersion = draft(m.NegotiateProtocolVersion)
_NoData = draft(m.NoData)
_NoticeField = draft(m.NoticeField)
_NoticeResponse = draft(m.NoticeResponse)
_NotificationResponse = draft(m.NotificationResponse)
_ParameterDescription = draft(m.ParameterDescription)
_ParameterStatus = draft(m.ParameterStatus)
_Parse = draft(m.Parse)
_ParseComplete = draft(m.ParseComplete)
_PasswordMessage = draft(m.PasswordMessage)
_PortalSuspended = draft(m.PortalSuspended)
_Query = draft(m.Query)
_ReadyForQuery = draft(m.ReadyForQuery)
_ResultColumn = draft(m.ResultColumn)
_RowDescription = draft(m.RowDescription)
_SASLInitialResponse = draft(m.SASLInitialResponse)
_SASLResponse = draft(m.SASLResponse)
_SSLRequest = draft(m.SSLRequest)
_ServerCopyDone = draft(m.ServerCopyDone)
_StartupMessage = draft(m.StartupMessage)
_StartupParameter = draft(m.StartupParameter)
_Sync = draft(m.Sync)
_Terminate = draft(m.Terminate)
_class_NoticeField: Any = m.NoticeField
_class_ResultColumn: Any = m.ResultColumn
_class_StartupParameter: Any = m.StartupParameter
_pack_B = Struct(">B").pack
_pack_BH = Struct(">BH").pack
_pack_BI = Struct(">BI").pack
_pack_H = Struct(">H").pack
_pack_HH = Struct(">HH").pack
_pack_I = Struct(">I").pack
_pack_I4s = Struct(">I4s").pack
_pack_IH = Struct(">IH").pack
_pack_II = Struct(">II").pack
_pack_IhIhiH = Struct(">IhIhiH").pack
_pack_i = Struct(">i").pack
_unpack_B = Struct(">B").unpack_from
_unpack_H = Struct(">H").unpack_from
_unpack_I = Struct(">I").unpack_from
_unpack_IHH = Struct(">IHH").unpack_from
_unpack_II = Struct(">II").unpack_from
_unpack_III = Struct(">III").unpack_from
_unpack_IhIhiH = Struct(">IhIhiH").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_xI = Struct(">xI").unpack_from
_unpack_xIB = Struct(">xIB").unpack_from
_unpack_xIBH = Struct(">xIBH").unpack_from
_unpack_xIH = Struct(">xIH").unpack_from
_unpack_xII = Struct(">xII").unpack_from
_unpack_xII4s = Struct(">xII4s").unpack_from
_unpack_xIIH = Struct(">xIIH").unpack_from
_unpack_xIII = Struct(">xIII").unpack_from
_unpack_xIi = Struct(">xIi").unpack_from


def _read_notice_field(data: bytes, at: int, size: int) -> tuple[Any, int]:
    (code,) = _unpack_B(data, at)
    at += 1
    if code not in b"SVCMDHPpqWstcdnFLR":
        raise Reject
    code = chr(code)
    end = data.index(b"\0", at)
    value_ = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    item = _NoticeField()
    item.code = code
    item.value = value_
    item.__class__ = m.NoticeField
    return item, at


def _read_startup_message(data: bytes, at: int, size: int) -> tuple[m.StartupMessage, int]:
    length_, major_version, minor_version = _unpack_IHH(data, at)
    at += 8
    if major_version != 3:
        raise Reject
    parameters: Any = []
    while data[at]:
        end = data.index(b"\0", at)
        name = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        end = data.index(b"\0", at)
        value_ = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        item = _StartupParameter()
        item.name = name
        item.value = value_
        item.__class__ = m.StartupParameter
        parameters.append(item)
    at += 1
    if length_ != size:
        raise Reject
    message = _StartupMessage()
    message.minor_version = minor_version
    message.parameters = tuple(parameters)
    message.__class__ = m.StartupMessage
    return message, at


def _read_ssl_request(data: bytes, at: int, size: int) -> tuple[m.SSLRequest, int]:
    length_, request_code = _unpack_II(data, at)
    at += 8
    if request_code != 80877103:
        raise Reject
    if length_ != size:
        raise Reject
    message = _SSLRequest()
    message.__class__ = m.SSLRequest
    return message, at


def _read_gssenc_request(data: bytes, at: int, size: int) -> tuple[m.GSSENCRequest, int]:
    length_, request_code = _unpack_II(data, at)
    at += 8
    if request_code != 80877104:
        raise Reject
    if length_ != size:
        raise Reject
    message = _GSSENCRequest()
    message.__class__ = m.GSSENCRequest
    return message, at


def _read_cancel_request(data: bytes, at: int, size: int) -> tuple[m.CancelRequest, int]:
    length_, request_code, process_id = _unpack_III(data, at)
    at += 12
    if request_code != 80877102:
        raise Reject
    if at > size:
        raise Reject
    secret_key = data[at:size]
    at = size
    if length_ != size:
        raise Reject
    message = _CancelRequest()
    message.process_id = process_id
    message.secret_key = secret_key
    message.__class__ = m.CancelRequest
    return message, at


def _read_encryption_accepted(data: bytes, at: int, size: int) -> tuple[m.EncryptionAccepted, int]:
    at += 1
    message = _EncryptionAccepted()
    message.__class__ = m.EncryptionAccepted
    return message, at


def _read_gss_encryption_accepted(data: bytes, at: int, size: int) -> tuple[m.GSSEncryptionAccepted, int]:
    at += 1
    message = _GSSEncryptionAccepted()
    message.__class__ = m.GSSEncryptionAccepted
    return message, at


def _read_encryption_refused(data: bytes, at: int, size: int) -> tuple[m.EncryptionRefused, int]:
    at += 1
    message = _EncryptionRefused()
    message.__class__ = m.EncryptionRefused
    return message, at


def _read_authentication_ok(data: bytes, at: int, size: int) -> tuple[m.AuthenticationOk, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 0:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationOk()
    message.__class__ = m.AuthenticationOk
    return message, at


def _read_authentication_kerberosv5(data: bytes, at: int, size: int) -> tuple[m.AuthenticationKerberosV5, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 2:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationKerberosV5()
    message.__class__ = m.AuthenticationKerberosV5
    return message, at


def _read_authentication_cleartext_password(
    data: bytes, at: int, size: int
) -> tuple[m.AuthenticationCleartextPassword, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 3:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationCleartextPassword()
    message.__class__ = m.AuthenticationCleartextPassword
    return message, at


def _read_authenticationmd5_password(data: bytes, at: int, size: int) -> tuple[m.AuthenticationMD5Password, int]:
    length_, request, salt = _unpack_xII4s(data, at)
    at += 13
    if request != 5:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationMD5Password()
    message.salt = salt
    message.__class__ = m.AuthenticationMD5Password
    return message, at


def _read_authenticationgss(data: bytes, at: int, size: int) -> tuple[m.AuthenticationGSS, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 7:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationGSS()
    message.__class__ = m.AuthenticationGSS
    return message, at


def _read_authenticationgss_continue(data: bytes, at: int, size: int) -> tuple[m.AuthenticationGSSContinue, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 8:
        raise Reject
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationGSSContinue()
    message.data = data_
    message.__class__ = m.AuthenticationGSSContinue
    return message, at


def _read_authenticationsspi(data: bytes, at: int, size: int) -> tuple[m.AuthenticationSSPI, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 9:
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationSSPI()
    message.__class__ = m.AuthenticationSSPI
    return message, at


def _read_authenticationsasl(data: bytes, at: int, size: int) -> tuple[m.AuthenticationSASL, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 10:
        raise Reject
    mechanisms: Any = []
    while data[at]:
        end = data.index(b"\0", at)
        mechanism = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        mechanisms.append(mechanism)
    at += 1
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationSASL()
    message.mechanisms = tuple(mechanisms)
    message.__class__ = m.AuthenticationSASL
    return message, at


def _read_authenticationsasl_continue(data: bytes, at: int, size: int) -> tuple[m.AuthenticationSASLContinue, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 11:
        raise Reject
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationSASLContinue()
    message.data = data_
    message.__class__ = m.AuthenticationSASLContinue
    return message, at


def _read_authenticationsasl_final(data: bytes, at: int, size: int) -> tuple[m.AuthenticationSASLFinal, int]:
    length_, request = _unpack_xII(data, at)
    at += 9
    if request != 12:
        raise Reject
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _AuthenticationSASLFinal()
    message.data = data_
    message.__class__ = m.AuthenticationSASLFinal
    return message, at


def _read_password_message(data: bytes, at: int, size: int) -> tuple[m.PasswordMessage, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    password = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _PasswordMessage()
    message.password = password
    message.__class__ = m.PasswordMessage
    return message, at


def _read_gss_response(data: bytes, at: int, size: int) -> tuple[m.GSSResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _GSSResponse()
    message.data = data_
    message.__class__ = m.GSSResponse
    return message, at


def _read_sasl_initial_response(data: bytes, at: int, size: int) -> tuple[m.SASLInitialResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    mechanism = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    (data_length,) = _unpack_i(data, at)
    at += 4
    data_: Any = None
    if data_length != -1:
        if data_length < 0:
            raise Reject
        end = at + data_length
        data_ = data[at:end]
        at = end
    if length_ != size - 1:
        raise Reject
    message = _SASLInitialResponse()
    message.mechanism = mechanism
    message.data = data_
    message.__class__ = m.SASLInitialResponse
    return message, at


def _read_sasl_response(data: bytes, at: int, size: int) -> tuple[m.SASLResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _SASLResponse()
    message.data = data_
    message.__class__ = m.SASLResponse
    return message, at


def _read_negotiate_protocol_version(data: bytes, at: int, size: int) -> tuple[m.NegotiateProtocolVersion, int]:
    length_, newest_version, option_count = _unpack_xIII(data, at)
    at += 13
    options: Any = []
    for _ in range(option_count):
        end = data.index(b"\0", at)
        option = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        options.append(option)
    if length_ != size - 1:
        raise Reject
    message = _NegotiateProtocolVersion()
    message.newest_version = newest_version
    message.options = tuple(options)
    message.__class__ = m.NegotiateProtocolVersion
    return message, at


def _read_parameter_status(data: bytes, at: int, size: int) -> tuple[m.ParameterStatus, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    value_ = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _ParameterStatus()
    message.name = name
    message.value = value_
    message.__class__ = m.ParameterStatus
    return message, at


def _read_backend_key_data(data: bytes, at: int, size: int) -> tuple[m.BackendKeyData, int]:
    length_, process_id = _unpack_xII(data, at)
    at += 9
    if at > size:
        raise Reject
    secret_key = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _BackendKeyData()
    message.process_id = process_id
    message.secret_key = secret_key
    message.__class__ = m.BackendKeyData
    return message, at


def _read_notification_response(data: bytes, at: int, size: int) -> tuple[m.NotificationResponse, int]:
    length_, process_id = _unpack_xII(data, at)
    at += 9
    end = data.index(b"\0", at)
    channel = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    payload = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _NotificationResponse()
    message.process_id = process_id
    message.channel = channel
    message.payload = payload
    message.__class__ = m.NotificationResponse
    return message, at


def _read_ready_for_query(data: bytes, at: int, size: int) -> tuple[m.ReadyForQuery, int]:
    length_, status = _unpack_xIB(data, at)
    at += 6
    if status not in b"ITE":
        raise Reject
    status = chr(status)
    if length_ != size - 1:
        raise Reject
    message = _ReadyForQuery()
    message.status = status
    message.__class__ = m.ReadyForQuery
    return message, at


def _read_query(data: bytes, at: int, size: int) -> tuple[m.Query, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    text = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _Query()
    message.text = text
    message.__class__ = m.Query
    return message, at


def _read_row_description(data: bytes, at: int, size: int) -> tuple[m.RowDescription, int]:
    length_, column_count = _unpack_xIH(data, at)
    at += 7
    columns: Any = []
    for _ in range(column_count):
        end = data.index(b"\0", at)
        name = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        table_oid, column_number, type_oid, type_size, type_modifier, format = _unpack_IhIhiH(data, at)
        at += 18
        if format not in (0, 1):
            raise Reject
        item = _ResultColumn()
        item.name = name
        item.table_oid = table_oid
        item.column_number = column_number
        item.type_oid = type_oid
        item.type_size = type_size
        item.type_modifier = type_modifier
        item.format = format
        item.__class__ = m.ResultColumn
        columns.append(item)
    if length_ != size - 1:
        raise Reject
    message = _RowDescription()
    message.columns = tuple(columns)
    message.__class__ = m.RowDescription
    return message, at


def _read_data_row(data: bytes, at: int, size: int) -> tuple[m.DataRow, int]:
    length_, value_count = _unpack_xIH(data, at)
    at += 7
    row: Any = []
    for _ in range(value_count):
        (value_length,) = _unpack_i(data, at)
        at += 4
        value_: Any = None
        if value_length != -1:
            if value_length < 0:
                raise Reject
            end = at + value_length
            value_ = data[at:end]
            at = end
        row.append(value_)
    if length_ != size - 1:
        raise Reject
    message = _DataRow()
    message.row = tuple(row)
    message.__class__ = m.DataRow
    return message, at


def _read_command_complete(data: bytes, at: int, size: int) -> tuple[m.CommandComplete, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    command = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _CommandComplete()
    message.command = command
    message.__class__ = m.CommandComplete
    return message, at


def _read_empty_query_response(data: bytes, at: int, size: int) -> tuple[m.EmptyQueryResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _EmptyQueryResponse()
    message.__class__ = m.EmptyQueryResponse
    return message, at


def _read_error_response(data: bytes, at: int, size: int) -> tuple[m.ErrorResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    details: Any = []
    while data[at]:
        part, at = _read_notice_field(data, at, size)
        details.append(part)
    at += 1
    if length_ != size - 1:
        raise Reject
    message = _ErrorResponse()
    message.details = tuple(details)
    message.__class__ = m.ErrorResponse
    return message, at


def _read_notice_response(data: bytes, at: int, size: int) -> tuple[m.NoticeResponse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    details: Any = []
    while data[at]:
        part, at = _read_notice_field(data, at, size)
        details.append(part)
    at += 1
    if length_ != size - 1:
        raise Reject
    message = _NoticeResponse()
    message.details = tuple(details)
    message.__class__ = m.NoticeResponse
    return message, at


def _read_copy_in_response(data: bytes, at: int, size: int) -> tuple[m.CopyInResponse, int]:
    length_, format, column_count = _unpack_xIBH(data, at)
    at += 8
    if format not in (0, 1):
        raise Reject
    column_formats: Any = []
    for _ in range(column_count):
        (column_format,) = _unpack_H(data, at)
        at += 2
        if column_format not in (0, 1):
            raise Reject
        column_formats.append(column_format)
    if length_ != size - 1:
        raise Reject
    message = _CopyInResponse()
    message.format = format
    message.column_formats = tuple(column_formats)
    message.__class__ = m.CopyInResponse
    return message, at


def _read_copy_out_response(data: bytes, at: int, size: int) -> tuple[m.CopyOutResponse, int]:
    length_, format, column_count = _unpack_xIBH(data, at)
    at += 8
    if format not in (0, 1):
        raise Reject
    column_formats: Any = []
    for _ in range(column_count):
        (column_format,) = _unpack_H(data, at)
        at += 2
        if column_format not in (0, 1):
            raise Reject
        column_formats.append(column_format)
    if length_ != size - 1:
        raise Reject
    message = _CopyOutResponse()
    message.format = format
    message.column_formats = tuple(column_formats)
    message.__class__ = m.CopyOutResponse
    return message, at


def _read_copy_both_response(data: bytes, at: int, size: int) -> tuple[m.CopyBothResponse, int]:
    length_, format, column_count = _unpack_xIBH(data, at)
    at += 8
    if format not in (0, 1):
        raise Reject
    column_formats: Any = []
    for _ in range(column_count):
        (column_format,) = _unpack_H(data, at)
        at += 2
        if column_format not in (0, 1):
            raise Reject
        column_formats.append(column_format)
    if length_ != size - 1:
        raise Reject
    message = _CopyBothResponse()
    message.format = format
    message.column_formats = tuple(column_formats)
    message.__class__ = m.CopyBothResponse
    return message, at


def _read_copy_data(data: bytes, at: int, size: int) -> tuple[m.CopyData, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if length_ != size - 1:
        raise Reject
    message = _CopyData()
    message.data = data_
    message.__class__ = m.CopyData
    return message, at


def _read_client_copy_done(data: bytes, at: int, size: int) -> tuple[m.ClientCopyDone, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _ClientCopyDone()
    message.__class__ = m.ClientCopyDone
    return message, at


def _read_server_copy_done(data: bytes, at: int, size: int) -> tuple[m.ServerCopyDone, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _ServerCopyDone()
    message.__class__ = m.ServerCopyDone
    return message, at


def _read_copy_fail(data: bytes, at: int, size: int) -> tuple[m.CopyFail, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    reason = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _CopyFail()
    message.reason = reason
    message.__class__ = m.CopyFail
    return message, at


def _read_parse(data: bytes, at: int, size: int) -> tuple[m.Parse, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    statement = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    text = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    (type_count,) = _unpack_H(data, at)
    at += 2
    types: Any = []
    for _ in range(type_count):
        (type_oid,) = _unpack_I(data, at)
        at += 4
        types.append(type_oid)
    if length_ != size - 1:
        raise Reject
    message = _Parse()
    message.statement = statement
    message.text = text
    message.types = tuple(types)
    message.__class__ = m.Parse
    return message, at


def _read_bind(data: bytes, at: int, size: int) -> tuple[m.Bind, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    portal = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    statement = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    (format_count,) = _unpack_H(data, at)
    at += 2
    formats: Any = []
    for _ in range(format_count):
        (parameter_format,) = _unpack_H(data, at)
        at += 2
        if parameter_format not in (0, 1):
            raise Reject
        formats.append(parameter_format)
    (value_count,) = _unpack_H(data, at)
    at += 2
    parameters: Any = []
    for _ in range(value_count):
        (value_length,) = _unpack_i(data, at)
        at += 4
        value_: Any = None
        if value_length != -1:
            if value_length < 0:
                raise Reject
            end = at + value_length
            value_ = data[at:end]
            at = end
        parameters.append(value_)
    (result_count,) = _unpack_H(data, at)
    at += 2
    result_formats: Any = []
    for _ in range(result_count):
        (result_format,) = _unpack_H(data, at)
        at += 2
        if result_format not in (0, 1):
            raise Reject
        result_formats.append(result_format)
    if length_ != size - 1:
        raise Reject
    message = _Bind()
    message.portal = portal
    message.statement = statement
    message.formats = tuple(formats)
    message.parameters = tuple(parameters)
    message.result_formats = tuple(result_formats)
    message.__class__ = m.Bind
    return message, at


def _read_describe(data: bytes, at: int, size: int) -> tuple[m.Describe, int]:
    length_, subject = _unpack_xIB(data, at)
    at += 6
    if subject not in b"SP":
        raise Reject
    subject = chr(subject)
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _Describe()
    message.subject = subject
    message.name = name
    message.__class__ = m.Describe
    return message, at


def _read_execute(data: bytes, at: int, size: int) -> tuple[m.Execute, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    end = data.index(b"\0", at)
    portal = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    (row_limit,) = _unpack_I(data, at)
    at += 4
    if length_ != size - 1:
        raise Reject
    message = _Execute()
    message.portal = portal
    message.row_limit = row_limit
    message.__class__ = m.Execute
    return message, at


def _read_close(data: bytes, at: int, size: int) -> tuple[m.Close, int]:
    length_, subject = _unpack_xIB(data, at)
    at += 6
    if subject not in b"SP":
        raise Reject
    subject = chr(subject)
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if length_ != size - 1:
        raise Reject
    message = _Close()
    message.subject = subject
    message.name = name
    message.__class__ = m.Close
    return message, at


def _read_flush(data: bytes, at: int, size: int) -> tuple[m.Flush, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _Flush()
    message.__class__ = m.Flush
    return message, at


def _read_sync(data: bytes, at: int, size: int) -> tuple[m.Sync, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _Sync()
    message.__class__ = m.Sync
    return message, at


def _read_parse_complete(data: bytes, at: int, size: int) -> tuple[m.ParseComplete, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _ParseComplete()
    message.__class__ = m.ParseComplete
    return message, at


def _read_bind_complete(data: bytes, at: int, size: int) -> tuple[m.BindComplete, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _BindComplete()
    message.__class__ = m.BindComplete
    return message, at


def _read_close_complete(data: bytes, at: int, size: int) -> tuple[m.CloseComplete, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _CloseComplete()
    message.__class__ = m.CloseComplete
    return message, at


def _read_parameter_description(data: bytes, at: int, size: int) -> tuple[m.ParameterDescription, int]:
    length_, type_count = _unpack_xIH(data, at)
    at += 7
    types: Any = []
    for _ in range(type_count):
        (type_oid,) = _unpack_I(data, at)
        at += 4
        types.append(type_oid)
    if length_ != size - 1:
        raise Reject
    message = _ParameterDescription()
    message.types = tuple(types)
    message.__class__ = m.ParameterDescription
    return message, at


def _read_no_data(data: bytes, at: int, size: int) -> tuple[m.NoData, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _NoData()
    message.__class__ = m.NoData
    return message, at


def _read_portal_suspended(data: bytes, at: int, size: int) -> tuple[m.PortalSuspended, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _PortalSuspended()
    message.__class__ = m.PortalSuspended
    return message, at


def _read_function_call(data: bytes, at: int, size: int) -> tuple[m.FunctionCall, int]:
    length_, function_oid, format_count = _unpack_xIIH(data, at)
    at += 11
    formats: Any = []
    for _ in range(format_count):
        (argument_format,) = _unpack_H(data, at)
        at += 2
        if argument_format not in (0, 1):
            raise Reject
        formats.append(argument_format)
    (argument_count,) = _unpack_H(data, at)
    at += 2
    arguments: Any = []
    for _ in range(argument_count):
        (argument_length,) = _unpack_i(data, at)
        at += 4
        argument: Any = None
        if argument_length != -1:
            if argument_length < 0:
                raise Reject
            end = at + argument_length
            argument = data[at:end]
            at = end
        arguments.append(argument)
    (result_format,) = _unpack_H(data, at)
    at += 2
    if result_format not in (0, 1):
        raise Reject
    if length_ != size - 1:
        raise Reject
    message = _FunctionCall()
    message.function_oid = function_oid
    message.formats = tuple(formats)
    message.arguments = tuple(arguments)
    message.result_format = result_format
    message.__class__ = m.FunctionCall
    return message, at


def _read_function_call_response(data: bytes, at: int, size: int) -> tuple[m.FunctionCallResponse, int]:
    length_, result_length = _unpack_xIi(data, at)
    at += 9
    result: Any = None
    if result_length != -1:
        if result_length < 0:
            raise Reject
        end = at + result_length
        result = data[at:end]
        at = end
    if length_ != size - 1:
        raise Reject
    message = _FunctionCallResponse()
    message.result = result
    message.__class__ = m.FunctionCallResponse
    return message, at


def _read_terminate(data: bytes, at: int, size: int) -> tuple[m.Terminate, int]:
    (length_,) = _unpack_xI(data, at)
    at += 5
    if length_ != size - 1:
        raise Reject
    message = _Terminate()
    message.__class__ = m.Terminate
    return message, at


def _build_notice_field(value: Any, pieces: list[bytes]) -> None:
    if not isinstance(value, _class_NoticeField):
        raise Reject
    if value.code not in ("S", "V", "C", "M", "D", "H", "P", "p", "q", "W", "s", "t", "c", "d", "n", "F", "L", "R"):
        raise Reject
    pieces.append(_pack_B(ord(value.code)))
    pieces.append(string_bytes(value.value))


def build_startup_message(message: Any) -> bytes:
    """Build StartupMessage."""
    pieces: list[bytes] = []
    if not isinstance(message.parameters, (tuple, list)):
        raise Reject
    pieces.append(_pack_HH(3, message.minor_version))
    for parameters_item in message.parameters:
        parameters_first = len(pieces)
        if not isinstance(parameters_item, _class_StartupParameter):
            raise Reject
        pieces.append(string_bytes(parameters_item.name))
        pieces.append(string_bytes(parameters_item.value))
        if not pieces[parameters_first][0]:  # as if it were the end
            raise Reject
    pieces.append(b"\0")
    content = b"".join(pieces)
    return _pack_I(len(content) + 4) + content


def build_ssl_request(message: Any) -> bytes:
    """Build SSLRequest."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(80877103))
    content = b"".join(pieces)
    return _pack_I(len(content) + 4) + content


def build_gssenc_request(message: Any) -> bytes:
    """Build GSSENCRequest."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(80877104))
    content = b"".join(pieces)
    return _pack_I(len(content) + 4) + content


def build_cancel_request(message: Any) -> bytes:
    """Build CancelRequest."""
    pieces: list[bytes] = []
    if not isinstance(message.secret_key, bytes):
        raise Reject
    pieces.append(_pack_II(80877102, message.process_id))
    pieces.append(message.secret_key)
    content = b"".join(pieces)
    return _pack_I(len(content) + 4) + content


def build_encryption_accepted(message: Any) -> bytes:
    """Build EncryptionAccepted."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(83))
    return b"".join(pieces)


def build_gss_encryption_accepted(message: Any) -> bytes:
    """Build GSSEncryptionAccepted."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(71))
    return b"".join(pieces)


def build_encryption_refused(message: Any) -> bytes:
    """Build EncryptionRefused."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(78))
    return b"".join(pieces)


def build_authentication_ok(message: Any) -> bytes:
    """Build AuthenticationOk."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(0))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authentication_kerberosv5(message: Any) -> bytes:
    """Build AuthenticationKerberosV5."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(2))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authentication_cleartext_password(message: Any) -> bytes:
    """Build AuthenticationCleartextPassword."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(3))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationmd5_password(message: Any) -> bytes:
    """Build AuthenticationMD5Password."""
    pieces: list[bytes] = []
    if not isinstance(message.salt, bytes) or len(message.salt) != 4:
        raise Reject
    pieces.append(_pack_I4s(5, message.salt))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationgss(message: Any) -> bytes:
    """Build AuthenticationGSS."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(7))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationgss_continue(message: Any) -> bytes:
    """Build AuthenticationGSSContinue."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(_pack_I(8))
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationsspi(message: Any) -> bytes:
    """Build AuthenticationSSPI."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(9))
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationsasl(message: Any) -> bytes:
    """Build AuthenticationSASL."""
    pieces: list[bytes] = []
    if not isinstance(message.mechanisms, (tuple, list)):
        raise Reject
    pieces.append(_pack_I(10))
    for mechanisms_item in message.mechanisms:
        mechanisms_first = len(pieces)
        pieces.append(string_bytes(mechanisms_item))
        if not pieces[mechanisms_first][0]:  # as if it were the end
            raise Reject
    pieces.append(b"\0")
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationsasl_continue(message: Any) -> bytes:
    """Build AuthenticationSASLContinue."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(_pack_I(11))
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_authenticationsasl_final(message: Any) -> bytes:
    """Build AuthenticationSASLFinal."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(_pack_I(12))
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(82, len(content) + 4) + content


def build_password_message(message: Any) -> bytes:
    """Build PasswordMessage."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.password))
    content = b"".join(pieces)
    return _pack_BI(112, len(content) + 4) + content


def build_gss_response(message: Any) -> bytes:
    """Build GSSResponse."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(112, len(content) + 4) + content


def build_sasl_initial_response(message: Any) -> bytes:
    """Build SASLInitialResponse."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.mechanism))
    pieces.append(_pack_i(-1 if message.data is None else len(message.data)))
    if message.data is not None:
        if not isinstance(message.data, bytes):
            raise Reject
        pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(112, len(content) + 4) + content


def build_sasl_response(message: Any) -> bytes:
    """Build SASLResponse."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(112, len(content) + 4) + content


def build_negotiate_protocol_version(message: Any) -> bytes:
    """Build NegotiateProtocolVersion."""
    pieces: list[bytes] = []
    if not isinstance(message.options, (tuple, list)):
        raise Reject
    pieces.append(_pack_II(message.newest_version, len(message.options)))
    for options_item in message.options:
        pieces.append(string_bytes(options_item))
    content = b"".join(pieces)
    return _pack_BI(118, len(content) + 4) + content


def build_parameter_status(message: Any) -> bytes:
    """Build ParameterStatus."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.name))
    pieces.append(string_bytes(message.value))
    content = b"".join(pieces)
    return _pack_BI(83, len(content) + 4) + content


def build_backend_key_data(message: Any) -> bytes:
    """Build BackendKeyData."""
    pieces: list[bytes] = []
    if not isinstance(message.secret_key, bytes):
        raise Reject
    pieces.append(_pack_I(message.process_id))
    pieces.append(message.secret_key)
    content = b"".join(pieces)
    return _pack_BI(75, len(content) + 4) + content


def build_notification_response(message: Any) -> bytes:
    """Build NotificationResponse."""
    pieces: list[bytes] = []
    pieces.append(_pack_I(message.process_id))
    pieces.append(string_bytes(message.channel))
    pieces.append(string_bytes(message.payload))
    content = b"".join(pieces)
    return _pack_BI(65, len(content) + 4) + content


def build_ready_for_query(message: Any) -> bytes:
    """Build ReadyForQuery."""
    pieces: list[bytes] = []
    if message.status not in ("I", "T", "E"):
        raise Reject
    pieces.append(_pack_B(ord(message.status)))
    content = b"".join(pieces)
    return _pack_BI(90, len(content) + 4) + content


def build_query(message: Any) -> bytes:
    """Build Query."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.text))
    content = b"".join(pieces)
    return _pack_BI(81, len(content) + 4) + content


def build_row_description(message: Any) -> bytes:
    """Build RowDescription."""
    pieces: list[bytes] = []
    if not isinstance(message.columns, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.columns)))
    for columns_item in message.columns:
        if not isinstance(columns_item, _class_ResultColumn):
            raise Reject
        pieces.append(string_bytes(columns_item.name))
        if columns_item.format not in (0, 1):
            raise Reject
        pieces.append(
            _pack_IhIhiH(
                columns_item.table_oid,
                columns_item.column_number,
                columns_item.type_oid,
                columns_item.type_size,
                columns_item.type_modifier,
                columns_item.format,
            )
        )
    content = b"".join(pieces)
    return _pack_BI(84, len(content) + 4) + content


def build_data_row(message: Any) -> bytes:
    """Build DataRow."""
    pieces: list[bytes] = []
    if not isinstance(message.row, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.row)))
    for row_item in message.row:
        pieces.append(_pack_i(-1 if row_item is None else len(row_item)))
        if row_item is not None:
            if not isinstance(row_item, bytes):
                raise Reject
            pieces.append(row_item)
    content = b"".join(pieces)
    return _pack_BI(68, len(content) + 4) + content


def build_command_complete(message: Any) -> bytes:
    """Build CommandComplete."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.command))
    content = b"".join(pieces)
    return _pack_BI(67, len(content) + 4) + content


def build_empty_query_response(message: Any) -> bytes:
    """Build EmptyQueryResponse."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(73, len(content) + 4) + content


def build_error_response(message: Any) -> bytes:
    """Build ErrorResponse."""
    pieces: list[bytes] = []
    if not isinstance(message.details, (tuple, list)):
        raise Reject
    for details_item in message.details:
        details_first = len(pieces)
        _build_notice_field(details_item, pieces)
        if not pieces[details_first][0]:  # as if it were the end
            raise Reject
    pieces.append(b"\0")
    content = b"".join(pieces)
    return _pack_BI(69, len(content) + 4) + content


def build_notice_response(message: Any) -> bytes:
    """Build NoticeResponse."""
    pieces: list[bytes] = []
    if not isinstance(message.details, (tuple, list)):
        raise Reject
    for details_item in message.details:
        details_first = len(pieces)
        _build_notice_field(details_item, pieces)
        if not pieces[details_first][0]:  # as if it were the end
            raise Reject
    pieces.append(b"\0")
    content = b"".join(pieces)
    return _pack_BI(78, len(content) + 4) + content


def build_copy_in_response(message: Any) -> bytes:
    """Build CopyInResponse."""
    pieces: list[bytes] = []
    if message.format not in (0, 1):
        raise Reject
    if not isinstance(message.column_formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_BH(message.format, len(message.column_formats)))
    for column_formats_item in message.column_formats:
        if column_formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(column_formats_item))
    content = b"".join(pieces)
    return _pack_BI(71, len(content) + 4) + content


def build_copy_out_response(message: Any) -> bytes:
    """Build CopyOutResponse."""
    pieces: list[bytes] = []
    if message.format not in (0, 1):
        raise Reject
    if not isinstance(message.column_formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_BH(message.format, len(message.column_formats)))
    for column_formats_item in message.column_formats:
        if column_formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(column_formats_item))
    content = b"".join(pieces)
    return _pack_BI(72, len(content) + 4) + content


def build_copy_both_response(message: Any) -> bytes:
    """Build CopyBothResponse."""
    pieces: list[bytes] = []
    if message.format not in (0, 1):
        raise Reject
    if not isinstance(message.column_formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_BH(message.format, len(message.column_formats)))
    for column_formats_item in message.column_formats:
        if column_formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(column_formats_item))
    content = b"".join(pieces)
    return _pack_BI(87, len(content) + 4) + content


def build_copy_data(message: Any) -> bytes:
    """Build CopyData."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(message.data)
    content = b"".join(pieces)
    return _pack_BI(100, len(content) + 4) + content


def build_client_copy_done(message: Any) -> bytes:
    """Build ClientCopyDone."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(99, len(content) + 4) + content


def build_server_copy_done(message: Any) -> bytes:
    """Build ServerCopyDone."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(99, len(content) + 4) + content


def build_copy_fail(message: Any) -> bytes:
    """Build CopyFail."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.reason))
    content = b"".join(pieces)
    return _pack_BI(102, len(content) + 4) + content


def build_parse(message: Any) -> bytes:
    """Build Parse."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.statement))
    pieces.append(string_bytes(message.text))
    if not isinstance(message.types, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.types)))
    for types_item in message.types:
        pieces.append(_pack_I(types_item))
    content = b"".join(pieces)
    return _pack_BI(80, len(content) + 4) + content


def build_bind(message: Any) -> bytes:
    """Build Bind."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.portal))
    pieces.append(string_bytes(message.statement))
    if not isinstance(message.formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.formats)))
    for formats_item in message.formats:
        if formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(formats_item))
    if not isinstance(message.parameters, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.parameters)))
    for parameters_item in message.parameters:
        pieces.append(_pack_i(-1 if parameters_item is None else len(parameters_item)))
        if parameters_item is not None:
            if not isinstance(parameters_item, bytes):
                raise Reject
            pieces.append(parameters_item)
    if not isinstance(message.result_formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.result_formats)))
    for result_formats_item in message.result_formats:
        if result_formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(result_formats_item))
    content = b"".join(pieces)
    return _pack_BI(66, len(content) + 4) + content


def build_describe(message: Any) -> bytes:
    """Build Describe."""
    pieces: list[bytes] = []
    if message.subject not in ("S", "P"):
        raise Reject
    pieces.append(_pack_B(ord(message.subject)))
    pieces.append(string_bytes(message.name))
    content = b"".join(pieces)
    return _pack_BI(68, len(content) + 4) + content


def build_execute(message: Any) -> bytes:
    """Build Execute."""
    pieces: list[bytes] = []
    pieces.append(string_bytes(message.portal))
    pieces.append(_pack_I(message.row_limit))
    content = b"".join(pieces)
    return _pack_BI(69, len(content) + 4) + content


def build_close(message: Any) -> bytes:
    """Build Close."""
    pieces: list[bytes] = []
    if message.subject not in ("S", "P"):
        raise Reject
    pieces.append(_pack_B(ord(message.subject)))
    pieces.append(string_bytes(message.name))
    content = b"".join(pieces)
    return _pack_BI(67, len(content) + 4) + content


def build_flush(message: Any) -> bytes:
    """Build Flush."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(72, len(content) + 4) + content


def build_sync(message: Any) -> bytes:
    """Build Sync."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(83, len(content) + 4) + content


def build_parse_complete(message: Any) -> bytes:
    """Build ParseComplete."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(49, len(content) + 4) + content


def build_bind_complete(message: Any) -> bytes:
    """Build BindComplete."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(50, len(content) + 4) + content


def build_close_complete(message: Any) -> bytes:
    """Build CloseComplete."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(51, len(content) + 4) + content


def build_parameter_description(message: Any) -> bytes:
    """Build ParameterDescription."""
    pieces: list[bytes] = []
    if not isinstance(message.types, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.types)))
    for types_item in message.types:
        pieces.append(_pack_I(types_item))
    content = b"".join(pieces)
    return _pack_BI(116, len(content) + 4) + content


def build_no_data(message: Any) -> bytes:
    """Build NoData."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(110, len(content) + 4) + content


def build_portal_suspended(message: Any) -> bytes:
    """Build PortalSuspended."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(115, len(content) + 4) + content


def build_function_call(message: Any) -> bytes:
    """Build FunctionCall."""
    pieces: list[bytes] = []
    if not isinstance(message.formats, (tuple, list)):
        raise Reject
    pieces.append(_pack_IH(message.function_oid, len(message.formats)))
    for formats_item in message.formats:
        if formats_item not in (0, 1):
            raise Reject
        pieces.append(_pack_H(formats_item))
    if not isinstance(message.arguments, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(message.arguments)))
    for arguments_item in message.arguments:
        pieces.append(_pack_i(-1 if arguments_item is None else len(arguments_item)))
        if arguments_item is not None:
            if not isinstance(arguments_item, bytes):
                raise Reject
            pieces.append(arguments_item)
    if message.result_format not in (0, 1):
        raise Reject
    pieces.append(_pack_H(message.result_format))
    content = b"".join(pieces)
    return _pack_BI(70, len(content) + 4) + content


def build_function_call_response(message: Any) -> bytes:
    """Build FunctionCallResponse."""
    pieces: list[bytes] = []
    pieces.append(_pack_i(-1 if message.result is None else len(message.result)))
    if message.result is not None:
        if not isinstance(message.result, bytes):
            raise Reject
        pieces.append(message.result)
    content = b"".join(pieces)
    return _pack_BI(86, len(content) + 4) + content


def build_terminate(message: Any) -> bytes:
    """Build Terminate."""
    pieces: list[bytes] = []
    content = b"".join(pieces)
    return _pack_BI(88, len(content) + 4) + content


READERS: Final[Mapping[type, Callable[..., tuple[Any, int]]]] = {
    m.StartupMessage: _read_startup_message,
    m.SSLRequest: _read_ssl_request,
    m.GSSENCRequest: _read_gssenc_request,
    m.CancelRequest: _read_cancel_request,
    m.EncryptionAccepted: _read_encryption_accepted,
    m.GSSEncryptionAccepted: _read_gss_encryption_accepted,
    m.EncryptionRefused: _read_encryption_refused,
    m.AuthenticationOk: _read_authentication_ok,
    m.AuthenticationKerberosV5: _read_authentication_kerberosv5,
    m.AuthenticationCleartextPassword: _read_authentication_cleartext_password,
    m.AuthenticationMD5Password: _read_authenticationmd5_password,
    m.AuthenticationGSS: _read_authenticationgss,
    m.AuthenticationGSSContinue: _read_authenticationgss_continue,
    m.AuthenticationSSPI: _read_authenticationsspi,
    m.AuthenticationSASL: _read_authenticationsasl,
    m.AuthenticationSASLContinue: _read_authenticationsasl_continue,
    m.AuthenticationSASLFinal: _read_authenticationsasl_final,
    m.PasswordMessage: _read_password_message,
    m.GSSResponse: _read_gss_response,
    m.SASLInitialResponse: _read_sasl_initial_response,
    m.SASLResponse: _read_sasl_response,
    m.NegotiateProtocolVersion: _read_negotiate_protocol_version,
    m.ParameterStatus: _read_parameter_status,
    m.BackendKeyData: _read_backend_key_data,
    m.NotificationResponse: _read_notification_response,
    m.ReadyForQuery: _read_ready_for_query,
    m.Query: _read_query,
    m.RowDescription: _read_row_description,
    m.DataRow: _read_data_row,
    m.CommandComplete: _read_command_complete,
    m.EmptyQueryResponse: _read_empty_query_response,
    m.ErrorResponse: _read_error_response,
    m.NoticeResponse: _read_notice_response,
    m.CopyInResponse: _read_copy_in_response,
    m.CopyOutResponse: _read_copy_out_response,
    m.CopyBothResponse: _read_copy_both_response,
    m.CopyData: _read_copy_data,
    m.ClientCopyDone: _read_client_copy_done,
    m.ServerCopyDone: _read_server_copy_done,
    m.CopyFail: _read_copy_fail,
    m.Parse: _read_parse,
    m.Bind: _read_bind,
    m.Describe: _read_describe,
    m.Execute: _read_execute,
    m.Close: _read_close,
    m.Flush: _read_flush,
    m.Sync: _read_sync,
    m.ParseComplete: _read_parse_complete,
    m.BindComplete: _read_bind_complete,
    m.CloseComplete: _read_close_complete,
    m.ParameterDescription: _read_parameter_description,
    m.NoData: _read_no_data,
    m.PortalSuspended: _read_portal_suspended,
    m.FunctionCall: _read_function_call,
    m.FunctionCallResponse: _read_function_call_response,
    m.Terminate: _read_terminate,
}
"""The parse functions by class; see READERS of the codec of messages."""

BUILDERS: Final[Mapping[type, Callable[..., bytes]]] = {
    m.StartupMessage: build_startup_message,
    m.SSLRequest: build_ssl_request,
    m.GSSENCRequest: build_gssenc_request,
    m.CancelRequest: build_cancel_request,
    m.EncryptionAccepted: build_encryption_accepted,
    m.GSSEncryptionAccepted: build_gss_encryption_accepted,
    m.EncryptionRefused: build_encryption_refused,
    m.AuthenticationOk: build_authentication_ok,
    m.AuthenticationKerberosV5: build_authentication_kerberosv5,
    m.AuthenticationCleartextPassword: build_authentication_cleartext_password,
    m.AuthenticationMD5Password: build_authenticationmd5_password,
    m.AuthenticationGSS: build_authenticationgss,
    m.AuthenticationGSSContinue: build_authenticationgss_continue,
    m.AuthenticationSSPI: build_authenticationsspi,
    m.AuthenticationSASL: build_authenticationsasl,
    m.AuthenticationSASLContinue: build_authenticationsasl_continue,
    m.AuthenticationSASLFinal: build_authenticationsasl_final,
    m.PasswordMessage: build_password_message,
    m.GSSResponse: build_gss_response,
    m.SASLInitialResponse: build_sasl_initial_response,
    m.SASLResponse: build_sasl_response,
    m.NegotiateProtocolVersion: build_negotiate_protocol_version,
    m.ParameterStatus: build_parameter_status,
    m.BackendKeyData: build_backend_key_data,
    m.NotificationResponse: build_notification_response,
    m.ReadyForQuery: build_ready_for_query,
    m.Query: build_query,
    m.RowDescription: build_row_description,
    m.DataRow: build_data_row,
    m.CommandComplete: build_command_complete,
    m.EmptyQueryResponse: build_empty_query_response,
    m.ErrorResponse: build_error_response,
    m.NoticeResponse: build_notice_response,
    m.CopyInResponse: build_copy_in_response,
    m.CopyOutResponse: build_copy_out_response,
    m.CopyBothResponse: build_copy_both_response,
    m.CopyData: build_copy_data,
    m.ClientCopyDone: build_client_copy_done,
    m.ServerCopyDone: build_server_copy_done,
    m.CopyFail: build_copy_fail,
    m.Parse: build_parse,
    m.Bind: build_bind,
    m.Describe: build_describe,
    m.Execute: build_execute,
    m.Close: build_close,
    m.Flush: build_flush,
    m.Sync: build_sync,
    m.ParseComplete: build_parse_complete,
    m.BindComplete: build_bind_complete,
    m.CloseComplete: build_close_complete,
    m.ParameterDescription: build_parameter_description,
    m.NoData: build_no_data,
    m.PortalSuspended: build_portal_suspended,
    m.FunctionCall: build_function_call,
    m.FunctionCallResponse: build_function_call_response,
    m.Terminate: build_terminate,
}
"""The build functions by class: ``(message, *parameters) -> bytes``."""

LENGTH: Final = Struct(">I")
"""The format of the length of a message, which follows its tag and does not include it."""
