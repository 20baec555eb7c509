// Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

//! Frontend and backend messages: what they hold, and how they are read and built.
//!
//! Source: PostgreSQL's documentation, protocol-message-formats.

use alloc::{string::String, vec::Vec};

use crate::runtime as rt;

/// What determines the layout of a message besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout;

/// One detail of an error or a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeField<'a> {
    /// What is said.
    pub code: rt::Letter,
    /// The text.
    pub value: rt::Text<'a>,
}

/// The values of `NoticeField::code`.
pub mod notice_field_code {
    use crate::runtime as rt;

    /// Severity in the language of the server.
    pub const SEVERITY_IN_THE_LANGUAGE_OF_THE_SERVER: rt::Letter = rt::Letter(b'S');
    /// Severity.
    pub const SEVERITY: rt::Letter = rt::Letter(b'V');
    /// SQLSTATE.
    pub const SQLSTATE: rt::Letter = rt::Letter(b'C');
    /// Message.
    pub const MESSAGE: rt::Letter = rt::Letter(b'M');
    /// Detail.
    pub const DETAIL: rt::Letter = rt::Letter(b'D');
    /// Hint.
    pub const HINT: rt::Letter = rt::Letter(b'H');
    /// Position in the query.
    pub const POSITION_IN_THE_QUERY: rt::Letter = rt::Letter(b'P');
    /// Position in an internal query.
    pub const POSITION_IN_AN_INTERNAL_QUERY: rt::Letter = rt::Letter(b'p');
    /// Internal query.
    pub const INTERNAL_QUERY: rt::Letter = rt::Letter(b'q');
    /// Where it happened.
    pub const WHERE_IT_HAPPENED: rt::Letter = rt::Letter(b'W');
    /// Schema.
    pub const SCHEMA: rt::Letter = rt::Letter(b's');
    /// Table.
    pub const TABLE: rt::Letter = rt::Letter(b't');
    /// Column.
    pub const COLUMN: rt::Letter = rt::Letter(b'c');
    /// Data type.
    pub const DATA_TYPE: rt::Letter = rt::Letter(b'd');
    /// Constraint.
    pub const CONSTRAINT: rt::Letter = rt::Letter(b'n');
    /// Source file.
    pub const SOURCE_FILE: rt::Letter = rt::Letter(b'F');
    /// Line of the source file.
    pub const LINE_OF_THE_SOURCE_FILE: rt::Letter = rt::Letter(b'L');
    /// Function of the source file.
    pub const FUNCTION_OF_THE_SOURCE_FILE: rt::Letter = rt::Letter(b'R');
}

impl<'a> NoticeField<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        let code = r.letter("code", b"SVCMDHPpqWstcdnFLR")?;
        let value_ = r.text("value")?;
        Ok(Self {
            code,
            value: value_,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.letter("code", self.code, b"SVCMDHPpqWstcdnFLR")?;
        w.text("value", &self.value)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for NoticeField<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("code", &self.code);
        json.field("value", &self.value);
        json.close('}');
    }
}

/// What the client asks for: user, database, replication, and settings of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupParameter<'a> {
    /// Name of the parameter.
    pub name: rt::Text<'a>,
    /// Its value.
    pub value: rt::Text<'a>,
}

impl<'a> StartupParameter<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        let name = r.text("name")?;
        let value_ = r.text("value")?;
        Ok(Self {
            name,
            value: value_,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.text("name", &self.name)?;
        w.text("value", &self.value)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StartupParameter<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("name", &self.name);
        json.field("value", &self.value);
        json.close('}');
    }
}

/// Opens a connection.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupMessage<'a> {
    /// Minor version of the protocol.
    pub minor_version: u16,
    /// What the client asks for: user, database, replication, and settings of the session.
    pub parameters: Vec<StartupParameter<'a>>,
}

impl<'a> StartupMessage<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.length::<u32>("length")?;
        r.constant("major_version", &[0, 3])?;
        let minor_version = r.number::<u16>("minor_version")?;
        let parameters = r.items_until_zero("parameters", StartupParameter::read)?;
        Ok(Self {
            minor_version,
            parameters,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.number::<u32>(0)?;
        w.bytes(&[0, 3])?;
        w.number(self.minor_version)?;
        for (index, item) in self.parameters.iter().enumerate() {
            let start = w.len();
            rt::item("parameters", index, item.write(w))?;
            rt::item("parameters", index, w.not_zero_at(start))?;
        }
        w.bytes(&[0])?;
        w.close::<u32>(0)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StartupMessage<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("minor_version", &self.minor_version);
        json.field("parameters", &self.parameters);
        json.close('}');
    }
}

/// Asks for TLS before anything else is said.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SSLRequest;

impl SSLRequest {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.length::<u32>("length")?;
        r.constant("request_code", &[4, 210, 22, 47])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.number::<u32>(0)?;
        w.bytes(&[4, 210, 22, 47])?;
        w.close::<u32>(0)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for SSLRequest {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Asks for GSSAPI encryption before anything else is said.
///
/// PostgreSQL 12 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GSSENCRequest;

impl GSSENCRequest {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.length::<u32>("length")?;
        r.constant("request_code", &[4, 210, 22, 48])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.number::<u32>(0)?;
        w.bytes(&[4, 210, 22, 48])?;
        w.close::<u32>(0)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for GSSENCRequest {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Requests that another connection's query be cancelled.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest<'a> {
    /// Process ID of the backend.
    pub process_id: u32,
    /// Its secret key, as long as in BackendKeyData.
    pub secret_key: &'a [u8],
}

impl<'a> CancelRequest<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.length::<u32>("length")?;
        r.constant("request_code", &[4, 210, 22, 46])?;
        let process_id = r.number::<u32>("process_id")?;
        let secret_key = r.rest()?;
        Ok(Self {
            process_id,
            secret_key,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.number::<u32>(0)?;
        w.bytes(&[4, 210, 22, 46])?;
        w.number(self.process_id)?;
        w.bytes(self.secret_key)?;
        w.close::<u32>(0)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CancelRequest<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("process_id", &self.process_id);
        json.field("secret_key", &self.secret_key);
        json.close('}');
    }
}

/// The client may begin its TLS handshake.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionAccepted;

impl EncryptionAccepted {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"S")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"S")?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for EncryptionAccepted {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// The client may begin to establish a GSSAPI context.
///
/// PostgreSQL 12 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GSSEncryptionAccepted;

impl GSSEncryptionAccepted {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"G")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"G")?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for GSSEncryptionAccepted {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// The server continues without encryption.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionRefused;

impl EncryptionRefused {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"N")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"N")?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for EncryptionRefused {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// The client has been authenticated.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationOk;

impl AuthenticationOk {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 0])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 0])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationOk {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Asks for Kerberos V5 authentication; no supported server does.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationKerberosV5;

impl AuthenticationKerberosV5 {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 2])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 2])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationKerberosV5 {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Asks for a password as it is.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationCleartextPassword;

impl AuthenticationCleartextPassword {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 3])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 3])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationCleartextPassword {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Asks for a password that is hashed with MD5.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationMD5Password {
    /// Bytes to hash with the MD5 of password and user name.
    pub salt: [u8; 4],
}

impl AuthenticationMD5Password {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 5])?;
        let salt = r.block::<4>("salt")?;
        Ok(Self { salt })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 5])?;
        w.bytes(&self.salt)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationMD5Password {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("salt", &self.salt);
        json.close('}');
    }
}

/// Asks for GSSAPI authentication.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationGSS;

impl AuthenticationGSS {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 7])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 7])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationGSS {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Data of GSSAPI or SSPI; the client answers unless its context is complete.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationGSSContinue<'a> {
    /// The data.
    pub data: &'a [u8],
}

impl<'a> AuthenticationGSSContinue<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 8])?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 8])?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationGSSContinue<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// Asks for SSPI authentication.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationSSPI;

impl AuthenticationSSPI {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 9])?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 9])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationSSPI {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Asks for SASL authentication.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationSASL<'a> {
    /// Mechanisms that the server has, in the order of its preference.
    pub mechanisms: Vec<rt::Text<'a>>,
}

impl<'a> AuthenticationSASL<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 10])?;
        let mechanisms = r.items_until_zero("mechanisms", |r| r.text(""))?;
        Ok(Self { mechanisms })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 10])?;
        for (index, item) in self.mechanisms.iter().enumerate() {
            let start = w.len();
            rt::item("mechanisms", index, w.text("", item))?;
            rt::item("mechanisms", index, w.not_zero_at(start))?;
        }
        w.bytes(&[0])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationSASL<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("mechanisms", &self.mechanisms);
        json.close('}');
    }
}

/// A challenge of the SASL mechanism.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationSASLContinue<'a> {
    /// Content of the challenge, as the mechanism has it.
    pub data: &'a [u8],
}

impl<'a> AuthenticationSASLContinue<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 11])?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 11])?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationSASLContinue<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// The last word of the SASL mechanism.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationSASLFinal<'a> {
    /// The mechanism's final data.
    pub data: &'a [u8],
}

impl<'a> AuthenticationSASLFinal<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        r.length::<u32>("length")?;
        r.constant("request", &[0, 0, 0, 12])?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"R")?;
        w.number::<u32>(0)?;
        w.bytes(&[0, 0, 0, 12])?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for AuthenticationSASLFinal<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// The requested password.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordMessage<'a> {
    /// The password.
    pub password: rt::Text<'a>,
}

impl<'a> PasswordMessage<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        r.length::<u32>("length")?;
        let password = r.text("password")?;
        Ok(Self { password })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.number::<u32>(0)?;
        w.text("password", &self.password)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for PasswordMessage<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("password", &self.password);
        json.close('}');
    }
}

/// Data of GSSAPI or SSPI for the server.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GSSResponse<'a> {
    /// The data.
    pub data: &'a [u8],
}

impl<'a> GSSResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        r.length::<u32>("length")?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.number::<u32>(0)?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for GSSResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// Chooses a SASL mechanism.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SASLInitialResponse<'a> {
    /// Name of the mechanism that the client has chosen.
    pub mechanism: rt::Text<'a>,
    /// The mechanism's initial data.
    pub data: Option<&'a [u8]>,
}

impl<'a> SASLInitialResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        r.length::<u32>("length")?;
        let mechanism = r.text("mechanism")?;
        let data_length = r.number::<i32>("data_length")?;
        let data = r.nullable("data", i64::from(data_length), -1)?;
        Ok(Self { mechanism, data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.number::<u32>(0)?;
        w.text("mechanism", &self.mechanism)?;
        w.nullable_size::<i32>("data_length", self.data.map(<[u8]>::len), -1)?;
        w.nullable(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for SASLInitialResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("mechanism", &self.mechanism);
        json.field("data", &self.data);
        json.close('}');
    }
}

/// Answers a challenge of the SASL mechanism.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SASLResponse<'a> {
    /// Content of the answer, as the mechanism has it.
    pub data: &'a [u8],
}

impl<'a> SASLResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        r.length::<u32>("length")?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.number::<u32>(0)?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for SASLResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// The server does not know the minor version or some of the requested options.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegotiateProtocolVersion<'a> {
    /// Newest version of the protocol that the server speaks.
    pub newest_version: u32,
    /// Options that the server does not know.
    pub options: Vec<rt::Text<'a>>,
}

impl<'a> NegotiateProtocolVersion<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"v")?;
        r.length::<u32>("length")?;
        let newest_version = r.number::<u32>("newest_version")?;
        let option_count = r.number::<u32>("option_count")?;
        let options = r.items("options", option_count, |r| r.text(""))?;
        Ok(Self {
            newest_version,
            options,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"v")?;
        w.number::<u32>(0)?;
        w.number(self.newest_version)?;
        w.size::<u32>("option_count", self.options.len())?;
        for (index, item) in self.options.iter().enumerate() {
            rt::item("options", index, w.text("", item))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for NegotiateProtocolVersion<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("newest_version", &self.newest_version);
        json.field("options", &self.options);
        json.close('}');
    }
}

/// Tells a setting of the session.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// Name of the setting.
    pub name: rt::Text<'a>,
    /// Its value.
    pub value: rt::Text<'a>,
}

impl<'a> ParameterStatus<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"S")?;
        r.length::<u32>("length")?;
        let name = r.text("name")?;
        let value_ = r.text("value")?;
        Ok(Self {
            name,
            value: value_,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"S")?;
        w.number::<u32>(0)?;
        w.text("name", &self.name)?;
        w.text("value", &self.value)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ParameterStatus<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("name", &self.name);
        json.field("value", &self.value);
        json.close('}');
    }
}

/// The key that a CancelRequest must have.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendKeyData<'a> {
    /// Process ID of the backend.
    pub process_id: u32,
    /// Its secret key: four bytes, up to 256 from version 3.2 of the protocol on.
    pub secret_key: &'a [u8],
}

impl<'a> BackendKeyData<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"K")?;
        r.length::<u32>("length")?;
        let process_id = r.number::<u32>("process_id")?;
        let secret_key = r.rest()?;
        Ok(Self {
            process_id,
            secret_key,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"K")?;
        w.number::<u32>(0)?;
        w.number(self.process_id)?;
        w.bytes(self.secret_key)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for BackendKeyData<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("process_id", &self.process_id);
        json.field("secret_key", &self.secret_key);
        json.close('}');
    }
}

/// A notification of a channel to which the session listens.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationResponse<'a> {
    /// Process ID of the backend that has notified.
    pub process_id: u32,
    /// Name of the channel.
    pub channel: rt::Text<'a>,
    /// What the notification carries, empty for nothing.
    pub payload: rt::Text<'a>,
}

impl<'a> NotificationResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"A")?;
        r.length::<u32>("length")?;
        let process_id = r.number::<u32>("process_id")?;
        let channel = r.text("channel")?;
        let payload = r.text("payload")?;
        Ok(Self {
            process_id,
            channel,
            payload,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"A")?;
        w.number::<u32>(0)?;
        w.number(self.process_id)?;
        w.text("channel", &self.channel)?;
        w.text("payload", &self.payload)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for NotificationResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("process_id", &self.process_id);
        json.field("channel", &self.channel);
        json.field("payload", &self.payload);
        json.close('}');
    }
}

/// The server waits for a command.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyForQuery {
    /// The transaction status of the session.
    pub status: rt::Letter,
}

/// The values of `ReadyForQuery::status`.
pub mod ready_for_query_status {
    use crate::runtime as rt;

    /// Not in a transaction block.
    pub const NOT_IN_A_TRANSACTION_BLOCK: rt::Letter = rt::Letter(b'I');
    /// In a transaction block.
    pub const IN_A_TRANSACTION_BLOCK: rt::Letter = rt::Letter(b'T');
    /// In a failed transaction block.
    pub const IN_A_FAILED_TRANSACTION_BLOCK: rt::Letter = rt::Letter(b'E');
}

impl ReadyForQuery {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"Z")?;
        r.length::<u32>("length")?;
        let status = r.letter("status", b"ITE")?;
        Ok(Self { status })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"Z")?;
        w.number::<u32>(0)?;
        w.letter("status", self.status, b"ITE")?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ReadyForQuery {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("status", &self.status);
        json.close('}');
    }
}

/// A simple query.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// SQL, or a replication command.
    pub text: rt::Text<'a>,
}

impl<'a> Query<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"Q")?;
        r.length::<u32>("length")?;
        let text = r.text("text")?;
        Ok(Self { text })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"Q")?;
        w.number::<u32>(0)?;
        w.text("text", &self.text)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Query<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("text", &self.text);
        json.close('}');
    }
}

/// One column of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn<'a> {
    /// Name of the column.
    pub name: rt::Text<'a>,
    /// OID of the table that the column belongs to, 0 for none.
    pub table_oid: u32,
    /// Its number in that table, 0 for none.
    pub column_number: i16,
    /// OID of the type.
    pub type_oid: u32,
    /// Size of the type, as typlen in pg_type.
    pub type_size: i16,
    /// Type modifier, as atttypmod in pg_attribute; -1 for none.
    pub type_modifier: i32,
    /// Format of the values.
    pub format: u16,
}

/// The values of `ResultColumn::format`.
pub mod result_column_format {
    /// Text.
    pub const TEXT: u16 = 0;
    /// Binary.
    pub const BINARY: u16 = 1;
}

impl<'a> ResultColumn<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        let name = r.text("name")?;
        let table_oid = r.number::<u32>("table_oid")?;
        let column_number = r.number::<i16>("column_number")?;
        let type_oid = r.number::<u32>("type_oid")?;
        let type_size = r.number::<i16>("type_size")?;
        let type_modifier = r.number::<i32>("type_modifier")?;
        let format = r.one_of::<u16>("format", &[0, 1])?;
        Ok(Self {
            name,
            table_oid,
            column_number,
            type_oid,
            type_size,
            type_modifier,
            format,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.text("name", &self.name)?;
        w.number(self.table_oid)?;
        w.number(self.column_number)?;
        w.number(self.type_oid)?;
        w.number(self.type_size)?;
        w.number(self.type_modifier)?;
        w.one_of("format", self.format, &[0, 1])?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ResultColumn<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("name", &self.name);
        json.field("table_oid", &self.table_oid);
        json.field("column_number", &self.column_number);
        json.field("type_oid", &self.type_oid);
        json.field("type_size", &self.type_size);
        json.field("type_modifier", &self.type_modifier);
        json.field("format", &self.format);
        json.close('}');
    }
}

/// Describes the rows that follow.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDescription<'a> {
    /// One column of the result.
    pub columns: Vec<ResultColumn<'a>>,
}

impl<'a> RowDescription<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"T")?;
        r.length::<u32>("length")?;
        let column_count = r.number::<u16>("column_count")?;
        let columns = r.items("columns", column_count, ResultColumn::read)?;
        Ok(Self { columns })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"T")?;
        w.number::<u32>(0)?;
        w.size::<u16>("column_count", self.columns.len())?;
        for (index, item) in self.columns.iter().enumerate() {
            rt::item("columns", index, item.write(w))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for RowDescription<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("columns", &self.columns);
        json.close('}');
    }
}

/// One row of a result.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRow<'a> {
    /// One value of the row.
    pub row: Vec<Option<&'a [u8]>>,
}

impl<'a> DataRow<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"D")?;
        r.length::<u32>("length")?;
        let value_count = r.number::<u16>("value_count")?;
        let row = r.items("row", value_count, read_data_row_row)?;
        Ok(Self { row })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"D")?;
        w.number::<u32>(0)?;
        w.size::<u16>("value_count", self.row.len())?;
        for (index, item) in self.row.iter().enumerate() {
            rt::item("row", index, write_data_row_row(item, w))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for DataRow<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("row", &self.row);
        json.close('}');
    }
}

fn read_data_row_row<'a>(r: &mut rt::Reader<'a>) -> rt::Result<Option<&'a [u8]>> {
    let value_length = r.number::<i32>("value_length")?;
    let value_ = r.nullable("value", i64::from(value_length), -1)?;
    Ok(value_)
}

fn write_data_row_row(value: &Option<&'_ [u8]>, w: &mut rt::Writer) -> rt::Result<()> {
    w.nullable_size::<i32>("value_length", value.map(<[u8]>::len), -1)?;
    w.nullable(*value)?;
    Ok(())
}

/// A command has ended.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandComplete<'a> {
    /// The command tag, with the number of rows if it has any.
    pub command: rt::Text<'a>,
}

impl<'a> CommandComplete<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"C")?;
        r.length::<u32>("length")?;
        let command = r.text("command")?;
        Ok(Self { command })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"C")?;
        w.number::<u32>(0)?;
        w.text("command", &self.command)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CommandComplete<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("command", &self.command);
        json.close('}');
    }
}

/// The query held no command.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyQueryResponse;

impl EmptyQueryResponse {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"I")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"I")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for EmptyQueryResponse {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// An error: the command has failed, or the connection ends.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse<'a> {
    /// The details of the message.
    pub details: Vec<NoticeField<'a>>,
}

impl<'a> ErrorResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"E")?;
        r.length::<u32>("length")?;
        let details = r.items_until_zero("details", |r| rt::inside("", NoticeField::read(r)))?;
        Ok(Self { details })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"E")?;
        w.number::<u32>(0)?;
        for (index, item) in self.details.iter().enumerate() {
            let start = w.len();
            rt::item("details", index, item.write(w))?;
            rt::item("details", index, w.not_zero_at(start))?;
        }
        w.bytes(&[0])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ErrorResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("details", &self.details);
        json.close('}');
    }
}

/// A warning or another notice.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeResponse<'a> {
    /// The details of the message.
    pub details: Vec<NoticeField<'a>>,
}

impl<'a> NoticeResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"N")?;
        r.length::<u32>("length")?;
        let details = r.items_until_zero("details", |r| rt::inside("", NoticeField::read(r)))?;
        Ok(Self { details })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"N")?;
        w.number::<u32>(0)?;
        for (index, item) in self.details.iter().enumerate() {
            let start = w.len();
            rt::item("details", index, item.write(w))?;
            rt::item("details", index, w.not_zero_at(start))?;
        }
        w.bytes(&[0])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for NoticeResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("details", &self.details);
        json.close('}');
    }
}

/// The server is ready for the data of a COPY FROM STDIN.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyInResponse {
    /// Format of the copy.
    pub format: u8,
    /// Format of each column.
    pub column_formats: Vec<u16>,
}

/// The values of `CopyInResponse::format`.
pub mod copy_in_response_format {
    /// Text.
    pub const TEXT: u8 = 0;
    /// Binary.
    pub const BINARY: u8 = 1;
}

impl CopyInResponse {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"G")?;
        r.length::<u32>("length")?;
        let format = r.one_of::<u8>("format", &[0, 1])?;
        let column_count = r.number::<u16>("column_count")?;
        let column_formats = r.items("column_formats", column_count, |r| {
            r.one_of::<u16>("", &[0, 1])
        })?;
        Ok(Self {
            format,
            column_formats,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"G")?;
        w.number::<u32>(0)?;
        w.one_of("format", self.format, &[0, 1])?;
        w.size::<u16>("column_count", self.column_formats.len())?;
        for (index, item) in self.column_formats.iter().enumerate() {
            rt::item("column_formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CopyInResponse {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("format", &self.format);
        json.field("column_formats", &self.column_formats);
        json.close('}');
    }
}

/// The data of a COPY TO STDOUT follow.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOutResponse {
    /// Format of the copy.
    pub format: u8,
    /// Format of each column.
    pub column_formats: Vec<u16>,
}

/// The values of `CopyOutResponse::format`.
pub mod copy_out_response_format {
    /// Text.
    pub const TEXT: u8 = 0;
    /// Binary.
    pub const BINARY: u8 = 1;
}

impl CopyOutResponse {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"H")?;
        r.length::<u32>("length")?;
        let format = r.one_of::<u8>("format", &[0, 1])?;
        let column_count = r.number::<u16>("column_count")?;
        let column_formats = r.items("column_formats", column_count, |r| {
            r.one_of::<u16>("", &[0, 1])
        })?;
        Ok(Self {
            format,
            column_formats,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"H")?;
        w.number::<u32>(0)?;
        w.one_of("format", self.format, &[0, 1])?;
        w.size::<u16>("column_count", self.column_formats.len())?;
        for (index, item) in self.column_formats.iter().enumerate() {
            rt::item("column_formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CopyOutResponse {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("format", &self.format);
        json.field("column_formats", &self.column_formats);
        json.close('}');
    }
}

/// The stream begins: both may send CopyData.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBothResponse {
    /// Format of the copy.
    pub format: u8,
    /// Format of each column.
    pub column_formats: Vec<u16>,
}

/// The values of `CopyBothResponse::format`.
pub mod copy_both_response_format {
    /// Text.
    pub const TEXT: u8 = 0;
    /// Binary.
    pub const BINARY: u8 = 1;
}

impl CopyBothResponse {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"W")?;
        r.length::<u32>("length")?;
        let format = r.one_of::<u8>("format", &[0, 1])?;
        let column_count = r.number::<u16>("column_count")?;
        let column_formats = r.items("column_formats", column_count, |r| {
            r.one_of::<u16>("", &[0, 1])
        })?;
        Ok(Self {
            format,
            column_formats,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"W")?;
        w.number::<u32>(0)?;
        w.one_of("format", self.format, &[0, 1])?;
        w.size::<u16>("column_count", self.column_formats.len())?;
        for (index, item) in self.column_formats.iter().enumerate() {
            rt::item("column_formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CopyBothResponse {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("format", &self.format);
        json.field("column_formats", &self.column_formats);
        json.close('}');
    }
}

/// A piece of a copy: in replication one frame of the envelope, of a COPY TO one row.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyData<'a> {
    /// The frame or the row, to the end.
    pub data: &'a [u8],
}

impl<'a> CopyData<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"d")?;
        r.length::<u32>("length")?;
        let data = r.rest()?;
        Ok(Self { data })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"d")?;
        w.number::<u32>(0)?;
        w.bytes(self.data)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CopyData<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("data", &self.data);
        json.close('}');
    }
}

/// The client sends no more CopyData.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCopyDone;

impl ClientCopyDone {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"c")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"c")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ClientCopyDone {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// The server sends no more CopyData.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCopyDone;

impl ServerCopyDone {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"c")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"c")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ServerCopyDone {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// The client cannot continue a copy.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFail<'a> {
    /// What failed.
    pub reason: rt::Text<'a>,
}

impl<'a> CopyFail<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"f")?;
        r.length::<u32>("length")?;
        let reason = r.text("reason")?;
        Ok(Self { reason })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"f")?;
        w.number::<u32>(0)?;
        w.text("reason", &self.reason)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CopyFail<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("reason", &self.reason);
        json.close('}');
    }
}

/// Prepares a statement.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Name of the statement, empty for the one without a name.
    pub statement: rt::Text<'a>,
    /// SQL.
    pub text: rt::Text<'a>,
    /// Types of the first parameters.
    pub types: Vec<u32>,
}

impl<'a> Parse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"P")?;
        r.length::<u32>("length")?;
        let statement = r.text("statement")?;
        let text = r.text("text")?;
        let type_count = r.number::<u16>("type_count")?;
        let types = r.items("types", type_count, |r| r.number::<u32>(""))?;
        Ok(Self {
            statement,
            text,
            types,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"P")?;
        w.number::<u32>(0)?;
        w.text("statement", &self.statement)?;
        w.text("text", &self.text)?;
        w.size::<u16>("type_count", self.types.len())?;
        for (index, item) in self.types.iter().enumerate() {
            rt::item("types", index, w.number(*item))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Parse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("statement", &self.statement);
        json.field("text", &self.text);
        json.field("types", &self.types);
        json.close('}');
    }
}

/// Gives a statement its parameters.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Name of the portal, empty for the one without a name.
    pub portal: rt::Text<'a>,
    /// Name of the statement, empty for the one without a name.
    pub statement: rt::Text<'a>,
    /// Formats of the parameters.
    pub formats: Vec<u16>,
    /// The parameters.
    pub parameters: Vec<Option<&'a [u8]>>,
    /// Formats of the columns of the result.
    pub result_formats: Vec<u16>,
}

impl<'a> Bind<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"B")?;
        r.length::<u32>("length")?;
        let portal = r.text("portal")?;
        let statement = r.text("statement")?;
        let format_count = r.number::<u16>("format_count")?;
        let formats = r.items("formats", format_count, |r| r.one_of::<u16>("", &[0, 1]))?;
        let value_count = r.number::<u16>("value_count")?;
        let parameters = r.items("parameters", value_count, read_bind_parameters)?;
        let result_count = r.number::<u16>("result_count")?;
        let result_formats = r.items("result_formats", result_count, |r| {
            r.one_of::<u16>("", &[0, 1])
        })?;
        Ok(Self {
            portal,
            statement,
            formats,
            parameters,
            result_formats,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"B")?;
        w.number::<u32>(0)?;
        w.text("portal", &self.portal)?;
        w.text("statement", &self.statement)?;
        w.size::<u16>("format_count", self.formats.len())?;
        for (index, item) in self.formats.iter().enumerate() {
            rt::item("formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.size::<u16>("value_count", self.parameters.len())?;
        for (index, item) in self.parameters.iter().enumerate() {
            rt::item("parameters", index, write_bind_parameters(item, w))?;
        }
        w.size::<u16>("result_count", self.result_formats.len())?;
        for (index, item) in self.result_formats.iter().enumerate() {
            rt::item("result_formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Bind<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("portal", &self.portal);
        json.field("statement", &self.statement);
        json.field("formats", &self.formats);
        json.field("parameters", &self.parameters);
        json.field("result_formats", &self.result_formats);
        json.close('}');
    }
}

fn read_bind_parameters<'a>(r: &mut rt::Reader<'a>) -> rt::Result<Option<&'a [u8]>> {
    let value_length = r.number::<i32>("value_length")?;
    let value_ = r.nullable("value", i64::from(value_length), -1)?;
    Ok(value_)
}

fn write_bind_parameters(value: &Option<&'_ [u8]>, w: &mut rt::Writer) -> rt::Result<()> {
    w.nullable_size::<i32>("value_length", value.map(<[u8]>::len), -1)?;
    w.nullable(*value)?;
    Ok(())
}

/// Requests the description of a statement or a portal.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe<'a> {
    /// The kind of object.
    pub subject: rt::Letter,
    /// Its name.
    pub name: rt::Text<'a>,
}

/// The values of `Describe::subject`.
pub mod describe_subject {
    use crate::runtime as rt;

    /// Statement.
    pub const STATEMENT: rt::Letter = rt::Letter(b'S');
    /// Portal.
    pub const PORTAL: rt::Letter = rt::Letter(b'P');
}

impl<'a> Describe<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"D")?;
        r.length::<u32>("length")?;
        let subject = r.letter("subject", b"SP")?;
        let name = r.text("name")?;
        Ok(Self { subject, name })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"D")?;
        w.number::<u32>(0)?;
        w.letter("subject", self.subject, b"SP")?;
        w.text("name", &self.name)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Describe<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("subject", &self.subject);
        json.field("name", &self.name);
        json.close('}');
    }
}

/// Runs a portal.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Name of the portal, empty for the one without a name.
    pub portal: rt::Text<'a>,
    /// Number of rows to return at most, 0 for all.
    pub row_limit: u32,
}

impl<'a> Execute<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"E")?;
        r.length::<u32>("length")?;
        let portal = r.text("portal")?;
        let row_limit = r.number::<u32>("row_limit")?;
        Ok(Self { portal, row_limit })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"E")?;
        w.number::<u32>(0)?;
        w.text("portal", &self.portal)?;
        w.number(self.row_limit)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Execute<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("portal", &self.portal);
        json.field("row_limit", &self.row_limit);
        json.close('}');
    }
}

/// Closes a statement or a portal.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close<'a> {
    /// What is closed.
    pub subject: rt::Letter,
    /// Its name.
    pub name: rt::Text<'a>,
}

/// The values of `Close::subject`.
pub mod close_subject {
    use crate::runtime as rt;

    /// Statement.
    pub const STATEMENT: rt::Letter = rt::Letter(b'S');
    /// Portal.
    pub const PORTAL: rt::Letter = rt::Letter(b'P');
}

impl<'a> Close<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"C")?;
        r.length::<u32>("length")?;
        let subject = r.letter("subject", b"SP")?;
        let name = r.text("name")?;
        Ok(Self { subject, name })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"C")?;
        w.number::<u32>(0)?;
        w.letter("subject", self.subject, b"SP")?;
        w.text("name", &self.name)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Close<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("subject", &self.subject);
        json.field("name", &self.name);
        json.close('}');
    }
}

/// Asks for the answers that there are.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush;

impl Flush {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"H")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"H")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Flush {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Ends a series of messages of the extended query protocol.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync;

impl Sync {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"S")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"S")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Sync {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// A statement has been prepared.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseComplete;

impl ParseComplete {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"1")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"1")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ParseComplete {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// A portal has been created.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindComplete;

impl BindComplete {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"2")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"2")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for BindComplete {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// A statement or a portal has been closed, or did not exist.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseComplete;

impl CloseComplete {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"3")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"3")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CloseComplete {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Describes the parameters of a statement.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterDescription {
    /// Types of the parameters.
    pub types: Vec<u32>,
}

impl ParameterDescription {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"t")?;
        r.length::<u32>("length")?;
        let type_count = r.number::<u16>("type_count")?;
        let types = r.items("types", type_count, |r| r.number::<u32>(""))?;
        Ok(Self { types })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"t")?;
        w.number::<u32>(0)?;
        w.size::<u16>("type_count", self.types.len())?;
        for (index, item) in self.types.iter().enumerate() {
            rt::item("types", index, w.number(*item))?;
        }
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for ParameterDescription {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("types", &self.types);
        json.close('}');
    }
}

/// The statement or the portal returns no rows.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoData;

impl NoData {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"n")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"n")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for NoData {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// An Execute has returned as many rows as it requested; the portal may have more.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortalSuspended;

impl PortalSuspended {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"s")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"s")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for PortalSuspended {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Calls a function by its OID.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// OID of the function.
    pub function_oid: u32,
    /// Formats of the arguments.
    pub formats: Vec<u16>,
    /// The arguments.
    pub arguments: Vec<Option<&'a [u8]>>,
    /// Format of the result.
    pub result_format: u16,
}

/// The values of `FunctionCall::result_format`.
pub mod function_call_result_format {
    /// Text.
    pub const TEXT: u16 = 0;
    /// Binary.
    pub const BINARY: u16 = 1;
}

impl<'a> FunctionCall<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"F")?;
        r.length::<u32>("length")?;
        let function_oid = r.number::<u32>("function_oid")?;
        let format_count = r.number::<u16>("format_count")?;
        let formats = r.items("formats", format_count, |r| r.one_of::<u16>("", &[0, 1]))?;
        let argument_count = r.number::<u16>("argument_count")?;
        let arguments = r.items("arguments", argument_count, read_function_call_arguments)?;
        let result_format = r.one_of::<u16>("result_format", &[0, 1])?;
        Ok(Self {
            function_oid,
            formats,
            arguments,
            result_format,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"F")?;
        w.number::<u32>(0)?;
        w.number(self.function_oid)?;
        w.size::<u16>("format_count", self.formats.len())?;
        for (index, item) in self.formats.iter().enumerate() {
            rt::item("formats", index, w.one_of("", *item, &[0, 1]))?;
        }
        w.size::<u16>("argument_count", self.arguments.len())?;
        for (index, item) in self.arguments.iter().enumerate() {
            rt::item("arguments", index, write_function_call_arguments(item, w))?;
        }
        w.one_of("result_format", self.result_format, &[0, 1])?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for FunctionCall<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("function_oid", &self.function_oid);
        json.field("formats", &self.formats);
        json.field("arguments", &self.arguments);
        json.field("result_format", &self.result_format);
        json.close('}');
    }
}

fn read_function_call_arguments<'a>(r: &mut rt::Reader<'a>) -> rt::Result<Option<&'a [u8]>> {
    let argument_length = r.number::<i32>("argument_length")?;
    let argument = r.nullable("argument", i64::from(argument_length), -1)?;
    Ok(argument)
}

fn write_function_call_arguments(value: &Option<&'_ [u8]>, w: &mut rt::Writer) -> rt::Result<()> {
    w.nullable_size::<i32>("argument_length", value.map(<[u8]>::len), -1)?;
    w.nullable(*value)?;
    Ok(())
}

/// The result of a function call.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCallResponse<'a> {
    /// The result in the requested format.
    pub result: Option<&'a [u8]>,
}

impl<'a> FunctionCallResponse<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"V")?;
        r.length::<u32>("length")?;
        let result_length = r.number::<i32>("result_length")?;
        let result = r.nullable("result", i64::from(result_length), -1)?;
        Ok(Self { result })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"V")?;
        w.number::<u32>(0)?;
        w.nullable_size::<i32>("result_length", self.result.map(<[u8]>::len), -1)?;
        w.nullable(self.result)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for FunctionCallResponse<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("result", &self.result);
        json.close('}');
    }
}

/// The client ends the connection.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate;

impl Terminate {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"X")?;
        r.length::<u32>("length")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"X")?;
        w.number::<u32>(0)?;
        w.close::<u32>(1)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Terminate {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Any of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionMessage<'a> {
    /// Opens a connection.
    StartupMessage(StartupMessage<'a>),
    /// Asks for TLS before anything else is said.
    SSLRequest(SSLRequest),
    /// Asks for GSSAPI encryption before anything else is said.
    GSSENCRequest(GSSENCRequest),
    /// Requests that another connection's query be cancelled.
    CancelRequest(CancelRequest<'a>),
    /// The client may begin its TLS handshake.
    EncryptionAccepted(EncryptionAccepted),
    /// The client may begin to establish a GSSAPI context.
    GSSEncryptionAccepted(GSSEncryptionAccepted),
    /// The server continues without encryption.
    EncryptionRefused(EncryptionRefused),
    /// The client has been authenticated.
    AuthenticationOk(AuthenticationOk),
    /// Asks for Kerberos V5 authentication; no supported server does.
    AuthenticationKerberosV5(AuthenticationKerberosV5),
    /// Asks for a password as it is.
    AuthenticationCleartextPassword(AuthenticationCleartextPassword),
    /// Asks for a password that is hashed with MD5.
    AuthenticationMD5Password(AuthenticationMD5Password),
    /// Asks for GSSAPI authentication.
    AuthenticationGSS(AuthenticationGSS),
    /// Data of GSSAPI or SSPI; the client answers unless its context is complete.
    AuthenticationGSSContinue(AuthenticationGSSContinue<'a>),
    /// Asks for SSPI authentication.
    AuthenticationSSPI(AuthenticationSSPI),
    /// Asks for SASL authentication.
    AuthenticationSASL(AuthenticationSASL<'a>),
    /// A challenge of the SASL mechanism.
    AuthenticationSASLContinue(AuthenticationSASLContinue<'a>),
    /// The last word of the SASL mechanism.
    AuthenticationSASLFinal(AuthenticationSASLFinal<'a>),
    /// The requested password.
    PasswordMessage(PasswordMessage<'a>),
    /// Data of GSSAPI or SSPI for the server.
    GSSResponse(GSSResponse<'a>),
    /// Chooses a SASL mechanism.
    SASLInitialResponse(SASLInitialResponse<'a>),
    /// Answers a challenge of the SASL mechanism.
    SASLResponse(SASLResponse<'a>),
    /// The server does not know the minor version or some of the requested options.
    NegotiateProtocolVersion(NegotiateProtocolVersion<'a>),
    /// Tells a setting of the session.
    ParameterStatus(ParameterStatus<'a>),
    /// The key that a CancelRequest must have.
    BackendKeyData(BackendKeyData<'a>),
    /// A notification of a channel to which the session listens.
    NotificationResponse(NotificationResponse<'a>),
    /// The server waits for a command.
    ReadyForQuery(ReadyForQuery),
    /// A simple query.
    Query(Query<'a>),
    /// Describes the rows that follow.
    RowDescription(RowDescription<'a>),
    /// One row of a result.
    DataRow(DataRow<'a>),
    /// A command has ended.
    CommandComplete(CommandComplete<'a>),
    /// The query held no command.
    EmptyQueryResponse(EmptyQueryResponse),
    /// An error: the command has failed, or the connection ends.
    ErrorResponse(ErrorResponse<'a>),
    /// A warning or another notice.
    NoticeResponse(NoticeResponse<'a>),
    /// The server is ready for the data of a COPY FROM STDIN.
    CopyInResponse(CopyInResponse),
    /// The data of a COPY TO STDOUT follow.
    CopyOutResponse(CopyOutResponse),
    /// The stream begins: both may send CopyData.
    CopyBothResponse(CopyBothResponse),
    /// A piece of a copy: in replication one frame of the envelope, of a COPY TO one row.
    CopyData(CopyData<'a>),
    /// The client sends no more CopyData.
    ClientCopyDone(ClientCopyDone),
    /// The server sends no more CopyData.
    ServerCopyDone(ServerCopyDone),
    /// The client cannot continue a copy.
    CopyFail(CopyFail<'a>),
    /// Prepares a statement.
    Parse(Parse<'a>),
    /// Gives a statement its parameters.
    Bind(Bind<'a>),
    /// Requests the description of a statement or a portal.
    Describe(Describe<'a>),
    /// Runs a portal.
    Execute(Execute<'a>),
    /// Closes a statement or a portal.
    Close(Close<'a>),
    /// Asks for the answers that there are.
    Flush(Flush),
    /// Ends a series of messages of the extended query protocol.
    Sync(Sync),
    /// A statement has been prepared.
    ParseComplete(ParseComplete),
    /// A portal has been created.
    BindComplete(BindComplete),
    /// A statement or a portal has been closed, or did not exist.
    CloseComplete(CloseComplete),
    /// Describes the parameters of a statement.
    ParameterDescription(ParameterDescription),
    /// The statement or the portal returns no rows.
    NoData(NoData),
    /// An Execute has returned as many rows as it requested; the portal may have more.
    PortalSuspended(PortalSuspended),
    /// Calls a function by its OID.
    FunctionCall(FunctionCall<'a>),
    /// The result of a function call.
    FunctionCallResponse(FunctionCallResponse<'a>),
    /// The client ends the connection.
    Terminate(Terminate),
}

impl ConnectionMessage<'_> {
    /// The names of the messages, in the order of the specification.
    pub const NAMES: [&'static str; 56] = [
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

    /// Return the index of its name in `NAMES`.
    pub fn index(&self) -> usize {
        match self {
            Self::StartupMessage(_) => 0,
            Self::SSLRequest(_) => 1,
            Self::GSSENCRequest(_) => 2,
            Self::CancelRequest(_) => 3,
            Self::EncryptionAccepted(_) => 4,
            Self::GSSEncryptionAccepted(_) => 5,
            Self::EncryptionRefused(_) => 6,
            Self::AuthenticationOk(_) => 7,
            Self::AuthenticationKerberosV5(_) => 8,
            Self::AuthenticationCleartextPassword(_) => 9,
            Self::AuthenticationMD5Password(_) => 10,
            Self::AuthenticationGSS(_) => 11,
            Self::AuthenticationGSSContinue(_) => 12,
            Self::AuthenticationSSPI(_) => 13,
            Self::AuthenticationSASL(_) => 14,
            Self::AuthenticationSASLContinue(_) => 15,
            Self::AuthenticationSASLFinal(_) => 16,
            Self::PasswordMessage(_) => 17,
            Self::GSSResponse(_) => 18,
            Self::SASLInitialResponse(_) => 19,
            Self::SASLResponse(_) => 20,
            Self::NegotiateProtocolVersion(_) => 21,
            Self::ParameterStatus(_) => 22,
            Self::BackendKeyData(_) => 23,
            Self::NotificationResponse(_) => 24,
            Self::ReadyForQuery(_) => 25,
            Self::Query(_) => 26,
            Self::RowDescription(_) => 27,
            Self::DataRow(_) => 28,
            Self::CommandComplete(_) => 29,
            Self::EmptyQueryResponse(_) => 30,
            Self::ErrorResponse(_) => 31,
            Self::NoticeResponse(_) => 32,
            Self::CopyInResponse(_) => 33,
            Self::CopyOutResponse(_) => 34,
            Self::CopyBothResponse(_) => 35,
            Self::CopyData(_) => 36,
            Self::ClientCopyDone(_) => 37,
            Self::ServerCopyDone(_) => 38,
            Self::CopyFail(_) => 39,
            Self::Parse(_) => 40,
            Self::Bind(_) => 41,
            Self::Describe(_) => 42,
            Self::Execute(_) => 43,
            Self::Close(_) => 44,
            Self::Flush(_) => 45,
            Self::Sync(_) => 46,
            Self::ParseComplete(_) => 47,
            Self::BindComplete(_) => 48,
            Self::CloseComplete(_) => 49,
            Self::ParameterDescription(_) => 50,
            Self::NoData(_) => 51,
            Self::PortalSuspended(_) => 52,
            Self::FunctionCall(_) => 53,
            Self::FunctionCallResponse(_) => 54,
            Self::Terminate(_) => 55,
        }
    }

    /// Return its name.
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Return it as JSON, as the golden vectors have it.
    pub fn to_json(&self, layout: &Layout) -> String {
        let mut json = rt::Json::new(layout);
        match self {
            Self::StartupMessage(message) => json.message(self.name(), message),
            Self::SSLRequest(message) => json.message(self.name(), message),
            Self::GSSENCRequest(message) => json.message(self.name(), message),
            Self::CancelRequest(message) => json.message(self.name(), message),
            Self::EncryptionAccepted(message) => json.message(self.name(), message),
            Self::GSSEncryptionAccepted(message) => json.message(self.name(), message),
            Self::EncryptionRefused(message) => json.message(self.name(), message),
            Self::AuthenticationOk(message) => json.message(self.name(), message),
            Self::AuthenticationKerberosV5(message) => json.message(self.name(), message),
            Self::AuthenticationCleartextPassword(message) => json.message(self.name(), message),
            Self::AuthenticationMD5Password(message) => json.message(self.name(), message),
            Self::AuthenticationGSS(message) => json.message(self.name(), message),
            Self::AuthenticationGSSContinue(message) => json.message(self.name(), message),
            Self::AuthenticationSSPI(message) => json.message(self.name(), message),
            Self::AuthenticationSASL(message) => json.message(self.name(), message),
            Self::AuthenticationSASLContinue(message) => json.message(self.name(), message),
            Self::AuthenticationSASLFinal(message) => json.message(self.name(), message),
            Self::PasswordMessage(message) => json.message(self.name(), message),
            Self::GSSResponse(message) => json.message(self.name(), message),
            Self::SASLInitialResponse(message) => json.message(self.name(), message),
            Self::SASLResponse(message) => json.message(self.name(), message),
            Self::NegotiateProtocolVersion(message) => json.message(self.name(), message),
            Self::ParameterStatus(message) => json.message(self.name(), message),
            Self::BackendKeyData(message) => json.message(self.name(), message),
            Self::NotificationResponse(message) => json.message(self.name(), message),
            Self::ReadyForQuery(message) => json.message(self.name(), message),
            Self::Query(message) => json.message(self.name(), message),
            Self::RowDescription(message) => json.message(self.name(), message),
            Self::DataRow(message) => json.message(self.name(), message),
            Self::CommandComplete(message) => json.message(self.name(), message),
            Self::EmptyQueryResponse(message) => json.message(self.name(), message),
            Self::ErrorResponse(message) => json.message(self.name(), message),
            Self::NoticeResponse(message) => json.message(self.name(), message),
            Self::CopyInResponse(message) => json.message(self.name(), message),
            Self::CopyOutResponse(message) => json.message(self.name(), message),
            Self::CopyBothResponse(message) => json.message(self.name(), message),
            Self::CopyData(message) => json.message(self.name(), message),
            Self::ClientCopyDone(message) => json.message(self.name(), message),
            Self::ServerCopyDone(message) => json.message(self.name(), message),
            Self::CopyFail(message) => json.message(self.name(), message),
            Self::Parse(message) => json.message(self.name(), message),
            Self::Bind(message) => json.message(self.name(), message),
            Self::Describe(message) => json.message(self.name(), message),
            Self::Execute(message) => json.message(self.name(), message),
            Self::Close(message) => json.message(self.name(), message),
            Self::Flush(message) => json.message(self.name(), message),
            Self::Sync(message) => json.message(self.name(), message),
            Self::ParseComplete(message) => json.message(self.name(), message),
            Self::BindComplete(message) => json.message(self.name(), message),
            Self::CloseComplete(message) => json.message(self.name(), message),
            Self::ParameterDescription(message) => json.message(self.name(), message),
            Self::NoData(message) => json.message(self.name(), message),
            Self::PortalSuspended(message) => json.message(self.name(), message),
            Self::FunctionCall(message) => json.message(self.name(), message),
            Self::FunctionCallResponse(message) => json.message(self.name(), message),
            Self::Terminate(message) => json.message(self.name(), message),
        }
        json.finish()
    }
}

/// Build a message.
pub fn build(message: &ConnectionMessage<'_>) -> rt::Result<Vec<u8>> {
    let mut w = rt::Writer::new();
    match message {
        ConnectionMessage::StartupMessage(message) => {
            rt::inside("StartupMessage", message.write(&mut w))?
        }
        ConnectionMessage::SSLRequest(message) => rt::inside("SSLRequest", message.write(&mut w))?,
        ConnectionMessage::GSSENCRequest(message) => {
            rt::inside("GSSENCRequest", message.write(&mut w))?
        }
        ConnectionMessage::CancelRequest(message) => {
            rt::inside("CancelRequest", message.write(&mut w))?
        }
        ConnectionMessage::EncryptionAccepted(message) => {
            rt::inside("EncryptionAccepted", message.write(&mut w))?
        }
        ConnectionMessage::GSSEncryptionAccepted(message) => {
            rt::inside("GSSEncryptionAccepted", message.write(&mut w))?
        }
        ConnectionMessage::EncryptionRefused(message) => {
            rt::inside("EncryptionRefused", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationOk(message) => {
            rt::inside("AuthenticationOk", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationKerberosV5(message) => {
            rt::inside("AuthenticationKerberosV5", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationCleartextPassword(message) => {
            rt::inside("AuthenticationCleartextPassword", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationMD5Password(message) => {
            rt::inside("AuthenticationMD5Password", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationGSS(message) => {
            rt::inside("AuthenticationGSS", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationGSSContinue(message) => {
            rt::inside("AuthenticationGSSContinue", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationSSPI(message) => {
            rt::inside("AuthenticationSSPI", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationSASL(message) => {
            rt::inside("AuthenticationSASL", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationSASLContinue(message) => {
            rt::inside("AuthenticationSASLContinue", message.write(&mut w))?
        }
        ConnectionMessage::AuthenticationSASLFinal(message) => {
            rt::inside("AuthenticationSASLFinal", message.write(&mut w))?
        }
        ConnectionMessage::PasswordMessage(message) => {
            rt::inside("PasswordMessage", message.write(&mut w))?
        }
        ConnectionMessage::GSSResponse(message) => {
            rt::inside("GSSResponse", message.write(&mut w))?
        }
        ConnectionMessage::SASLInitialResponse(message) => {
            rt::inside("SASLInitialResponse", message.write(&mut w))?
        }
        ConnectionMessage::SASLResponse(message) => {
            rt::inside("SASLResponse", message.write(&mut w))?
        }
        ConnectionMessage::NegotiateProtocolVersion(message) => {
            rt::inside("NegotiateProtocolVersion", message.write(&mut w))?
        }
        ConnectionMessage::ParameterStatus(message) => {
            rt::inside("ParameterStatus", message.write(&mut w))?
        }
        ConnectionMessage::BackendKeyData(message) => {
            rt::inside("BackendKeyData", message.write(&mut w))?
        }
        ConnectionMessage::NotificationResponse(message) => {
            rt::inside("NotificationResponse", message.write(&mut w))?
        }
        ConnectionMessage::ReadyForQuery(message) => {
            rt::inside("ReadyForQuery", message.write(&mut w))?
        }
        ConnectionMessage::Query(message) => rt::inside("Query", message.write(&mut w))?,
        ConnectionMessage::RowDescription(message) => {
            rt::inside("RowDescription", message.write(&mut w))?
        }
        ConnectionMessage::DataRow(message) => rt::inside("DataRow", message.write(&mut w))?,
        ConnectionMessage::CommandComplete(message) => {
            rt::inside("CommandComplete", message.write(&mut w))?
        }
        ConnectionMessage::EmptyQueryResponse(message) => {
            rt::inside("EmptyQueryResponse", message.write(&mut w))?
        }
        ConnectionMessage::ErrorResponse(message) => {
            rt::inside("ErrorResponse", message.write(&mut w))?
        }
        ConnectionMessage::NoticeResponse(message) => {
            rt::inside("NoticeResponse", message.write(&mut w))?
        }
        ConnectionMessage::CopyInResponse(message) => {
            rt::inside("CopyInResponse", message.write(&mut w))?
        }
        ConnectionMessage::CopyOutResponse(message) => {
            rt::inside("CopyOutResponse", message.write(&mut w))?
        }
        ConnectionMessage::CopyBothResponse(message) => {
            rt::inside("CopyBothResponse", message.write(&mut w))?
        }
        ConnectionMessage::CopyData(message) => rt::inside("CopyData", message.write(&mut w))?,
        ConnectionMessage::ClientCopyDone(message) => {
            rt::inside("ClientCopyDone", message.write(&mut w))?
        }
        ConnectionMessage::ServerCopyDone(message) => {
            rt::inside("ServerCopyDone", message.write(&mut w))?
        }
        ConnectionMessage::CopyFail(message) => rt::inside("CopyFail", message.write(&mut w))?,
        ConnectionMessage::Parse(message) => rt::inside("Parse", message.write(&mut w))?,
        ConnectionMessage::Bind(message) => rt::inside("Bind", message.write(&mut w))?,
        ConnectionMessage::Describe(message) => rt::inside("Describe", message.write(&mut w))?,
        ConnectionMessage::Execute(message) => rt::inside("Execute", message.write(&mut w))?,
        ConnectionMessage::Close(message) => rt::inside("Close", message.write(&mut w))?,
        ConnectionMessage::Flush(message) => rt::inside("Flush", message.write(&mut w))?,
        ConnectionMessage::Sync(message) => rt::inside("Sync", message.write(&mut w))?,
        ConnectionMessage::ParseComplete(message) => {
            rt::inside("ParseComplete", message.write(&mut w))?
        }
        ConnectionMessage::BindComplete(message) => {
            rt::inside("BindComplete", message.write(&mut w))?
        }
        ConnectionMessage::CloseComplete(message) => {
            rt::inside("CloseComplete", message.write(&mut w))?
        }
        ConnectionMessage::ParameterDescription(message) => {
            rt::inside("ParameterDescription", message.write(&mut w))?
        }
        ConnectionMessage::NoData(message) => rt::inside("NoData", message.write(&mut w))?,
        ConnectionMessage::PortalSuspended(message) => {
            rt::inside("PortalSuspended", message.write(&mut w))?
        }
        ConnectionMessage::FunctionCall(message) => {
            rt::inside("FunctionCall", message.write(&mut w))?
        }
        ConnectionMessage::FunctionCallResponse(message) => {
            rt::inside("FunctionCallResponse", message.write(&mut w))?
        }
        ConnectionMessage::Terminate(message) => rt::inside("Terminate", message.write(&mut w))?,
    }
    Ok(w.finish())
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The server.
    Server,
    /// The client.
    Client,
}

/// The states of a connection, the initial one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The client has connected.
    #[default]
    Startup,
    /// The client has requested encryption.
    Encryption,
    /// The server authenticates the client.
    Authentication,
    /// The server has requested a password.
    Password,
    /// The server has requested GSSAPI or SSPI data, or has sent its last.
    Gss,
    /// The server has named SASL mechanisms.
    Sasl,
    /// The server has sent a SASL challenge.
    SaslResponse,
    /// The client is authenticated; the server reports its settings.
    Starting,
    /// The server waits for a command, or answers commands that the client has sent without waiting
    /// (a pipeline).
    Idle,
    /// The last command of the client is a simple query or a function call; the server answers it,
    /// or earlier ones.
    Query,
    /// The client has sent messages of the extended query protocol; the server answers them. A Sync
    /// leaves the state as it is, and the ReadyForQuery that answers it ends it.
    Extended,
    /// The client sends the data of a COPY FROM STDIN.
    CopyIn,
    /// The server sends the data of a COPY TO STDOUT. After further commands of the client the
    /// state is that of these, which permits the rest of the data.
    CopyOut,
    /// Both send CopyData.
    CopyBoth,
    /// The client has ended its side of the copy; the server ends the command, and may answer
    /// others of the same query or pipeline.
    CopyClientDone,
    /// The server has ended its side of the copy; it ends the command, and may answer others of the
    /// same query or pipeline.
    CopyServerDone,
    /// The client has said goodbye; what the server was still sending is read by nobody.
    Closed,
}

impl State {
    /// All states, each with its name.
    pub const ALL: [(State, &'static str); 17] = [
        (State::Startup, "startup"),
        (State::Encryption, "encryption"),
        (State::Authentication, "authentication"),
        (State::Password, "password"),
        (State::Gss, "gss"),
        (State::Sasl, "sasl"),
        (State::SaslResponse, "sasl_response"),
        (State::Starting, "starting"),
        (State::Idle, "idle"),
        (State::Query, "query"),
        (State::Extended, "extended"),
        (State::CopyIn, "copy_in"),
        (State::CopyOut, "copy_out"),
        (State::CopyBoth, "copy_both"),
        (State::CopyClientDone, "copy_client_done"),
        (State::CopyServerDone, "copy_server_done"),
        (State::Closed, "closed"),
    ];
}

/// Return the messages that a sender can send in a state, each with the state that follows.
fn following(sender: Sender, state: State) -> &'static [(usize, State)] {
    match (sender, state) {
        (Sender::Server, State::Startup) => &[
            // ErrorResponse
            (31, State::Startup),
        ],
        (Sender::Server, State::Encryption) => &[
            // EncryptionAccepted
            (4, State::Startup),
            // GSSEncryptionAccepted
            (5, State::Startup),
            // EncryptionRefused
            (6, State::Startup),
            // ErrorResponse
            (31, State::Encryption),
        ],
        (Sender::Server, State::Authentication) => &[
            // AuthenticationOk
            (7, State::Starting),
            // AuthenticationKerberosV5
            (8, State::Authentication),
            // AuthenticationCleartextPassword
            (9, State::Password),
            // AuthenticationMD5Password
            (10, State::Password),
            // AuthenticationGSS
            (11, State::Gss),
            // AuthenticationGSSContinue
            (12, State::Gss),
            // AuthenticationSSPI
            (13, State::Gss),
            // AuthenticationSASL
            (14, State::Sasl),
            // AuthenticationSASLContinue
            (15, State::SaslResponse),
            // AuthenticationSASLFinal
            (16, State::Authentication),
            // NegotiateProtocolVersion
            (21, State::Authentication),
            // ErrorResponse
            (31, State::Authentication),
            // NoticeResponse
            (32, State::Authentication),
        ],
        (Sender::Server, State::Password) => &[
            // ErrorResponse
            (31, State::Password),
        ],
        (Sender::Server, State::Gss) => &[
            // AuthenticationOk
            (7, State::Starting),
            // AuthenticationKerberosV5
            (8, State::Gss),
            // AuthenticationCleartextPassword
            (9, State::Password),
            // AuthenticationMD5Password
            (10, State::Password),
            // AuthenticationGSS
            (11, State::Gss),
            // AuthenticationGSSContinue
            (12, State::Gss),
            // AuthenticationSSPI
            (13, State::Gss),
            // AuthenticationSASL
            (14, State::Sasl),
            // ErrorResponse
            (31, State::Gss),
            // NoticeResponse
            (32, State::Gss),
        ],
        (Sender::Server, State::Sasl) => &[
            // ErrorResponse
            (31, State::Sasl),
        ],
        (Sender::Server, State::SaslResponse) => &[
            // ErrorResponse
            (31, State::SaslResponse),
        ],
        (Sender::Server, State::Starting) => &[
            // ParameterStatus
            (22, State::Starting),
            // BackendKeyData
            (23, State::Starting),
            // NotificationResponse
            (24, State::Starting),
            // ReadyForQuery
            (25, State::Idle),
            // ErrorResponse
            (31, State::Starting),
            // NoticeResponse
            (32, State::Starting),
        ],
        (Sender::Server, State::Idle) => &[
            // ParameterStatus
            (22, State::Idle),
            // NotificationResponse
            (24, State::Idle),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::Idle),
            // DataRow
            (28, State::Idle),
            // CommandComplete
            (29, State::Idle),
            // EmptyQueryResponse
            (30, State::Idle),
            // ErrorResponse
            (31, State::Idle),
            // NoticeResponse
            (32, State::Idle),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyBothResponse
            (35, State::CopyBoth),
            // ParseComplete
            (47, State::Idle),
            // BindComplete
            (48, State::Idle),
            // CloseComplete
            (49, State::Idle),
            // ParameterDescription
            (50, State::Idle),
            // NoData
            (51, State::Idle),
            // PortalSuspended
            (52, State::Idle),
            // FunctionCallResponse
            (54, State::Idle),
        ],
        (Sender::Server, State::Query) => &[
            // ParameterStatus
            (22, State::Query),
            // NotificationResponse
            (24, State::Query),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::Query),
            // DataRow
            (28, State::Query),
            // CommandComplete
            (29, State::Query),
            // EmptyQueryResponse
            (30, State::Query),
            // ErrorResponse
            (31, State::Query),
            // NoticeResponse
            (32, State::Query),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyBothResponse
            (35, State::CopyBoth),
            // CopyData
            (36, State::Query),
            // ServerCopyDone
            (38, State::CopyServerDone),
            // ParseComplete
            (47, State::Query),
            // BindComplete
            (48, State::Query),
            // CloseComplete
            (49, State::Query),
            // ParameterDescription
            (50, State::Query),
            // NoData
            (51, State::Query),
            // PortalSuspended
            (52, State::Query),
            // FunctionCallResponse
            (54, State::Query),
        ],
        (Sender::Server, State::Extended) => &[
            // ParameterStatus
            (22, State::Extended),
            // NotificationResponse
            (24, State::Extended),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::Extended),
            // DataRow
            (28, State::Extended),
            // CommandComplete
            (29, State::Extended),
            // EmptyQueryResponse
            (30, State::Extended),
            // ErrorResponse
            (31, State::Extended),
            // NoticeResponse
            (32, State::Extended),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyData
            (36, State::Extended),
            // ServerCopyDone
            (38, State::CopyServerDone),
            // ParseComplete
            (47, State::Extended),
            // BindComplete
            (48, State::Extended),
            // CloseComplete
            (49, State::Extended),
            // ParameterDescription
            (50, State::Extended),
            // NoData
            (51, State::Extended),
            // PortalSuspended
            (52, State::Extended),
            // FunctionCallResponse
            (54, State::Extended),
        ],
        (Sender::Server, State::CopyIn) => &[
            // ParameterStatus
            (22, State::CopyIn),
            // NotificationResponse
            (24, State::CopyIn),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::CopyIn),
            // DataRow
            (28, State::CopyIn),
            // CommandComplete
            (29, State::CopyIn),
            // EmptyQueryResponse
            (30, State::CopyIn),
            // ErrorResponse
            (31, State::CopyIn),
            // NoticeResponse
            (32, State::CopyIn),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyData
            (36, State::CopyIn),
            // ParseComplete
            (47, State::CopyIn),
            // BindComplete
            (48, State::CopyIn),
            // CloseComplete
            (49, State::CopyIn),
            // ParameterDescription
            (50, State::CopyIn),
            // NoData
            (51, State::CopyIn),
            // PortalSuspended
            (52, State::CopyIn),
            // FunctionCallResponse
            (54, State::CopyIn),
        ],
        (Sender::Server, State::CopyOut) => &[
            // ParameterStatus
            (22, State::CopyOut),
            // NotificationResponse
            (24, State::CopyOut),
            // ReadyForQuery
            (25, State::Idle),
            // ErrorResponse
            (31, State::CopyOut),
            // NoticeResponse
            (32, State::CopyOut),
            // CopyData
            (36, State::CopyOut),
            // ServerCopyDone
            (38, State::CopyServerDone),
        ],
        (Sender::Server, State::CopyBoth) => &[
            // ParameterStatus
            (22, State::CopyBoth),
            // NotificationResponse
            (24, State::CopyBoth),
            // ReadyForQuery
            (25, State::Idle),
            // CommandComplete
            (29, State::CopyBoth),
            // ErrorResponse
            (31, State::CopyBoth),
            // NoticeResponse
            (32, State::CopyBoth),
            // CopyData
            (36, State::CopyBoth),
            // ServerCopyDone
            (38, State::CopyServerDone),
        ],
        (Sender::Server, State::CopyClientDone) => &[
            // ParameterStatus
            (22, State::CopyClientDone),
            // NotificationResponse
            (24, State::CopyClientDone),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::CopyClientDone),
            // DataRow
            (28, State::CopyClientDone),
            // CommandComplete
            (29, State::CopyClientDone),
            // EmptyQueryResponse
            (30, State::CopyClientDone),
            // ErrorResponse
            (31, State::CopyClientDone),
            // NoticeResponse
            (32, State::CopyClientDone),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyData
            (36, State::CopyClientDone),
            // ServerCopyDone
            (38, State::CopyServerDone),
            // ParseComplete
            (47, State::CopyClientDone),
            // BindComplete
            (48, State::CopyClientDone),
            // CloseComplete
            (49, State::CopyClientDone),
            // ParameterDescription
            (50, State::CopyClientDone),
            // NoData
            (51, State::CopyClientDone),
            // PortalSuspended
            (52, State::CopyClientDone),
            // FunctionCallResponse
            (54, State::CopyClientDone),
        ],
        (Sender::Server, State::CopyServerDone) => &[
            // ParameterStatus
            (22, State::CopyServerDone),
            // NotificationResponse
            (24, State::CopyServerDone),
            // ReadyForQuery
            (25, State::Idle),
            // RowDescription
            (27, State::CopyServerDone),
            // DataRow
            (28, State::CopyServerDone),
            // CommandComplete
            (29, State::CopyServerDone),
            // EmptyQueryResponse
            (30, State::CopyServerDone),
            // ErrorResponse
            (31, State::CopyServerDone),
            // NoticeResponse
            (32, State::CopyServerDone),
            // CopyInResponse
            (33, State::CopyIn),
            // CopyOutResponse
            (34, State::CopyOut),
            // CopyData
            (36, State::CopyServerDone),
            // ParseComplete
            (47, State::CopyServerDone),
            // BindComplete
            (48, State::CopyServerDone),
            // CloseComplete
            (49, State::CopyServerDone),
            // ParameterDescription
            (50, State::CopyServerDone),
            // NoData
            (51, State::CopyServerDone),
            // PortalSuspended
            (52, State::CopyServerDone),
            // FunctionCallResponse
            (54, State::CopyServerDone),
        ],
        (Sender::Client, State::Startup) => &[
            // StartupMessage
            (0, State::Authentication),
            // SSLRequest
            (1, State::Encryption),
            // GSSENCRequest
            (2, State::Encryption),
            // CancelRequest
            (3, State::Closed),
        ],
        (Sender::Client, State::Password) => &[
            // PasswordMessage
            (17, State::Authentication),
        ],
        (Sender::Client, State::Gss) => &[
            // GSSResponse
            (18, State::Authentication),
        ],
        (Sender::Client, State::Sasl) => &[
            // SASLInitialResponse
            (19, State::Authentication),
        ],
        (Sender::Client, State::SaslResponse) => &[
            // SASLResponse
            (20, State::Authentication),
        ],
        (Sender::Client, State::Idle) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::Idle),
            // ClientCopyDone
            (37, State::Idle),
            // CopyFail
            (39, State::Idle),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::Idle),
            // Sync
            (46, State::Idle),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::Query) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::Query),
            // ClientCopyDone
            (37, State::Query),
            // CopyFail
            (39, State::Query),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::Query),
            // Sync
            (46, State::Query),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::Extended) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::Extended),
            // ClientCopyDone
            (37, State::Extended),
            // CopyFail
            (39, State::Extended),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::Extended),
            // Sync
            (46, State::Extended),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::CopyIn) => &[
            // CopyData
            (36, State::CopyIn),
            // ClientCopyDone
            (37, State::CopyClientDone),
            // CopyFail
            (39, State::CopyClientDone),
            // Flush
            (45, State::CopyIn),
            // Sync
            (46, State::CopyIn),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::CopyOut) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::CopyOut),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::CopyOut),
            // Sync
            (46, State::CopyOut),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::CopyBoth) => &[
            // CopyData
            (36, State::CopyBoth),
            // ClientCopyDone
            (37, State::CopyClientDone),
            // CopyFail
            (39, State::CopyClientDone),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::CopyClientDone) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::CopyClientDone),
            // ClientCopyDone
            (37, State::CopyClientDone),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::CopyClientDone),
            // Sync
            (46, State::CopyClientDone),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        (Sender::Client, State::CopyServerDone) => &[
            // Query
            (26, State::Query),
            // CopyData
            (36, State::CopyServerDone),
            // ClientCopyDone
            (37, State::CopyClientDone),
            // CopyFail
            (39, State::CopyClientDone),
            // Parse
            (40, State::Extended),
            // Bind
            (41, State::Extended),
            // Describe
            (42, State::Extended),
            // Execute
            (43, State::Extended),
            // Close
            (44, State::Extended),
            // Flush
            (45, State::CopyServerDone),
            // Sync
            (46, State::CopyServerDone),
            // FunctionCall
            (53, State::Query),
            // Terminate
            (55, State::Closed),
        ],
        _ => &[],
    }
}

/// Return the state after a message; an error if the sender cannot send it in this state.
pub fn next_state(
    message: &ConnectionMessage<'_>,
    sender: Sender,
    state: State,
) -> rt::Result<State> {
    for &(number, after) in following(sender, state) {
        if number == message.index() {
            return Ok(after);
        }
    }
    Err(rt::Error::not_permitted(message.name()))
}

/// The tag of each message, none for one without, and its constant after the length.
const BEGINS: [(&[u8], &[u8]); 56] = [
    (&[], &[0, 3]),
    (&[], &[4, 210, 22, 47]),
    (&[], &[4, 210, 22, 48]),
    (&[], &[4, 210, 22, 46]),
    (b"S", &[]),
    (b"G", &[]),
    (b"N", &[]),
    (b"R", &[0, 0, 0, 0]),
    (b"R", &[0, 0, 0, 2]),
    (b"R", &[0, 0, 0, 3]),
    (b"R", &[0, 0, 0, 5]),
    (b"R", &[0, 0, 0, 7]),
    (b"R", &[0, 0, 0, 8]),
    (b"R", &[0, 0, 0, 9]),
    (b"R", &[0, 0, 0, 10]),
    (b"R", &[0, 0, 0, 11]),
    (b"R", &[0, 0, 0, 12]),
    (b"p", &[]),
    (b"p", &[]),
    (b"p", &[]),
    (b"p", &[]),
    (b"v", &[]),
    (b"S", &[]),
    (b"K", &[]),
    (b"A", &[]),
    (b"Z", &[]),
    (b"Q", &[]),
    (b"T", &[]),
    (b"D", &[]),
    (b"C", &[]),
    (b"I", &[]),
    (b"E", &[]),
    (b"N", &[]),
    (b"G", &[]),
    (b"H", &[]),
    (b"W", &[]),
    (b"d", &[]),
    (b"c", &[]),
    (b"c", &[]),
    (b"f", &[]),
    (b"P", &[]),
    (b"B", &[]),
    (b"D", &[]),
    (b"E", &[]),
    (b"C", &[]),
    (b"H", &[]),
    (b"S", &[]),
    (b"1", &[]),
    (b"2", &[]),
    (b"3", &[]),
    (b"t", &[]),
    (b"n", &[]),
    (b"s", &[]),
    (b"F", &[]),
    (b"V", &[]),
    (b"X", &[]),
];

/// Parse a message of a connection, with its tag and length, which fills the bytes exactly.
pub fn parse<'a>(
    data: &'a [u8],
    sender: Sender,
    state: State,
) -> rt::Result<ConnectionMessage<'a>> {
    let begins = rt::begins(data, following(sender, state), &BEGINS, 4)?;
    let mut r = rt::Reader::new(data);
    let message = match begins {
        0 => {
            let found = StartupMessage::read(&mut r);
            let message = rt::inside("StartupMessage", found)?;
            ConnectionMessage::StartupMessage(message)
        }
        1 => {
            let found = SSLRequest::read(&mut r);
            let message = rt::inside("SSLRequest", found)?;
            ConnectionMessage::SSLRequest(message)
        }
        2 => {
            let found = GSSENCRequest::read(&mut r);
            let message = rt::inside("GSSENCRequest", found)?;
            ConnectionMessage::GSSENCRequest(message)
        }
        3 => {
            let found = CancelRequest::read(&mut r);
            let message = rt::inside("CancelRequest", found)?;
            ConnectionMessage::CancelRequest(message)
        }
        4 => {
            let found = EncryptionAccepted::read(&mut r);
            let message = rt::inside("EncryptionAccepted", found)?;
            ConnectionMessage::EncryptionAccepted(message)
        }
        5 => {
            let found = GSSEncryptionAccepted::read(&mut r);
            let message = rt::inside("GSSEncryptionAccepted", found)?;
            ConnectionMessage::GSSEncryptionAccepted(message)
        }
        6 => {
            let found = EncryptionRefused::read(&mut r);
            let message = rt::inside("EncryptionRefused", found)?;
            ConnectionMessage::EncryptionRefused(message)
        }
        7 => {
            let found = AuthenticationOk::read(&mut r);
            let message = rt::inside("AuthenticationOk", found)?;
            ConnectionMessage::AuthenticationOk(message)
        }
        8 => {
            let found = AuthenticationKerberosV5::read(&mut r);
            let message = rt::inside("AuthenticationKerberosV5", found)?;
            ConnectionMessage::AuthenticationKerberosV5(message)
        }
        9 => {
            let found = AuthenticationCleartextPassword::read(&mut r);
            let message = rt::inside("AuthenticationCleartextPassword", found)?;
            ConnectionMessage::AuthenticationCleartextPassword(message)
        }
        10 => {
            let found = AuthenticationMD5Password::read(&mut r);
            let message = rt::inside("AuthenticationMD5Password", found)?;
            ConnectionMessage::AuthenticationMD5Password(message)
        }
        11 => {
            let found = AuthenticationGSS::read(&mut r);
            let message = rt::inside("AuthenticationGSS", found)?;
            ConnectionMessage::AuthenticationGSS(message)
        }
        12 => {
            let found = AuthenticationGSSContinue::read(&mut r);
            let message = rt::inside("AuthenticationGSSContinue", found)?;
            ConnectionMessage::AuthenticationGSSContinue(message)
        }
        13 => {
            let found = AuthenticationSSPI::read(&mut r);
            let message = rt::inside("AuthenticationSSPI", found)?;
            ConnectionMessage::AuthenticationSSPI(message)
        }
        14 => {
            let found = AuthenticationSASL::read(&mut r);
            let message = rt::inside("AuthenticationSASL", found)?;
            ConnectionMessage::AuthenticationSASL(message)
        }
        15 => {
            let found = AuthenticationSASLContinue::read(&mut r);
            let message = rt::inside("AuthenticationSASLContinue", found)?;
            ConnectionMessage::AuthenticationSASLContinue(message)
        }
        16 => {
            let found = AuthenticationSASLFinal::read(&mut r);
            let message = rt::inside("AuthenticationSASLFinal", found)?;
            ConnectionMessage::AuthenticationSASLFinal(message)
        }
        17 => {
            let found = PasswordMessage::read(&mut r);
            let message = rt::inside("PasswordMessage", found)?;
            ConnectionMessage::PasswordMessage(message)
        }
        18 => {
            let found = GSSResponse::read(&mut r);
            let message = rt::inside("GSSResponse", found)?;
            ConnectionMessage::GSSResponse(message)
        }
        19 => {
            let found = SASLInitialResponse::read(&mut r);
            let message = rt::inside("SASLInitialResponse", found)?;
            ConnectionMessage::SASLInitialResponse(message)
        }
        20 => {
            let found = SASLResponse::read(&mut r);
            let message = rt::inside("SASLResponse", found)?;
            ConnectionMessage::SASLResponse(message)
        }
        21 => {
            let found = NegotiateProtocolVersion::read(&mut r);
            let message = rt::inside("NegotiateProtocolVersion", found)?;
            ConnectionMessage::NegotiateProtocolVersion(message)
        }
        22 => {
            let found = ParameterStatus::read(&mut r);
            let message = rt::inside("ParameterStatus", found)?;
            ConnectionMessage::ParameterStatus(message)
        }
        23 => {
            let found = BackendKeyData::read(&mut r);
            let message = rt::inside("BackendKeyData", found)?;
            ConnectionMessage::BackendKeyData(message)
        }
        24 => {
            let found = NotificationResponse::read(&mut r);
            let message = rt::inside("NotificationResponse", found)?;
            ConnectionMessage::NotificationResponse(message)
        }
        25 => {
            let found = ReadyForQuery::read(&mut r);
            let message = rt::inside("ReadyForQuery", found)?;
            ConnectionMessage::ReadyForQuery(message)
        }
        26 => {
            let found = Query::read(&mut r);
            let message = rt::inside("Query", found)?;
            ConnectionMessage::Query(message)
        }
        27 => {
            let found = RowDescription::read(&mut r);
            let message = rt::inside("RowDescription", found)?;
            ConnectionMessage::RowDescription(message)
        }
        28 => {
            let found = DataRow::read(&mut r);
            let message = rt::inside("DataRow", found)?;
            ConnectionMessage::DataRow(message)
        }
        29 => {
            let found = CommandComplete::read(&mut r);
            let message = rt::inside("CommandComplete", found)?;
            ConnectionMessage::CommandComplete(message)
        }
        30 => {
            let found = EmptyQueryResponse::read(&mut r);
            let message = rt::inside("EmptyQueryResponse", found)?;
            ConnectionMessage::EmptyQueryResponse(message)
        }
        31 => {
            let found = ErrorResponse::read(&mut r);
            let message = rt::inside("ErrorResponse", found)?;
            ConnectionMessage::ErrorResponse(message)
        }
        32 => {
            let found = NoticeResponse::read(&mut r);
            let message = rt::inside("NoticeResponse", found)?;
            ConnectionMessage::NoticeResponse(message)
        }
        33 => {
            let found = CopyInResponse::read(&mut r);
            let message = rt::inside("CopyInResponse", found)?;
            ConnectionMessage::CopyInResponse(message)
        }
        34 => {
            let found = CopyOutResponse::read(&mut r);
            let message = rt::inside("CopyOutResponse", found)?;
            ConnectionMessage::CopyOutResponse(message)
        }
        35 => {
            let found = CopyBothResponse::read(&mut r);
            let message = rt::inside("CopyBothResponse", found)?;
            ConnectionMessage::CopyBothResponse(message)
        }
        36 => {
            let found = CopyData::read(&mut r);
            let message = rt::inside("CopyData", found)?;
            ConnectionMessage::CopyData(message)
        }
        37 => {
            let found = ClientCopyDone::read(&mut r);
            let message = rt::inside("ClientCopyDone", found)?;
            ConnectionMessage::ClientCopyDone(message)
        }
        38 => {
            let found = ServerCopyDone::read(&mut r);
            let message = rt::inside("ServerCopyDone", found)?;
            ConnectionMessage::ServerCopyDone(message)
        }
        39 => {
            let found = CopyFail::read(&mut r);
            let message = rt::inside("CopyFail", found)?;
            ConnectionMessage::CopyFail(message)
        }
        40 => {
            let found = Parse::read(&mut r);
            let message = rt::inside("Parse", found)?;
            ConnectionMessage::Parse(message)
        }
        41 => {
            let found = Bind::read(&mut r);
            let message = rt::inside("Bind", found)?;
            ConnectionMessage::Bind(message)
        }
        42 => {
            let found = Describe::read(&mut r);
            let message = rt::inside("Describe", found)?;
            ConnectionMessage::Describe(message)
        }
        43 => {
            let found = Execute::read(&mut r);
            let message = rt::inside("Execute", found)?;
            ConnectionMessage::Execute(message)
        }
        44 => {
            let found = Close::read(&mut r);
            let message = rt::inside("Close", found)?;
            ConnectionMessage::Close(message)
        }
        45 => {
            let found = Flush::read(&mut r);
            let message = rt::inside("Flush", found)?;
            ConnectionMessage::Flush(message)
        }
        46 => {
            let found = Sync::read(&mut r);
            let message = rt::inside("Sync", found)?;
            ConnectionMessage::Sync(message)
        }
        47 => {
            let found = ParseComplete::read(&mut r);
            let message = rt::inside("ParseComplete", found)?;
            ConnectionMessage::ParseComplete(message)
        }
        48 => {
            let found = BindComplete::read(&mut r);
            let message = rt::inside("BindComplete", found)?;
            ConnectionMessage::BindComplete(message)
        }
        49 => {
            let found = CloseComplete::read(&mut r);
            let message = rt::inside("CloseComplete", found)?;
            ConnectionMessage::CloseComplete(message)
        }
        50 => {
            let found = ParameterDescription::read(&mut r);
            let message = rt::inside("ParameterDescription", found)?;
            ConnectionMessage::ParameterDescription(message)
        }
        51 => {
            let found = NoData::read(&mut r);
            let message = rt::inside("NoData", found)?;
            ConnectionMessage::NoData(message)
        }
        52 => {
            let found = PortalSuspended::read(&mut r);
            let message = rt::inside("PortalSuspended", found)?;
            ConnectionMessage::PortalSuspended(message)
        }
        53 => {
            let found = FunctionCall::read(&mut r);
            let message = rt::inside("FunctionCall", found)?;
            ConnectionMessage::FunctionCall(message)
        }
        54 => {
            let found = FunctionCallResponse::read(&mut r);
            let message = rt::inside("FunctionCallResponse", found)?;
            ConnectionMessage::FunctionCallResponse(message)
        }
        _ => {
            let found = Terminate::read(&mut r);
            let message = rt::inside("Terminate", found)?;
            ConnectionMessage::Terminate(message)
        }
    };
    rt::inside(message.name(), r.end())?;
    Ok(message)
}
