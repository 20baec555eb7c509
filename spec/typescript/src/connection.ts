// Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

/**
 * Frontend and backend messages: what they hold, and how they are read and built.
 *
 * Source: PostgreSQL's documentation, protocol-message-formats.
 *
 * @module
 */

import * as wire from "./wire.js";

/** What determines the layout of a message besides its bytes. */
export interface Layout {}

/** One detail of an error or a notice. */
export interface NoticeField {
  /** What is said. */
  code: string;
  /** The text. */
  value: wire.Text;
}

/** The values of code of NoticeField. */
export const NoticeFieldCode = {
  /** Severity in the language of the server. */
  SEVERITY_IN_THE_LANGUAGE_OF_THE_SERVER: "S",
  /** Severity. */
  SEVERITY: "V",
  /** SQLSTATE. */
  SQLSTATE: "C",
  /** Message. */
  MESSAGE: "M",
  /** Detail. */
  DETAIL: "D",
  /** Hint. */
  HINT: "H",
  /** Position in the query. */
  POSITION_IN_THE_QUERY: "P",
  /** Position in an internal query. */
  POSITION_IN_AN_INTERNAL_QUERY: "p",
  /** Internal query. */
  INTERNAL_QUERY: "q",
  /** Where it happened. */
  WHERE_IT_HAPPENED: "W",
  /** Schema. */
  SCHEMA: "s",
  /** Table. */
  TABLE: "t",
  /** Column. */
  COLUMN: "c",
  /** Data type. */
  DATA_TYPE: "d",
  /** Constraint. */
  CONSTRAINT: "n",
  /** Source file. */
  SOURCE_FILE: "F",
  /** Line of the source file. */
  LINE_OF_THE_SOURCE_FILE: "L",
  /** Function of the source file. */
  FUNCTION_OF_THE_SOURCE_FILE: "R",
} as const;

function readNoticeField(r: wire.Reader): NoticeField {
  const code = r.letter("code", "SVCMDHPpqWstcdnFLR");
  const value = r.text("value");
  return { code, value };
}

function writeNoticeField(w: wire.Writer, m: NoticeField): void {
  w.letter("code", m.code, "SVCMDHPpqWstcdnFLR");
  w.text("value", m.value);
}

function jsonNoticeField(m: NoticeField, layout: Layout): wire.Json {
  void layout;
  return {
    code: m.code,
    value: wire.jsonText(m.value),
  };
}

/** What the client asks for: user, database, replication, and settings of the session. */
export interface StartupParameter {
  /** Name of the parameter. */
  name: wire.Text;
  /** Its value. */
  value: wire.Text;
}

function readStartupParameter(r: wire.Reader): StartupParameter {
  const name = r.text("name");
  const value = r.text("value");
  return { name, value };
}

function writeStartupParameter(w: wire.Writer, m: StartupParameter): void {
  w.text("name", m.name);
  w.text("value", m.value);
}

function jsonStartupParameter(m: StartupParameter, layout: Layout): wire.Json {
  void layout;
  return {
    name: wire.jsonText(m.name),
    value: wire.jsonText(m.value),
  };
}

/**
 * Opens a connection.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface StartupMessage {
  message: "StartupMessage";
  /** Minor version of the protocol. */
  minorVersion: number;
  /** What the client asks for: user, database, replication, and settings of the session. */
  parameters: StartupParameter[];
}

function readStartupMessage(r: wire.Reader): StartupMessage {
  r.length("length", 4);
  r.constant("major_version", [0, 3]);
  const minorVersion = r.uint16("minor_version");
  const parameters = r.itemsUntilZero("parameters", () => readStartupParameter(r));
  return { message: "StartupMessage", minorVersion, parameters };
}

function writeStartupMessage(w: wire.Writer, m: StartupMessage): void {
  w.raw([0, 0, 0, 0]);
  w.raw([0, 3]);
  w.uint("minor_version", 2, m.minorVersion);
  w.items("parameters", m.parameters, (item) => writeStartupParameter(w, item), true);
  w.raw([0]);
  w.close(0, 4);
}

function jsonStartupMessage(m: StartupMessage, layout: Layout): wire.Json {
  return {
    minor_version: m.minorVersion,
    parameters: m.parameters.map((item) => jsonStartupParameter(item, layout)),
  };
}

/**
 * Asks for TLS before anything else is said.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface SSLRequest {
  message: "SSLRequest";
}

function readSSLRequest(r: wire.Reader): SSLRequest {
  r.length("length", 4);
  r.constant("request_code", [4, 210, 22, 47]);
  return { message: "SSLRequest" };
}

function writeSSLRequest(w: wire.Writer, _m: SSLRequest): void {
  w.raw([0, 0, 0, 0]);
  w.raw([4, 210, 22, 47]);
  w.close(0, 4);
}

function jsonSSLRequest(_m: SSLRequest, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Asks for GSSAPI encryption before anything else is said.
 *
 * PostgreSQL 12 and newer, sent by the client.
 */
export interface GSSENCRequest {
  message: "GSSENCRequest";
}

function readGSSENCRequest(r: wire.Reader): GSSENCRequest {
  r.length("length", 4);
  r.constant("request_code", [4, 210, 22, 48]);
  return { message: "GSSENCRequest" };
}

function writeGSSENCRequest(w: wire.Writer, _m: GSSENCRequest): void {
  w.raw([0, 0, 0, 0]);
  w.raw([4, 210, 22, 48]);
  w.close(0, 4);
}

function jsonGSSENCRequest(_m: GSSENCRequest, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Requests that another connection's query be cancelled.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface CancelRequest {
  message: "CancelRequest";
  /** Process ID of the backend. */
  processId: number;
  /** Its secret key, as long as in BackendKeyData. */
  secretKey: Uint8Array;
}

function readCancelRequest(r: wire.Reader): CancelRequest {
  r.length("length", 4);
  r.constant("request_code", [4, 210, 22, 46]);
  const processId = r.uint32("process_id");
  const secretKey = r.rest("secret_key");
  return { message: "CancelRequest", processId, secretKey };
}

function writeCancelRequest(w: wire.Writer, m: CancelRequest): void {
  w.raw([0, 0, 0, 0]);
  w.raw([4, 210, 22, 46]);
  w.uint("process_id", 4, m.processId);
  w.bytes("secret_key", m.secretKey);
  w.close(0, 4);
}

function jsonCancelRequest(m: CancelRequest, layout: Layout): wire.Json {
  void layout;
  return {
    process_id: m.processId,
    secret_key: wire.jsonHex("hex", m.secretKey),
  };
}

/**
 * The client may begin its TLS handshake.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface EncryptionAccepted {
  message: "EncryptionAccepted";
}

function readEncryptionAccepted(r: wire.Reader): EncryptionAccepted {
  r.byte("tag", 83);
  return { message: "EncryptionAccepted" };
}

function writeEncryptionAccepted(w: wire.Writer, _m: EncryptionAccepted): void {
  w.raw([83]);
}

function jsonEncryptionAccepted(_m: EncryptionAccepted, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * The client may begin to establish a GSSAPI context.
 *
 * PostgreSQL 12 and newer, sent by the server.
 */
export interface GSSEncryptionAccepted {
  message: "GSSEncryptionAccepted";
}

function readGSSEncryptionAccepted(r: wire.Reader): GSSEncryptionAccepted {
  r.byte("tag", 71);
  return { message: "GSSEncryptionAccepted" };
}

function writeGSSEncryptionAccepted(w: wire.Writer, _m: GSSEncryptionAccepted): void {
  w.raw([71]);
}

function jsonGSSEncryptionAccepted(_m: GSSEncryptionAccepted, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * The server continues without encryption.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface EncryptionRefused {
  message: "EncryptionRefused";
}

function readEncryptionRefused(r: wire.Reader): EncryptionRefused {
  r.byte("tag", 78);
  return { message: "EncryptionRefused" };
}

function writeEncryptionRefused(w: wire.Writer, _m: EncryptionRefused): void {
  w.raw([78]);
}

function jsonEncryptionRefused(_m: EncryptionRefused, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * The client has been authenticated.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationOk {
  message: "AuthenticationOk";
}

function readAuthenticationOk(r: wire.Reader): AuthenticationOk {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 0]);
  return { message: "AuthenticationOk" };
}

function writeAuthenticationOk(w: wire.Writer, _m: AuthenticationOk): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonAuthenticationOk(_m: AuthenticationOk, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Asks for Kerberos V5 authentication; no supported server does.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationKerberosV5 {
  message: "AuthenticationKerberosV5";
}

function readAuthenticationKerberosV5(r: wire.Reader): AuthenticationKerberosV5 {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 2]);
  return { message: "AuthenticationKerberosV5" };
}

function writeAuthenticationKerberosV5(w: wire.Writer, _m: AuthenticationKerberosV5): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 2]);
  w.close(1, 4);
}

function jsonAuthenticationKerberosV5(_m: AuthenticationKerberosV5, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Asks for a password as it is.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationCleartextPassword {
  message: "AuthenticationCleartextPassword";
}

function readAuthenticationCleartextPassword(r: wire.Reader): AuthenticationCleartextPassword {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 3]);
  return { message: "AuthenticationCleartextPassword" };
}

function writeAuthenticationCleartextPassword(w: wire.Writer, _m: AuthenticationCleartextPassword): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 3]);
  w.close(1, 4);
}

function jsonAuthenticationCleartextPassword(_m: AuthenticationCleartextPassword, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Asks for a password that is hashed with MD5.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationMD5Password {
  message: "AuthenticationMD5Password";
  /** Bytes to hash with the MD5 of password and user name. */
  salt: Uint8Array;
}

function readAuthenticationMD5Password(r: wire.Reader): AuthenticationMD5Password {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 5]);
  const salt = r.bytes("salt", 4);
  return { message: "AuthenticationMD5Password", salt };
}

function writeAuthenticationMD5Password(w: wire.Writer, m: AuthenticationMD5Password): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 5]);
  w.bytes("salt", m.salt, 4);
  w.close(1, 4);
}

function jsonAuthenticationMD5Password(m: AuthenticationMD5Password, layout: Layout): wire.Json {
  void layout;
  return {
    salt: wire.jsonHex("hex", m.salt),
  };
}

/**
 * Asks for GSSAPI authentication.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationGSS {
  message: "AuthenticationGSS";
}

function readAuthenticationGSS(r: wire.Reader): AuthenticationGSS {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 7]);
  return { message: "AuthenticationGSS" };
}

function writeAuthenticationGSS(w: wire.Writer, _m: AuthenticationGSS): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 7]);
  w.close(1, 4);
}

function jsonAuthenticationGSS(_m: AuthenticationGSS, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Data of GSSAPI or SSPI; the client answers unless its context is complete.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationGSSContinue {
  message: "AuthenticationGSSContinue";
  /** The data. */
  data: Uint8Array;
}

function readAuthenticationGSSContinue(r: wire.Reader): AuthenticationGSSContinue {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 8]);
  const data_ = r.rest("data");
  return { message: "AuthenticationGSSContinue", data: data_ };
}

function writeAuthenticationGSSContinue(w: wire.Writer, m: AuthenticationGSSContinue): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 8]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonAuthenticationGSSContinue(m: AuthenticationGSSContinue, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * Asks for SSPI authentication.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationSSPI {
  message: "AuthenticationSSPI";
}

function readAuthenticationSSPI(r: wire.Reader): AuthenticationSSPI {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 9]);
  return { message: "AuthenticationSSPI" };
}

function writeAuthenticationSSPI(w: wire.Writer, _m: AuthenticationSSPI): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 9]);
  w.close(1, 4);
}

function jsonAuthenticationSSPI(_m: AuthenticationSSPI, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Asks for SASL authentication.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationSASL {
  message: "AuthenticationSASL";
  /** Mechanisms that the server has, in the order of its preference. */
  mechanisms: wire.Text[];
}

function readAuthenticationSASL(r: wire.Reader): AuthenticationSASL {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 10]);
  const mechanisms = r.itemsUntilZero("mechanisms", () => r.text(""));
  return { message: "AuthenticationSASL", mechanisms };
}

function writeAuthenticationSASL(w: wire.Writer, m: AuthenticationSASL): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 10]);
  w.items("mechanisms", m.mechanisms, (item) => w.text("", item), true);
  w.raw([0]);
  w.close(1, 4);
}

function jsonAuthenticationSASL(m: AuthenticationSASL, layout: Layout): wire.Json {
  return {
    mechanisms: m.mechanisms.map((item) => wire.jsonText(item)),
  };
}

/**
 * A challenge of the SASL mechanism.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationSASLContinue {
  message: "AuthenticationSASLContinue";
  /** Content of the challenge, as the mechanism has it. */
  data: Uint8Array;
}

function readAuthenticationSASLContinue(r: wire.Reader): AuthenticationSASLContinue {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 11]);
  const data_ = r.rest("data");
  return { message: "AuthenticationSASLContinue", data: data_ };
}

function writeAuthenticationSASLContinue(w: wire.Writer, m: AuthenticationSASLContinue): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 11]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonAuthenticationSASLContinue(m: AuthenticationSASLContinue, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * The last word of the SASL mechanism.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface AuthenticationSASLFinal {
  message: "AuthenticationSASLFinal";
  /** The mechanism's final data. */
  data: Uint8Array;
}

function readAuthenticationSASLFinal(r: wire.Reader): AuthenticationSASLFinal {
  r.byte("tag", 82);
  r.length("length", 4);
  r.constant("request", [0, 0, 0, 12]);
  const data_ = r.rest("data");
  return { message: "AuthenticationSASLFinal", data: data_ };
}

function writeAuthenticationSASLFinal(w: wire.Writer, m: AuthenticationSASLFinal): void {
  w.raw([82]);
  w.raw([0, 0, 0, 0]);
  w.raw([0, 0, 0, 12]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonAuthenticationSASLFinal(m: AuthenticationSASLFinal, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * The requested password.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface PasswordMessage {
  message: "PasswordMessage";
  /** The password. */
  password: wire.Text;
}

function readPasswordMessage(r: wire.Reader): PasswordMessage {
  r.byte("tag", 112);
  r.length("length", 4);
  const password = r.text("password");
  return { message: "PasswordMessage", password };
}

function writePasswordMessage(w: wire.Writer, m: PasswordMessage): void {
  w.raw([112]);
  w.raw([0, 0, 0, 0]);
  w.text("password", m.password);
  w.close(1, 4);
}

function jsonPasswordMessage(m: PasswordMessage, layout: Layout): wire.Json {
  void layout;
  return {
    password: wire.jsonText(m.password),
  };
}

/**
 * Data of GSSAPI or SSPI for the server.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface GSSResponse {
  message: "GSSResponse";
  /** The data. */
  data: Uint8Array;
}

function readGSSResponse(r: wire.Reader): GSSResponse {
  r.byte("tag", 112);
  r.length("length", 4);
  const data_ = r.rest("data");
  return { message: "GSSResponse", data: data_ };
}

function writeGSSResponse(w: wire.Writer, m: GSSResponse): void {
  w.raw([112]);
  w.raw([0, 0, 0, 0]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonGSSResponse(m: GSSResponse, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * Chooses a SASL mechanism.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface SASLInitialResponse {
  message: "SASLInitialResponse";
  /** Name of the mechanism that the client has chosen. */
  mechanism: wire.Text;
  /** The mechanism's initial data. */
  data: Uint8Array | null;
}

function readSASLInitialResponse(r: wire.Reader): SASLInitialResponse {
  r.byte("tag", 112);
  r.length("length", 4);
  const mechanism = r.text("mechanism");
  const dataLength = r.int32("data_length");
  const data_ = r.nullable("data", dataLength, -1);
  return { message: "SASLInitialResponse", mechanism, data: data_ };
}

function writeSASLInitialResponse(w: wire.Writer, m: SASLInitialResponse): void {
  w.raw([112]);
  w.raw([0, 0, 0, 0]);
  w.text("mechanism", m.mechanism);
  w.int("data_length", 4, m.data?.length ?? -1);
  w.bytes("data", m.data ?? []);
  w.close(1, 4);
}

function jsonSASLInitialResponse(m: SASLInitialResponse, layout: Layout): wire.Json {
  void layout;
  return {
    mechanism: wire.jsonText(m.mechanism),
    data: m.data === null ? null : wire.jsonHex("hex", m.data),
  };
}

/**
 * Answers a challenge of the SASL mechanism.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface SASLResponse {
  message: "SASLResponse";
  /** Content of the answer, as the mechanism has it. */
  data: Uint8Array;
}

function readSASLResponse(r: wire.Reader): SASLResponse {
  r.byte("tag", 112);
  r.length("length", 4);
  const data_ = r.rest("data");
  return { message: "SASLResponse", data: data_ };
}

function writeSASLResponse(w: wire.Writer, m: SASLResponse): void {
  w.raw([112]);
  w.raw([0, 0, 0, 0]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonSASLResponse(m: SASLResponse, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * The server does not know the minor version or some of the requested options.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface NegotiateProtocolVersion {
  message: "NegotiateProtocolVersion";
  /** Newest version of the protocol that the server speaks. */
  newestVersion: number;
  /** Options that the server does not know. */
  options: wire.Text[];
}

function readNegotiateProtocolVersion(r: wire.Reader): NegotiateProtocolVersion {
  r.byte("tag", 118);
  r.length("length", 4);
  const newestVersion = r.uint32("newest_version");
  const optionCount = r.uint32("option_count");
  const options = r.items("options", Number(optionCount), () => r.text(""));
  return { message: "NegotiateProtocolVersion", newestVersion, options };
}

function writeNegotiateProtocolVersion(w: wire.Writer, m: NegotiateProtocolVersion): void {
  w.raw([118]);
  w.raw([0, 0, 0, 0]);
  w.uint("newest_version", 4, m.newestVersion);
  w.uint("option_count", 4, m.options.length);
  w.items("options", m.options, (item) => w.text("", item));
  w.close(1, 4);
}

function jsonNegotiateProtocolVersion(m: NegotiateProtocolVersion, layout: Layout): wire.Json {
  return {
    newest_version: m.newestVersion,
    options: m.options.map((item) => wire.jsonText(item)),
  };
}

/**
 * Tells a setting of the session.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ParameterStatus {
  message: "ParameterStatus";
  /** Name of the setting. */
  name: wire.Text;
  /** Its value. */
  value: wire.Text;
}

function readParameterStatus(r: wire.Reader): ParameterStatus {
  r.byte("tag", 83);
  r.length("length", 4);
  const name = r.text("name");
  const value = r.text("value");
  return { message: "ParameterStatus", name, value };
}

function writeParameterStatus(w: wire.Writer, m: ParameterStatus): void {
  w.raw([83]);
  w.raw([0, 0, 0, 0]);
  w.text("name", m.name);
  w.text("value", m.value);
  w.close(1, 4);
}

function jsonParameterStatus(m: ParameterStatus, layout: Layout): wire.Json {
  void layout;
  return {
    name: wire.jsonText(m.name),
    value: wire.jsonText(m.value),
  };
}

/**
 * The key that a CancelRequest must have.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface BackendKeyData {
  message: "BackendKeyData";
  /** Process ID of the backend. */
  processId: number;
  /** Its secret key: four bytes, up to 256 from version 3.2 of the protocol on. */
  secretKey: Uint8Array;
}

function readBackendKeyData(r: wire.Reader): BackendKeyData {
  r.byte("tag", 75);
  r.length("length", 4);
  const processId = r.uint32("process_id");
  const secretKey = r.rest("secret_key");
  return { message: "BackendKeyData", processId, secretKey };
}

function writeBackendKeyData(w: wire.Writer, m: BackendKeyData): void {
  w.raw([75]);
  w.raw([0, 0, 0, 0]);
  w.uint("process_id", 4, m.processId);
  w.bytes("secret_key", m.secretKey);
  w.close(1, 4);
}

function jsonBackendKeyData(m: BackendKeyData, layout: Layout): wire.Json {
  void layout;
  return {
    process_id: m.processId,
    secret_key: wire.jsonHex("hex", m.secretKey),
  };
}

/**
 * A notification of a channel to which the session listens.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface NotificationResponse {
  message: "NotificationResponse";
  /** Process ID of the backend that has notified. */
  processId: number;
  /** Name of the channel. */
  channel: wire.Text;
  /** What the notification carries, empty for nothing. */
  payload: wire.Text;
}

function readNotificationResponse(r: wire.Reader): NotificationResponse {
  r.byte("tag", 65);
  r.length("length", 4);
  const processId = r.uint32("process_id");
  const channel = r.text("channel");
  const payload = r.text("payload");
  return { message: "NotificationResponse", processId, channel, payload };
}

function writeNotificationResponse(w: wire.Writer, m: NotificationResponse): void {
  w.raw([65]);
  w.raw([0, 0, 0, 0]);
  w.uint("process_id", 4, m.processId);
  w.text("channel", m.channel);
  w.text("payload", m.payload);
  w.close(1, 4);
}

function jsonNotificationResponse(m: NotificationResponse, layout: Layout): wire.Json {
  void layout;
  return {
    process_id: m.processId,
    channel: wire.jsonText(m.channel),
    payload: wire.jsonText(m.payload),
  };
}

/**
 * The server waits for a command.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ReadyForQuery {
  message: "ReadyForQuery";
  /** The transaction status of the session. */
  status: string;
}

/** The values of status of ReadyForQuery. */
export const ReadyForQueryStatus = {
  /** Not in a transaction block. */
  NOT_IN_A_TRANSACTION_BLOCK: "I",
  /** In a transaction block. */
  IN_A_TRANSACTION_BLOCK: "T",
  /** In a failed transaction block. */
  IN_A_FAILED_TRANSACTION_BLOCK: "E",
} as const;

function readReadyForQuery(r: wire.Reader): ReadyForQuery {
  r.byte("tag", 90);
  r.length("length", 4);
  const status = r.letter("status", "ITE");
  return { message: "ReadyForQuery", status };
}

function writeReadyForQuery(w: wire.Writer, m: ReadyForQuery): void {
  w.raw([90]);
  w.raw([0, 0, 0, 0]);
  w.letter("status", m.status, "ITE");
  w.close(1, 4);
}

function jsonReadyForQuery(m: ReadyForQuery, layout: Layout): wire.Json {
  void layout;
  return {
    status: m.status,
  };
}

/**
 * A simple query.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Query {
  message: "Query";
  /** SQL, or a replication command. */
  text: wire.Text;
}

function readQuery(r: wire.Reader): Query {
  r.byte("tag", 81);
  r.length("length", 4);
  const text = r.text("text");
  return { message: "Query", text };
}

function writeQuery(w: wire.Writer, m: Query): void {
  w.raw([81]);
  w.raw([0, 0, 0, 0]);
  w.text("text", m.text);
  w.close(1, 4);
}

function jsonQuery(m: Query, layout: Layout): wire.Json {
  void layout;
  return {
    text: wire.jsonText(m.text),
  };
}

/** One column of the result. */
export interface ResultColumn {
  /** Name of the column. */
  name: wire.Text;
  /** OID of the table that the column belongs to, 0 for none. */
  tableOid: number;
  /** Its number in that table, 0 for none. */
  columnNumber: number;
  /** OID of the type. */
  typeOid: number;
  /** Size of the type, as typlen in pg_type. */
  typeSize: number;
  /** Type modifier, as atttypmod in pg_attribute; -1 for none. */
  typeModifier: number;
  /** Format of the values. */
  format: number;
}

/** The values of format of ResultColumn. */
export const ResultColumnFormat = {
  /** Text. */
  TEXT: 0,
  /** Binary. */
  BINARY: 1,
} as const;

function readResultColumn(r: wire.Reader): ResultColumn {
  const name = r.text("name");
  const tableOid = r.uint32("table_oid");
  const columnNumber = r.int16("column_number");
  const typeOid = r.uint32("type_oid");
  const typeSize = r.int16("type_size");
  const typeModifier = r.int32("type_modifier");
  const format = r.oneOf("format", 2, r.uint16("format"), 0, 1);
  return { name, tableOid, columnNumber, typeOid, typeSize, typeModifier, format };
}

function writeResultColumn(w: wire.Writer, m: ResultColumn): void {
  w.text("name", m.name);
  w.uint("table_oid", 4, m.tableOid);
  w.int("column_number", 2, m.columnNumber);
  w.uint("type_oid", 4, m.typeOid);
  w.int("type_size", 2, m.typeSize);
  w.int("type_modifier", 4, m.typeModifier);
  w.uint("format", 2, w.oneOf("format", m.format, 0, 1));
}

function jsonResultColumn(m: ResultColumn, layout: Layout): wire.Json {
  void layout;
  return {
    name: wire.jsonText(m.name),
    table_oid: m.tableOid,
    column_number: m.columnNumber,
    type_oid: m.typeOid,
    type_size: m.typeSize,
    type_modifier: m.typeModifier,
    format: m.format,
  };
}

/**
 * Describes the rows that follow.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface RowDescription {
  message: "RowDescription";
  /** One column of the result. */
  columns: ResultColumn[];
}

function readRowDescription(r: wire.Reader): RowDescription {
  r.byte("tag", 84);
  r.length("length", 4);
  const columnCount = r.uint16("column_count");
  const columns = r.items("columns", Number(columnCount), () => readResultColumn(r));
  return { message: "RowDescription", columns };
}

function writeRowDescription(w: wire.Writer, m: RowDescription): void {
  w.raw([84]);
  w.raw([0, 0, 0, 0]);
  w.uint("column_count", 2, m.columns.length);
  w.items("columns", m.columns, (item) => writeResultColumn(w, item));
  w.close(1, 4);
}

function jsonRowDescription(m: RowDescription, layout: Layout): wire.Json {
  return {
    columns: m.columns.map((item) => jsonResultColumn(item, layout)),
  };
}

/**
 * One row of a result.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface DataRow {
  message: "DataRow";
  /** One value of the row. */
  row: (Uint8Array | null)[];
}

function readDataRow(r: wire.Reader): DataRow {
  r.byte("tag", 68);
  r.length("length", 4);
  const valueCount = r.uint16("value_count");
  const row = r.items("row", Number(valueCount), () => readDataRowRow(r));
  return { message: "DataRow", row };
}

function writeDataRow(w: wire.Writer, m: DataRow): void {
  w.raw([68]);
  w.raw([0, 0, 0, 0]);
  w.uint("value_count", 2, m.row.length);
  w.items("row", m.row, (item) => writeDataRowRow(w, item));
  w.close(1, 4);
}

function jsonDataRow(m: DataRow, layout: Layout): wire.Json {
  return {
    row: m.row.map((item) => (item === null ? null : wire.jsonHex("hex", item))),
  };
}

function readDataRowRow(r: wire.Reader): Uint8Array | null {
  const valueLength = r.int32("value_length");
  const value = r.nullable("value", valueLength, -1);
  return value;
}

function writeDataRowRow(w: wire.Writer, m: Uint8Array | null): void {
  w.int("value_length", 4, m?.length ?? -1);
  w.bytes("value", m ?? []);
}

/**
 * A command has ended.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface CommandComplete {
  message: "CommandComplete";
  /** The command tag, with the number of rows if it has any. */
  command: wire.Text;
}

function readCommandComplete(r: wire.Reader): CommandComplete {
  r.byte("tag", 67);
  r.length("length", 4);
  const command = r.text("command");
  return { message: "CommandComplete", command };
}

function writeCommandComplete(w: wire.Writer, m: CommandComplete): void {
  w.raw([67]);
  w.raw([0, 0, 0, 0]);
  w.text("command", m.command);
  w.close(1, 4);
}

function jsonCommandComplete(m: CommandComplete, layout: Layout): wire.Json {
  void layout;
  return {
    command: wire.jsonText(m.command),
  };
}

/**
 * The query held no command.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface EmptyQueryResponse {
  message: "EmptyQueryResponse";
}

function readEmptyQueryResponse(r: wire.Reader): EmptyQueryResponse {
  r.byte("tag", 73);
  r.length("length", 4);
  return { message: "EmptyQueryResponse" };
}

function writeEmptyQueryResponse(w: wire.Writer, _m: EmptyQueryResponse): void {
  w.raw([73]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonEmptyQueryResponse(_m: EmptyQueryResponse, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * An error: the command has failed, or the connection ends.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ErrorResponse {
  message: "ErrorResponse";
  /** The details of the message. */
  details: NoticeField[];
}

function readErrorResponse(r: wire.Reader): ErrorResponse {
  r.byte("tag", 69);
  r.length("length", 4);
  const details = r.itemsUntilZero("details", () => readNoticeField(r));
  return { message: "ErrorResponse", details };
}

function writeErrorResponse(w: wire.Writer, m: ErrorResponse): void {
  w.raw([69]);
  w.raw([0, 0, 0, 0]);
  w.items("details", m.details, (item) => writeNoticeField(w, item), true);
  w.raw([0]);
  w.close(1, 4);
}

function jsonErrorResponse(m: ErrorResponse, layout: Layout): wire.Json {
  return {
    details: m.details.map((item) => jsonNoticeField(item, layout)),
  };
}

/**
 * A warning or another notice.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface NoticeResponse {
  message: "NoticeResponse";
  /** The details of the message. */
  details: NoticeField[];
}

function readNoticeResponse(r: wire.Reader): NoticeResponse {
  r.byte("tag", 78);
  r.length("length", 4);
  const details = r.itemsUntilZero("details", () => readNoticeField(r));
  return { message: "NoticeResponse", details };
}

function writeNoticeResponse(w: wire.Writer, m: NoticeResponse): void {
  w.raw([78]);
  w.raw([0, 0, 0, 0]);
  w.items("details", m.details, (item) => writeNoticeField(w, item), true);
  w.raw([0]);
  w.close(1, 4);
}

function jsonNoticeResponse(m: NoticeResponse, layout: Layout): wire.Json {
  return {
    details: m.details.map((item) => jsonNoticeField(item, layout)),
  };
}

/**
 * The server is ready for the data of a COPY FROM STDIN.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface CopyInResponse {
  message: "CopyInResponse";
  /** Format of the copy. */
  format: number;
  /** Format of each column. */
  columnFormats: number[];
}

/** The values of format of CopyInResponse. */
export const CopyInResponseFormat = {
  /** Text. */
  TEXT: 0,
  /** Binary. */
  BINARY: 1,
} as const;

function readCopyInResponse(r: wire.Reader): CopyInResponse {
  r.byte("tag", 71);
  r.length("length", 4);
  const format = r.oneOf("format", 1, r.uint8("format"), 0, 1);
  const columnCount = r.uint16("column_count");
  const columnFormats = r.items("column_formats", Number(columnCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  return { message: "CopyInResponse", format, columnFormats };
}

function writeCopyInResponse(w: wire.Writer, m: CopyInResponse): void {
  w.raw([71]);
  w.raw([0, 0, 0, 0]);
  w.uint("format", 1, w.oneOf("format", m.format, 0, 1));
  w.uint("column_count", 2, m.columnFormats.length);
  w.items("column_formats", m.columnFormats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.close(1, 4);
}

function jsonCopyInResponse(m: CopyInResponse, layout: Layout): wire.Json {
  return {
    format: m.format,
    column_formats: m.columnFormats.map((item) => item),
  };
}

/**
 * The data of a COPY TO STDOUT follow.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface CopyOutResponse {
  message: "CopyOutResponse";
  /** Format of the copy. */
  format: number;
  /** Format of each column. */
  columnFormats: number[];
}

/** The values of format of CopyOutResponse. */
export const CopyOutResponseFormat = {
  /** Text. */
  TEXT: 0,
  /** Binary. */
  BINARY: 1,
} as const;

function readCopyOutResponse(r: wire.Reader): CopyOutResponse {
  r.byte("tag", 72);
  r.length("length", 4);
  const format = r.oneOf("format", 1, r.uint8("format"), 0, 1);
  const columnCount = r.uint16("column_count");
  const columnFormats = r.items("column_formats", Number(columnCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  return { message: "CopyOutResponse", format, columnFormats };
}

function writeCopyOutResponse(w: wire.Writer, m: CopyOutResponse): void {
  w.raw([72]);
  w.raw([0, 0, 0, 0]);
  w.uint("format", 1, w.oneOf("format", m.format, 0, 1));
  w.uint("column_count", 2, m.columnFormats.length);
  w.items("column_formats", m.columnFormats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.close(1, 4);
}

function jsonCopyOutResponse(m: CopyOutResponse, layout: Layout): wire.Json {
  return {
    format: m.format,
    column_formats: m.columnFormats.map((item) => item),
  };
}

/**
 * The stream begins: both may send CopyData.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface CopyBothResponse {
  message: "CopyBothResponse";
  /** Format of the copy. */
  format: number;
  /** Format of each column. */
  columnFormats: number[];
}

/** The values of format of CopyBothResponse. */
export const CopyBothResponseFormat = {
  /** Text. */
  TEXT: 0,
  /** Binary. */
  BINARY: 1,
} as const;

function readCopyBothResponse(r: wire.Reader): CopyBothResponse {
  r.byte("tag", 87);
  r.length("length", 4);
  const format = r.oneOf("format", 1, r.uint8("format"), 0, 1);
  const columnCount = r.uint16("column_count");
  const columnFormats = r.items("column_formats", Number(columnCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  return { message: "CopyBothResponse", format, columnFormats };
}

function writeCopyBothResponse(w: wire.Writer, m: CopyBothResponse): void {
  w.raw([87]);
  w.raw([0, 0, 0, 0]);
  w.uint("format", 1, w.oneOf("format", m.format, 0, 1));
  w.uint("column_count", 2, m.columnFormats.length);
  w.items("column_formats", m.columnFormats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.close(1, 4);
}

function jsonCopyBothResponse(m: CopyBothResponse, layout: Layout): wire.Json {
  return {
    format: m.format,
    column_formats: m.columnFormats.map((item) => item),
  };
}

/**
 * A piece of a copy: in replication one frame of the envelope, of a COPY TO one row.
 *
 * PostgreSQL 10 and newer.
 */
export interface CopyData {
  message: "CopyData";
  /** The frame or the row, to the end. */
  data: Uint8Array;
}

function readCopyData(r: wire.Reader): CopyData {
  r.byte("tag", 100);
  r.length("length", 4);
  const data_ = r.rest("data");
  return { message: "CopyData", data: data_ };
}

function writeCopyData(w: wire.Writer, m: CopyData): void {
  w.raw([100]);
  w.raw([0, 0, 0, 0]);
  w.bytes("data", m.data);
  w.close(1, 4);
}

function jsonCopyData(m: CopyData, layout: Layout): wire.Json {
  void layout;
  return {
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * The client sends no more CopyData.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface ClientCopyDone {
  message: "ClientCopyDone";
}

function readClientCopyDone(r: wire.Reader): ClientCopyDone {
  r.byte("tag", 99);
  r.length("length", 4);
  return { message: "ClientCopyDone" };
}

function writeClientCopyDone(w: wire.Writer, _m: ClientCopyDone): void {
  w.raw([99]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonClientCopyDone(_m: ClientCopyDone, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * The server sends no more CopyData.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ServerCopyDone {
  message: "ServerCopyDone";
}

function readServerCopyDone(r: wire.Reader): ServerCopyDone {
  r.byte("tag", 99);
  r.length("length", 4);
  return { message: "ServerCopyDone" };
}

function writeServerCopyDone(w: wire.Writer, _m: ServerCopyDone): void {
  w.raw([99]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonServerCopyDone(_m: ServerCopyDone, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * The client cannot continue a copy.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface CopyFail {
  message: "CopyFail";
  /** What failed. */
  reason: wire.Text;
}

function readCopyFail(r: wire.Reader): CopyFail {
  r.byte("tag", 102);
  r.length("length", 4);
  const reason = r.text("reason");
  return { message: "CopyFail", reason };
}

function writeCopyFail(w: wire.Writer, m: CopyFail): void {
  w.raw([102]);
  w.raw([0, 0, 0, 0]);
  w.text("reason", m.reason);
  w.close(1, 4);
}

function jsonCopyFail(m: CopyFail, layout: Layout): wire.Json {
  void layout;
  return {
    reason: wire.jsonText(m.reason),
  };
}

/**
 * Prepares a statement.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Parse {
  message: "Parse";
  /** Name of the statement, empty for the one without a name. */
  statement: wire.Text;
  /** SQL. */
  text: wire.Text;
  /** Types of the first parameters. */
  types: number[];
}

function readParse(r: wire.Reader): Parse {
  r.byte("tag", 80);
  r.length("length", 4);
  const statement = r.text("statement");
  const text = r.text("text");
  const typeCount = r.uint16("type_count");
  const types = r.items("types", Number(typeCount), () => r.uint32(""));
  return { message: "Parse", statement, text, types };
}

function writeParse(w: wire.Writer, m: Parse): void {
  w.raw([80]);
  w.raw([0, 0, 0, 0]);
  w.text("statement", m.statement);
  w.text("text", m.text);
  w.uint("type_count", 2, m.types.length);
  w.items("types", m.types, (item) => w.uint("", 4, item));
  w.close(1, 4);
}

function jsonParse(m: Parse, layout: Layout): wire.Json {
  return {
    statement: wire.jsonText(m.statement),
    text: wire.jsonText(m.text),
    types: m.types.map((item) => item),
  };
}

/**
 * Gives a statement its parameters.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Bind {
  message: "Bind";
  /** Name of the portal, empty for the one without a name. */
  portal: wire.Text;
  /** Name of the statement, empty for the one without a name. */
  statement: wire.Text;
  /** Formats of the parameters. */
  formats: number[];
  /** The parameters. */
  parameters: (Uint8Array | null)[];
  /** Formats of the columns of the result. */
  resultFormats: number[];
}

function readBind(r: wire.Reader): Bind {
  r.byte("tag", 66);
  r.length("length", 4);
  const portal = r.text("portal");
  const statement = r.text("statement");
  const formatCount = r.uint16("format_count");
  const formats = r.items("formats", Number(formatCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  const valueCount = r.uint16("value_count");
  const parameters = r.items("parameters", Number(valueCount), () => readBindParameters(r));
  const resultCount = r.uint16("result_count");
  const resultFormats = r.items("result_formats", Number(resultCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  return { message: "Bind", portal, statement, formats, parameters, resultFormats };
}

function writeBind(w: wire.Writer, m: Bind): void {
  w.raw([66]);
  w.raw([0, 0, 0, 0]);
  w.text("portal", m.portal);
  w.text("statement", m.statement);
  w.uint("format_count", 2, m.formats.length);
  w.items("formats", m.formats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.uint("value_count", 2, m.parameters.length);
  w.items("parameters", m.parameters, (item) => writeBindParameters(w, item));
  w.uint("result_count", 2, m.resultFormats.length);
  w.items("result_formats", m.resultFormats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.close(1, 4);
}

function jsonBind(m: Bind, layout: Layout): wire.Json {
  return {
    portal: wire.jsonText(m.portal),
    statement: wire.jsonText(m.statement),
    formats: m.formats.map((item) => item),
    parameters: m.parameters.map((item) => (item === null ? null : wire.jsonHex("hex", item))),
    result_formats: m.resultFormats.map((item) => item),
  };
}

function readBindParameters(r: wire.Reader): Uint8Array | null {
  const valueLength = r.int32("value_length");
  const value = r.nullable("value", valueLength, -1);
  return value;
}

function writeBindParameters(w: wire.Writer, m: Uint8Array | null): void {
  w.int("value_length", 4, m?.length ?? -1);
  w.bytes("value", m ?? []);
}

/**
 * Requests the description of a statement or a portal.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Describe {
  message: "Describe";
  /** The kind of object. */
  subject: string;
  /** Its name. */
  name: wire.Text;
}

/** The values of subject of Describe. */
export const DescribeSubject = {
  /** Statement. */
  STATEMENT: "S",
  /** Portal. */
  PORTAL: "P",
} as const;

function readDescribe(r: wire.Reader): Describe {
  r.byte("tag", 68);
  r.length("length", 4);
  const subject = r.letter("subject", "SP");
  const name = r.text("name");
  return { message: "Describe", subject, name };
}

function writeDescribe(w: wire.Writer, m: Describe): void {
  w.raw([68]);
  w.raw([0, 0, 0, 0]);
  w.letter("subject", m.subject, "SP");
  w.text("name", m.name);
  w.close(1, 4);
}

function jsonDescribe(m: Describe, layout: Layout): wire.Json {
  void layout;
  return {
    subject: m.subject,
    name: wire.jsonText(m.name),
  };
}

/**
 * Runs a portal.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Execute {
  message: "Execute";
  /** Name of the portal, empty for the one without a name. */
  portal: wire.Text;
  /** Number of rows to return at most, 0 for all. */
  rowLimit: number;
}

function readExecute(r: wire.Reader): Execute {
  r.byte("tag", 69);
  r.length("length", 4);
  const portal = r.text("portal");
  const rowLimit = r.uint32("row_limit");
  return { message: "Execute", portal, rowLimit };
}

function writeExecute(w: wire.Writer, m: Execute): void {
  w.raw([69]);
  w.raw([0, 0, 0, 0]);
  w.text("portal", m.portal);
  w.uint("row_limit", 4, m.rowLimit);
  w.close(1, 4);
}

function jsonExecute(m: Execute, layout: Layout): wire.Json {
  void layout;
  return {
    portal: wire.jsonText(m.portal),
    row_limit: m.rowLimit,
  };
}

/**
 * Closes a statement or a portal.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Close {
  message: "Close";
  /** What is closed. */
  subject: string;
  /** Its name. */
  name: wire.Text;
}

/** The values of subject of Close. */
export const CloseSubject = {
  /** Statement. */
  STATEMENT: "S",
  /** Portal. */
  PORTAL: "P",
} as const;

function readClose(r: wire.Reader): Close {
  r.byte("tag", 67);
  r.length("length", 4);
  const subject = r.letter("subject", "SP");
  const name = r.text("name");
  return { message: "Close", subject, name };
}

function writeClose(w: wire.Writer, m: Close): void {
  w.raw([67]);
  w.raw([0, 0, 0, 0]);
  w.letter("subject", m.subject, "SP");
  w.text("name", m.name);
  w.close(1, 4);
}

function jsonClose(m: Close, layout: Layout): wire.Json {
  void layout;
  return {
    subject: m.subject,
    name: wire.jsonText(m.name),
  };
}

/**
 * Asks for the answers that there are.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Flush {
  message: "Flush";
}

function readFlush(r: wire.Reader): Flush {
  r.byte("tag", 72);
  r.length("length", 4);
  return { message: "Flush" };
}

function writeFlush(w: wire.Writer, _m: Flush): void {
  w.raw([72]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonFlush(_m: Flush, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Ends a series of messages of the extended query protocol.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Sync {
  message: "Sync";
}

function readSync(r: wire.Reader): Sync {
  r.byte("tag", 83);
  r.length("length", 4);
  return { message: "Sync" };
}

function writeSync(w: wire.Writer, _m: Sync): void {
  w.raw([83]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonSync(_m: Sync, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * A statement has been prepared.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ParseComplete {
  message: "ParseComplete";
}

function readParseComplete(r: wire.Reader): ParseComplete {
  r.byte("tag", 49);
  r.length("length", 4);
  return { message: "ParseComplete" };
}

function writeParseComplete(w: wire.Writer, _m: ParseComplete): void {
  w.raw([49]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonParseComplete(_m: ParseComplete, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * A portal has been created.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface BindComplete {
  message: "BindComplete";
}

function readBindComplete(r: wire.Reader): BindComplete {
  r.byte("tag", 50);
  r.length("length", 4);
  return { message: "BindComplete" };
}

function writeBindComplete(w: wire.Writer, _m: BindComplete): void {
  w.raw([50]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonBindComplete(_m: BindComplete, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * A statement or a portal has been closed, or did not exist.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface CloseComplete {
  message: "CloseComplete";
}

function readCloseComplete(r: wire.Reader): CloseComplete {
  r.byte("tag", 51);
  r.length("length", 4);
  return { message: "CloseComplete" };
}

function writeCloseComplete(w: wire.Writer, _m: CloseComplete): void {
  w.raw([51]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonCloseComplete(_m: CloseComplete, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Describes the parameters of a statement.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface ParameterDescription {
  message: "ParameterDescription";
  /** Types of the parameters. */
  types: number[];
}

function readParameterDescription(r: wire.Reader): ParameterDescription {
  r.byte("tag", 116);
  r.length("length", 4);
  const typeCount = r.uint16("type_count");
  const types = r.items("types", Number(typeCount), () => r.uint32(""));
  return { message: "ParameterDescription", types };
}

function writeParameterDescription(w: wire.Writer, m: ParameterDescription): void {
  w.raw([116]);
  w.raw([0, 0, 0, 0]);
  w.uint("type_count", 2, m.types.length);
  w.items("types", m.types, (item) => w.uint("", 4, item));
  w.close(1, 4);
}

function jsonParameterDescription(m: ParameterDescription, layout: Layout): wire.Json {
  return {
    types: m.types.map((item) => item),
  };
}

/**
 * The statement or the portal returns no rows.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface NoData {
  message: "NoData";
}

function readNoData(r: wire.Reader): NoData {
  r.byte("tag", 110);
  r.length("length", 4);
  return { message: "NoData" };
}

function writeNoData(w: wire.Writer, _m: NoData): void {
  w.raw([110]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonNoData(_m: NoData, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * An Execute has returned as many rows as it requested; the portal may have more.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface PortalSuspended {
  message: "PortalSuspended";
}

function readPortalSuspended(r: wire.Reader): PortalSuspended {
  r.byte("tag", 115);
  r.length("length", 4);
  return { message: "PortalSuspended" };
}

function writePortalSuspended(w: wire.Writer, _m: PortalSuspended): void {
  w.raw([115]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonPortalSuspended(_m: PortalSuspended, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Calls a function by its OID.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface FunctionCall {
  message: "FunctionCall";
  /** OID of the function. */
  functionOid: number;
  /** Formats of the arguments. */
  formats: number[];
  /** The arguments. */
  arguments: (Uint8Array | null)[];
  /** Format of the result. */
  resultFormat: number;
}

/** The values of resultFormat of FunctionCall. */
export const FunctionCallResultFormat = {
  /** Text. */
  TEXT: 0,
  /** Binary. */
  BINARY: 1,
} as const;

function readFunctionCall(r: wire.Reader): FunctionCall {
  r.byte("tag", 70);
  r.length("length", 4);
  const functionOid = r.uint32("function_oid");
  const formatCount = r.uint16("format_count");
  const formats = r.items("formats", Number(formatCount), () => r.oneOf("", 2, r.uint16(""), 0, 1));
  const argumentCount = r.uint16("argument_count");
  const arguments_ = r.items("arguments", Number(argumentCount), () => readFunctionCallArguments(r));
  const resultFormat = r.oneOf("result_format", 2, r.uint16("result_format"), 0, 1);
  return { message: "FunctionCall", functionOid, formats, arguments: arguments_, resultFormat };
}

function writeFunctionCall(w: wire.Writer, m: FunctionCall): void {
  w.raw([70]);
  w.raw([0, 0, 0, 0]);
  w.uint("function_oid", 4, m.functionOid);
  w.uint("format_count", 2, m.formats.length);
  w.items("formats", m.formats, (item) => w.uint("", 2, w.oneOf("", item, 0, 1)));
  w.uint("argument_count", 2, m.arguments.length);
  w.items("arguments", m.arguments, (item) => writeFunctionCallArguments(w, item));
  w.uint("result_format", 2, w.oneOf("result_format", m.resultFormat, 0, 1));
  w.close(1, 4);
}

function jsonFunctionCall(m: FunctionCall, layout: Layout): wire.Json {
  return {
    function_oid: m.functionOid,
    formats: m.formats.map((item) => item),
    arguments: m.arguments.map((item) => (item === null ? null : wire.jsonHex("hex", item))),
    result_format: m.resultFormat,
  };
}

function readFunctionCallArguments(r: wire.Reader): Uint8Array | null {
  const argumentLength = r.int32("argument_length");
  const argument = r.nullable("argument", argumentLength, -1);
  return argument;
}

function writeFunctionCallArguments(w: wire.Writer, m: Uint8Array | null): void {
  w.int("argument_length", 4, m?.length ?? -1);
  w.bytes("argument", m ?? []);
}

/**
 * The result of a function call.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface FunctionCallResponse {
  message: "FunctionCallResponse";
  /** The result in the requested format. */
  result: Uint8Array | null;
}

function readFunctionCallResponse(r: wire.Reader): FunctionCallResponse {
  r.byte("tag", 86);
  r.length("length", 4);
  const resultLength = r.int32("result_length");
  const result = r.nullable("result", resultLength, -1);
  return { message: "FunctionCallResponse", result };
}

function writeFunctionCallResponse(w: wire.Writer, m: FunctionCallResponse): void {
  w.raw([86]);
  w.raw([0, 0, 0, 0]);
  w.int("result_length", 4, m.result?.length ?? -1);
  w.bytes("result", m.result ?? []);
  w.close(1, 4);
}

function jsonFunctionCallResponse(m: FunctionCallResponse, layout: Layout): wire.Json {
  void layout;
  return {
    result: m.result === null ? null : wire.jsonHex("hex", m.result),
  };
}

/**
 * The client ends the connection.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface Terminate {
  message: "Terminate";
}

function readTerminate(r: wire.Reader): Terminate {
  r.byte("tag", 88);
  r.length("length", 4);
  return { message: "Terminate" };
}

function writeTerminate(w: wire.Writer, _m: Terminate): void {
  w.raw([88]);
  w.raw([0, 0, 0, 0]);
  w.close(1, 4);
}

function jsonTerminate(_m: Terminate, layout: Layout): wire.Json {
  void layout;
  return {};
}

/** Any of the messages. */
export type ConnectionMessage =
  | StartupMessage
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
  | Terminate;

/** The names of the messages, in the order of the specification. */
export const NAMES: readonly string[] = [
  "StartupMessage",
  "SSLRequest",
  "GSSENCRequest",
  "CancelRequest",
  "EncryptionAccepted",
  "GSSEncryptionAccepted",
  "EncryptionRefused",
  "AuthenticationOk",
  "AuthenticationKerberosV5",
  "AuthenticationCleartextPassword",
  "AuthenticationMD5Password",
  "AuthenticationGSS",
  "AuthenticationGSSContinue",
  "AuthenticationSSPI",
  "AuthenticationSASL",
  "AuthenticationSASLContinue",
  "AuthenticationSASLFinal",
  "PasswordMessage",
  "GSSResponse",
  "SASLInitialResponse",
  "SASLResponse",
  "NegotiateProtocolVersion",
  "ParameterStatus",
  "BackendKeyData",
  "NotificationResponse",
  "ReadyForQuery",
  "Query",
  "RowDescription",
  "DataRow",
  "CommandComplete",
  "EmptyQueryResponse",
  "ErrorResponse",
  "NoticeResponse",
  "CopyInResponse",
  "CopyOutResponse",
  "CopyBothResponse",
  "CopyData",
  "ClientCopyDone",
  "ServerCopyDone",
  "CopyFail",
  "Parse",
  "Bind",
  "Describe",
  "Execute",
  "Close",
  "Flush",
  "Sync",
  "ParseComplete",
  "BindComplete",
  "CloseComplete",
  "ParameterDescription",
  "NoData",
  "PortalSuspended",
  "FunctionCall",
  "FunctionCallResponse",
  "Terminate",
];

const INDEXES = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Record<
  ConnectionMessage["message"],
  number
>;

/** Return a message as JSON, as the golden vectors have it; numbers of 64 bits are bigint. */
export function toJson(message: ConnectionMessage, layout: Layout): wire.Json {
  return { message: message.message, ...(jsonFields(message, layout) as object) };
}

function jsonFields(message: ConnectionMessage, layout: Layout): wire.Json {
  switch (message.message) {
    case "StartupMessage":
      return jsonStartupMessage(message, layout);
    case "SSLRequest":
      return jsonSSLRequest(message, layout);
    case "GSSENCRequest":
      return jsonGSSENCRequest(message, layout);
    case "CancelRequest":
      return jsonCancelRequest(message, layout);
    case "EncryptionAccepted":
      return jsonEncryptionAccepted(message, layout);
    case "GSSEncryptionAccepted":
      return jsonGSSEncryptionAccepted(message, layout);
    case "EncryptionRefused":
      return jsonEncryptionRefused(message, layout);
    case "AuthenticationOk":
      return jsonAuthenticationOk(message, layout);
    case "AuthenticationKerberosV5":
      return jsonAuthenticationKerberosV5(message, layout);
    case "AuthenticationCleartextPassword":
      return jsonAuthenticationCleartextPassword(message, layout);
    case "AuthenticationMD5Password":
      return jsonAuthenticationMD5Password(message, layout);
    case "AuthenticationGSS":
      return jsonAuthenticationGSS(message, layout);
    case "AuthenticationGSSContinue":
      return jsonAuthenticationGSSContinue(message, layout);
    case "AuthenticationSSPI":
      return jsonAuthenticationSSPI(message, layout);
    case "AuthenticationSASL":
      return jsonAuthenticationSASL(message, layout);
    case "AuthenticationSASLContinue":
      return jsonAuthenticationSASLContinue(message, layout);
    case "AuthenticationSASLFinal":
      return jsonAuthenticationSASLFinal(message, layout);
    case "PasswordMessage":
      return jsonPasswordMessage(message, layout);
    case "GSSResponse":
      return jsonGSSResponse(message, layout);
    case "SASLInitialResponse":
      return jsonSASLInitialResponse(message, layout);
    case "SASLResponse":
      return jsonSASLResponse(message, layout);
    case "NegotiateProtocolVersion":
      return jsonNegotiateProtocolVersion(message, layout);
    case "ParameterStatus":
      return jsonParameterStatus(message, layout);
    case "BackendKeyData":
      return jsonBackendKeyData(message, layout);
    case "NotificationResponse":
      return jsonNotificationResponse(message, layout);
    case "ReadyForQuery":
      return jsonReadyForQuery(message, layout);
    case "Query":
      return jsonQuery(message, layout);
    case "RowDescription":
      return jsonRowDescription(message, layout);
    case "DataRow":
      return jsonDataRow(message, layout);
    case "CommandComplete":
      return jsonCommandComplete(message, layout);
    case "EmptyQueryResponse":
      return jsonEmptyQueryResponse(message, layout);
    case "ErrorResponse":
      return jsonErrorResponse(message, layout);
    case "NoticeResponse":
      return jsonNoticeResponse(message, layout);
    case "CopyInResponse":
      return jsonCopyInResponse(message, layout);
    case "CopyOutResponse":
      return jsonCopyOutResponse(message, layout);
    case "CopyBothResponse":
      return jsonCopyBothResponse(message, layout);
    case "CopyData":
      return jsonCopyData(message, layout);
    case "ClientCopyDone":
      return jsonClientCopyDone(message, layout);
    case "ServerCopyDone":
      return jsonServerCopyDone(message, layout);
    case "CopyFail":
      return jsonCopyFail(message, layout);
    case "Parse":
      return jsonParse(message, layout);
    case "Bind":
      return jsonBind(message, layout);
    case "Describe":
      return jsonDescribe(message, layout);
    case "Execute":
      return jsonExecute(message, layout);
    case "Close":
      return jsonClose(message, layout);
    case "Flush":
      return jsonFlush(message, layout);
    case "Sync":
      return jsonSync(message, layout);
    case "ParseComplete":
      return jsonParseComplete(message, layout);
    case "BindComplete":
      return jsonBindComplete(message, layout);
    case "CloseComplete":
      return jsonCloseComplete(message, layout);
    case "ParameterDescription":
      return jsonParameterDescription(message, layout);
    case "NoData":
      return jsonNoData(message, layout);
    case "PortalSuspended":
      return jsonPortalSuspended(message, layout);
    case "FunctionCall":
      return jsonFunctionCall(message, layout);
    case "FunctionCallResponse":
      return jsonFunctionCallResponse(message, layout);
    case "Terminate":
      return jsonTerminate(message, layout);
  }
}

/** Build a message. */
export function build(message: ConnectionMessage): Uint8Array {
  const w = new wire.Writer(message.message);
  switch (message.message) {
    case "StartupMessage":
      writeStartupMessage(w, message);
      break;
    case "SSLRequest":
      writeSSLRequest(w, message);
      break;
    case "GSSENCRequest":
      writeGSSENCRequest(w, message);
      break;
    case "CancelRequest":
      writeCancelRequest(w, message);
      break;
    case "EncryptionAccepted":
      writeEncryptionAccepted(w, message);
      break;
    case "GSSEncryptionAccepted":
      writeGSSEncryptionAccepted(w, message);
      break;
    case "EncryptionRefused":
      writeEncryptionRefused(w, message);
      break;
    case "AuthenticationOk":
      writeAuthenticationOk(w, message);
      break;
    case "AuthenticationKerberosV5":
      writeAuthenticationKerberosV5(w, message);
      break;
    case "AuthenticationCleartextPassword":
      writeAuthenticationCleartextPassword(w, message);
      break;
    case "AuthenticationMD5Password":
      writeAuthenticationMD5Password(w, message);
      break;
    case "AuthenticationGSS":
      writeAuthenticationGSS(w, message);
      break;
    case "AuthenticationGSSContinue":
      writeAuthenticationGSSContinue(w, message);
      break;
    case "AuthenticationSSPI":
      writeAuthenticationSSPI(w, message);
      break;
    case "AuthenticationSASL":
      writeAuthenticationSASL(w, message);
      break;
    case "AuthenticationSASLContinue":
      writeAuthenticationSASLContinue(w, message);
      break;
    case "AuthenticationSASLFinal":
      writeAuthenticationSASLFinal(w, message);
      break;
    case "PasswordMessage":
      writePasswordMessage(w, message);
      break;
    case "GSSResponse":
      writeGSSResponse(w, message);
      break;
    case "SASLInitialResponse":
      writeSASLInitialResponse(w, message);
      break;
    case "SASLResponse":
      writeSASLResponse(w, message);
      break;
    case "NegotiateProtocolVersion":
      writeNegotiateProtocolVersion(w, message);
      break;
    case "ParameterStatus":
      writeParameterStatus(w, message);
      break;
    case "BackendKeyData":
      writeBackendKeyData(w, message);
      break;
    case "NotificationResponse":
      writeNotificationResponse(w, message);
      break;
    case "ReadyForQuery":
      writeReadyForQuery(w, message);
      break;
    case "Query":
      writeQuery(w, message);
      break;
    case "RowDescription":
      writeRowDescription(w, message);
      break;
    case "DataRow":
      writeDataRow(w, message);
      break;
    case "CommandComplete":
      writeCommandComplete(w, message);
      break;
    case "EmptyQueryResponse":
      writeEmptyQueryResponse(w, message);
      break;
    case "ErrorResponse":
      writeErrorResponse(w, message);
      break;
    case "NoticeResponse":
      writeNoticeResponse(w, message);
      break;
    case "CopyInResponse":
      writeCopyInResponse(w, message);
      break;
    case "CopyOutResponse":
      writeCopyOutResponse(w, message);
      break;
    case "CopyBothResponse":
      writeCopyBothResponse(w, message);
      break;
    case "CopyData":
      writeCopyData(w, message);
      break;
    case "ClientCopyDone":
      writeClientCopyDone(w, message);
      break;
    case "ServerCopyDone":
      writeServerCopyDone(w, message);
      break;
    case "CopyFail":
      writeCopyFail(w, message);
      break;
    case "Parse":
      writeParse(w, message);
      break;
    case "Bind":
      writeBind(w, message);
      break;
    case "Describe":
      writeDescribe(w, message);
      break;
    case "Execute":
      writeExecute(w, message);
      break;
    case "Close":
      writeClose(w, message);
      break;
    case "Flush":
      writeFlush(w, message);
      break;
    case "Sync":
      writeSync(w, message);
      break;
    case "ParseComplete":
      writeParseComplete(w, message);
      break;
    case "BindComplete":
      writeBindComplete(w, message);
      break;
    case "CloseComplete":
      writeCloseComplete(w, message);
      break;
    case "ParameterDescription":
      writeParameterDescription(w, message);
      break;
    case "NoData":
      writeNoData(w, message);
      break;
    case "PortalSuspended":
      writePortalSuspended(w, message);
      break;
    case "FunctionCall":
      writeFunctionCall(w, message);
      break;
    case "FunctionCallResponse":
      writeFunctionCallResponse(w, message);
      break;
    case "Terminate":
      writeTerminate(w, message);
      break;
    default:
      w.possible("", false);
  }
  return w.finish();
}

/** Who sends a message. */
export type Sender = "server" | "client";

/** The states of a connection, the initial one first. */
export const STATES = [
  "startup",
  "encryption",
  "authentication",
  "password",
  "gss",
  "sasl",
  "sasl_response",
  "starting",
  "idle",
  "query",
  "extended",
  "copy_in",
  "copy_out",
  "copy_both",
  "copy_client_done",
  "copy_server_done",
  "closed",
] as const;

/** A state of a connection. */
export type State = (typeof STATES)[number];

/** The messages that each sender can send in a state, each with the state that follows. */
// prettier-ignore
const FOLLOWING: Record<Sender, readonly (readonly (readonly [number, number])[])[]> = {
  server: [
    [[31, 0]], // startup
    [[4, 0], [5, 0], [6, 0], [31, 1]], // encryption
    [[7, 7], [8, 2], [9, 3], [10, 3], [11, 4], [12, 4], [13, 4], [14, 5], [15, 6], [16, 2], [21, 2], [31, 2], [32, 2]], // authentication
    [[31, 3]], // password
    [[7, 7], [8, 4], [9, 3], [10, 3], [11, 4], [12, 4], [13, 4], [14, 5], [31, 4], [32, 4]], // gss
    [[31, 5]], // sasl
    [[31, 6]], // sasl_response
    [[22, 7], [23, 7], [24, 7], [25, 8], [31, 7], [32, 7]], // starting
    [[22, 8], [24, 8], [25, 8], [27, 8], [28, 8], [29, 8], [30, 8], [31, 8], [32, 8], [33, 11], [34, 12], [35, 13], [47, 8], [48, 8], [49, 8], [50, 8], [51, 8], [52, 8], [54, 8]], // idle
    [[22, 9], [24, 9], [25, 8], [27, 9], [28, 9], [29, 9], [30, 9], [31, 9], [32, 9], [33, 11], [34, 12], [35, 13], [36, 9], [38, 15], [47, 9], [48, 9], [49, 9], [50, 9], [51, 9], [52, 9], [54, 9]], // query
    [[22, 10], [24, 10], [25, 8], [27, 10], [28, 10], [29, 10], [30, 10], [31, 10], [32, 10], [33, 11], [34, 12], [36, 10], [38, 15], [47, 10], [48, 10], [49, 10], [50, 10], [51, 10], [52, 10], [54, 10]], // extended
    [[22, 11], [24, 11], [25, 8], [27, 11], [28, 11], [29, 11], [30, 11], [31, 11], [32, 11], [33, 11], [34, 12], [36, 11], [47, 11], [48, 11], [49, 11], [50, 11], [51, 11], [52, 11], [54, 11]], // copy_in
    [[22, 12], [24, 12], [25, 8], [31, 12], [32, 12], [36, 12], [38, 15]], // copy_out
    [[22, 13], [24, 13], [25, 8], [29, 13], [31, 13], [32, 13], [36, 13], [38, 15]], // copy_both
    [[22, 14], [24, 14], [25, 8], [27, 14], [28, 14], [29, 14], [30, 14], [31, 14], [32, 14], [33, 11], [34, 12], [36, 14], [38, 15], [47, 14], [48, 14], [49, 14], [50, 14], [51, 14], [52, 14], [54, 14]], // copy_client_done
    [[22, 15], [24, 15], [25, 8], [27, 15], [28, 15], [29, 15], [30, 15], [31, 15], [32, 15], [33, 11], [34, 12], [36, 15], [47, 15], [48, 15], [49, 15], [50, 15], [51, 15], [52, 15], [54, 15]], // copy_server_done
    [], // closed
  ],
  client: [
    [[0, 2], [1, 1], [2, 1], [3, 16]], // startup
    [], // encryption
    [], // authentication
    [[17, 2]], // password
    [[18, 2]], // gss
    [[19, 2]], // sasl
    [[20, 2]], // sasl_response
    [], // starting
    [[26, 9], [36, 8], [37, 8], [39, 8], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 8], [46, 8], [53, 9], [55, 16]], // idle
    [[26, 9], [36, 9], [37, 9], [39, 9], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 9], [46, 9], [53, 9], [55, 16]], // query
    [[26, 9], [36, 10], [37, 10], [39, 10], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 10], [46, 10], [53, 9], [55, 16]], // extended
    [[36, 11], [37, 14], [39, 14], [45, 11], [46, 11], [55, 16]], // copy_in
    [[26, 9], [36, 12], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 12], [46, 12], [53, 9], [55, 16]], // copy_out
    [[36, 13], [37, 14], [39, 14], [55, 16]], // copy_both
    [[26, 9], [36, 14], [37, 14], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 14], [46, 14], [53, 9], [55, 16]], // copy_client_done
    [[26, 9], [36, 15], [37, 14], [39, 14], [40, 10], [41, 10], [42, 10], [43, 10], [44, 10], [45, 15], [46, 15], [53, 9], [55, 16]], // copy_server_done
    [], // closed
  ],
};

/** The tag of each message, none for one without, and its constant after the length. */
const BEGINS: readonly (readonly [readonly number[], readonly number[]])[] = [
  [[], [0, 3]], // StartupMessage
  [[], [4, 210, 22, 47]], // SSLRequest
  [[], [4, 210, 22, 48]], // GSSENCRequest
  [[], [4, 210, 22, 46]], // CancelRequest
  [[83], []], // EncryptionAccepted
  [[71], []], // GSSEncryptionAccepted
  [[78], []], // EncryptionRefused
  [[82], [0, 0, 0, 0]], // AuthenticationOk
  [[82], [0, 0, 0, 2]], // AuthenticationKerberosV5
  [[82], [0, 0, 0, 3]], // AuthenticationCleartextPassword
  [[82], [0, 0, 0, 5]], // AuthenticationMD5Password
  [[82], [0, 0, 0, 7]], // AuthenticationGSS
  [[82], [0, 0, 0, 8]], // AuthenticationGSSContinue
  [[82], [0, 0, 0, 9]], // AuthenticationSSPI
  [[82], [0, 0, 0, 10]], // AuthenticationSASL
  [[82], [0, 0, 0, 11]], // AuthenticationSASLContinue
  [[82], [0, 0, 0, 12]], // AuthenticationSASLFinal
  [[112], []], // PasswordMessage
  [[112], []], // GSSResponse
  [[112], []], // SASLInitialResponse
  [[112], []], // SASLResponse
  [[118], []], // NegotiateProtocolVersion
  [[83], []], // ParameterStatus
  [[75], []], // BackendKeyData
  [[65], []], // NotificationResponse
  [[90], []], // ReadyForQuery
  [[81], []], // Query
  [[84], []], // RowDescription
  [[68], []], // DataRow
  [[67], []], // CommandComplete
  [[73], []], // EmptyQueryResponse
  [[69], []], // ErrorResponse
  [[78], []], // NoticeResponse
  [[71], []], // CopyInResponse
  [[72], []], // CopyOutResponse
  [[87], []], // CopyBothResponse
  [[100], []], // CopyData
  [[99], []], // ClientCopyDone
  [[99], []], // ServerCopyDone
  [[102], []], // CopyFail
  [[80], []], // Parse
  [[66], []], // Bind
  [[68], []], // Describe
  [[69], []], // Execute
  [[67], []], // Close
  [[72], []], // Flush
  [[83], []], // Sync
  [[49], []], // ParseComplete
  [[50], []], // BindComplete
  [[51], []], // CloseComplete
  [[116], []], // ParameterDescription
  [[110], []], // NoData
  [[115], []], // PortalSuspended
  [[70], []], // FunctionCall
  [[86], []], // FunctionCallResponse
  [[88], []], // Terminate
];

/** Return the state after a message; throw a WireError if the sender cannot send it in this state. */
export function nextState(message: ConnectionMessage, sender: Sender, state: State): State {
  const number = INDEXES[message.message];
  const found = FOLLOWING[sender][STATES.indexOf(state)]?.find((each) => each[0] === number);
  if (found === undefined) throw new wire.WireError("state", message.message, null);
  return STATES[found[1]] as State;
}

/** Parse a message of a connection, with its tag and length, which fills the bytes exactly. */
export function parse(data: Uint8Array, sender: Sender, state: State, trace?: wire.Trace): ConnectionMessage {
  const r = new wire.Reader(data, trace);
  let message: ConnectionMessage;
  switch (wire.begins(data, FOLLOWING[sender][STATES.indexOf(state)] ?? [], BEGINS, 4)) {
    case 0:
      r.begin("StartupMessage");
      message = readStartupMessage(r);
      break;
    case 1:
      r.begin("SSLRequest");
      message = readSSLRequest(r);
      break;
    case 2:
      r.begin("GSSENCRequest");
      message = readGSSENCRequest(r);
      break;
    case 3:
      r.begin("CancelRequest");
      message = readCancelRequest(r);
      break;
    case 4:
      r.begin("EncryptionAccepted");
      message = readEncryptionAccepted(r);
      break;
    case 5:
      r.begin("GSSEncryptionAccepted");
      message = readGSSEncryptionAccepted(r);
      break;
    case 6:
      r.begin("EncryptionRefused");
      message = readEncryptionRefused(r);
      break;
    case 7:
      r.begin("AuthenticationOk");
      message = readAuthenticationOk(r);
      break;
    case 8:
      r.begin("AuthenticationKerberosV5");
      message = readAuthenticationKerberosV5(r);
      break;
    case 9:
      r.begin("AuthenticationCleartextPassword");
      message = readAuthenticationCleartextPassword(r);
      break;
    case 10:
      r.begin("AuthenticationMD5Password");
      message = readAuthenticationMD5Password(r);
      break;
    case 11:
      r.begin("AuthenticationGSS");
      message = readAuthenticationGSS(r);
      break;
    case 12:
      r.begin("AuthenticationGSSContinue");
      message = readAuthenticationGSSContinue(r);
      break;
    case 13:
      r.begin("AuthenticationSSPI");
      message = readAuthenticationSSPI(r);
      break;
    case 14:
      r.begin("AuthenticationSASL");
      message = readAuthenticationSASL(r);
      break;
    case 15:
      r.begin("AuthenticationSASLContinue");
      message = readAuthenticationSASLContinue(r);
      break;
    case 16:
      r.begin("AuthenticationSASLFinal");
      message = readAuthenticationSASLFinal(r);
      break;
    case 17:
      r.begin("PasswordMessage");
      message = readPasswordMessage(r);
      break;
    case 18:
      r.begin("GSSResponse");
      message = readGSSResponse(r);
      break;
    case 19:
      r.begin("SASLInitialResponse");
      message = readSASLInitialResponse(r);
      break;
    case 20:
      r.begin("SASLResponse");
      message = readSASLResponse(r);
      break;
    case 21:
      r.begin("NegotiateProtocolVersion");
      message = readNegotiateProtocolVersion(r);
      break;
    case 22:
      r.begin("ParameterStatus");
      message = readParameterStatus(r);
      break;
    case 23:
      r.begin("BackendKeyData");
      message = readBackendKeyData(r);
      break;
    case 24:
      r.begin("NotificationResponse");
      message = readNotificationResponse(r);
      break;
    case 25:
      r.begin("ReadyForQuery");
      message = readReadyForQuery(r);
      break;
    case 26:
      r.begin("Query");
      message = readQuery(r);
      break;
    case 27:
      r.begin("RowDescription");
      message = readRowDescription(r);
      break;
    case 28:
      r.begin("DataRow");
      message = readDataRow(r);
      break;
    case 29:
      r.begin("CommandComplete");
      message = readCommandComplete(r);
      break;
    case 30:
      r.begin("EmptyQueryResponse");
      message = readEmptyQueryResponse(r);
      break;
    case 31:
      r.begin("ErrorResponse");
      message = readErrorResponse(r);
      break;
    case 32:
      r.begin("NoticeResponse");
      message = readNoticeResponse(r);
      break;
    case 33:
      r.begin("CopyInResponse");
      message = readCopyInResponse(r);
      break;
    case 34:
      r.begin("CopyOutResponse");
      message = readCopyOutResponse(r);
      break;
    case 35:
      r.begin("CopyBothResponse");
      message = readCopyBothResponse(r);
      break;
    case 36:
      r.begin("CopyData");
      message = readCopyData(r);
      break;
    case 37:
      r.begin("ClientCopyDone");
      message = readClientCopyDone(r);
      break;
    case 38:
      r.begin("ServerCopyDone");
      message = readServerCopyDone(r);
      break;
    case 39:
      r.begin("CopyFail");
      message = readCopyFail(r);
      break;
    case 40:
      r.begin("Parse");
      message = readParse(r);
      break;
    case 41:
      r.begin("Bind");
      message = readBind(r);
      break;
    case 42:
      r.begin("Describe");
      message = readDescribe(r);
      break;
    case 43:
      r.begin("Execute");
      message = readExecute(r);
      break;
    case 44:
      r.begin("Close");
      message = readClose(r);
      break;
    case 45:
      r.begin("Flush");
      message = readFlush(r);
      break;
    case 46:
      r.begin("Sync");
      message = readSync(r);
      break;
    case 47:
      r.begin("ParseComplete");
      message = readParseComplete(r);
      break;
    case 48:
      r.begin("BindComplete");
      message = readBindComplete(r);
      break;
    case 49:
      r.begin("CloseComplete");
      message = readCloseComplete(r);
      break;
    case 50:
      r.begin("ParameterDescription");
      message = readParameterDescription(r);
      break;
    case 51:
      r.begin("NoData");
      message = readNoData(r);
      break;
    case 52:
      r.begin("PortalSuspended");
      message = readPortalSuspended(r);
      break;
    case 53:
      r.begin("FunctionCall");
      message = readFunctionCall(r);
      break;
    case 54:
      r.begin("FunctionCallResponse");
      message = readFunctionCallResponse(r);
      break;
    case 55:
      r.begin("Terminate");
      message = readTerminate(r);
      break;
    default:
      return r.unknownTag();
  }
  r.end();
  return message;
}
