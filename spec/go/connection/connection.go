// Generated from spec/protocol.yaml by: python -m tools.generate. Do not edit.

// Package connection has the frontend and backend messages: what they hold, and how they are read
// and built.
//
// Source: PostgreSQL's documentation, protocol-message-formats.
package connection

import "pgoutput.test/codec/wire"

// Layout is what determines the layout of a message besides its bytes.
type Layout struct{}

// NoticeField: One detail of an error or a notice.
type NoticeField struct {
	// What is said.
	Code wire.Letter

	// The text.
	Value wire.Text
}

// NoticeFieldCodeSeverityInTheLanguageOfTheServer is a value of NoticeField.Code: severity in the
// language of the server.
const NoticeFieldCodeSeverityInTheLanguageOfTheServer wire.Letter = 'S'

// NoticeFieldCodeSeverity is a value of NoticeField.Code: severity.
const NoticeFieldCodeSeverity wire.Letter = 'V'

// NoticeFieldCodeSqlstate is a value of NoticeField.Code: SQLSTATE.
const NoticeFieldCodeSqlstate wire.Letter = 'C'

// NoticeFieldCodeMessage is a value of NoticeField.Code: message.
const NoticeFieldCodeMessage wire.Letter = 'M'

// NoticeFieldCodeDetail is a value of NoticeField.Code: detail.
const NoticeFieldCodeDetail wire.Letter = 'D'

// NoticeFieldCodeHint is a value of NoticeField.Code: hint.
const NoticeFieldCodeHint wire.Letter = 'H'

// NoticeFieldCodePositionInTheQuery is a value of NoticeField.Code: position in the query.
const NoticeFieldCodePositionInTheQuery wire.Letter = 'P'

// NoticeFieldCodePositionInAnInternalQuery is a value of NoticeField.Code: position in an internal
// query.
const NoticeFieldCodePositionInAnInternalQuery wire.Letter = 'p'

// NoticeFieldCodeInternalQuery is a value of NoticeField.Code: internal query.
const NoticeFieldCodeInternalQuery wire.Letter = 'q'

// NoticeFieldCodeWhereItHappened is a value of NoticeField.Code: where it happened.
const NoticeFieldCodeWhereItHappened wire.Letter = 'W'

// NoticeFieldCodeSchema is a value of NoticeField.Code: schema.
const NoticeFieldCodeSchema wire.Letter = 's'

// NoticeFieldCodeTable is a value of NoticeField.Code: table.
const NoticeFieldCodeTable wire.Letter = 't'

// NoticeFieldCodeColumn is a value of NoticeField.Code: column.
const NoticeFieldCodeColumn wire.Letter = 'c'

// NoticeFieldCodeDataType is a value of NoticeField.Code: data type.
const NoticeFieldCodeDataType wire.Letter = 'd'

// NoticeFieldCodeConstraint is a value of NoticeField.Code: constraint.
const NoticeFieldCodeConstraint wire.Letter = 'n'

// NoticeFieldCodeSourceFile is a value of NoticeField.Code: source file.
const NoticeFieldCodeSourceFile wire.Letter = 'F'

// NoticeFieldCodeLineOfTheSourceFile is a value of NoticeField.Code: line of the source file.
const NoticeFieldCodeLineOfTheSourceFile wire.Letter = 'L'

// NoticeFieldCodeFunctionOfTheSourceFile is a value of NoticeField.Code: function of the source
// file.
const NoticeFieldCodeFunctionOfTheSourceFile wire.Letter = 'R'

func (m *NoticeField) read(r *wire.Reader) {
	m.Code = r.Letter("code", "SVCMDHPpqWstcdnFLR")
	m.Value = r.Text("value")
}

func (m *NoticeField) write(w *wire.Writer) {
	w.Letter("code", m.Code, "SVCMDHPpqWstcdnFLR")
	w.Text("value", m.Value)
}

func (m *NoticeField) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("code")
	j.Letter(m.Code)
	j.Key("value")
	j.Text(m.Value)
	j.End()
}

// StartupParameter: What the client asks for: user, database, replication, and settings of the
// session.
type StartupParameter struct {
	// Name of the parameter.
	Name wire.Text

	// Its value.
	Value wire.Text
}

func (m *StartupParameter) read(r *wire.Reader) {
	m.Name = r.Text("name")
	m.Value = r.Text("value")
}

func (m *StartupParameter) write(w *wire.Writer) {
	w.Text("name", m.Name)
	w.Text("value", m.Value)
}

func (m *StartupParameter) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("name")
	j.Text(m.Name)
	j.Key("value")
	j.Text(m.Value)
	j.End()
}

// StartupMessage: Opens a connection.
//
// PostgreSQL 10 and newer, sent by the client.
type StartupMessage struct {
	// Minor version of the protocol.
	MinorVersion uint16

	// What the client asks for: user, database, replication, and settings of the session.
	Parameters []StartupParameter
}

func (m *StartupMessage) read(r *wire.Reader) {
	r.Length("length", 4)
	r.Constant("major_version", "\x00\x03")
	m.MinorVersion = r.Uint16("minor_version")
	r.Push("parameters")
	m.Parameters = []StartupParameter{}
	for i := 0; r.MoreBeforeZero(); i++ {
		r.Index(i)
		var item StartupParameter
		m.Parameters = append(m.Parameters, item)
		m.Parameters[i].read(r)
	}
	r.Pop()
}

func (m *StartupMessage) write(w *wire.Writer) {
	w.Uint32(0)
	w.String("\x00\x03")
	w.Uint16(m.MinorVersion)
	w.Push("parameters")
	for i := range m.Parameters {
		w.Index(i)
		start := w.Len()
		m.Parameters[i].write(w)
		w.NotZeroAt(start)
	}
	w.Pop()
	w.String("\x00")
	w.Close(0, 4)
}

func (m *StartupMessage) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("minor_version")
	j.Uint(uint64(m.MinorVersion))
	j.Key("parameters")
	j.Array()
	for i := range m.Parameters {
		m.Parameters[i].json(j, layout)
	}
	j.End()
	j.End()
}

// SSLRequest: Asks for TLS before anything else is said.
//
// PostgreSQL 10 and newer, sent by the client.
type SSLRequest struct{}

func (m *SSLRequest) read(r *wire.Reader) {
	r.Length("length", 4)
	r.Constant("request_code", "\x04\xd2\x16\x2f")
}

func (m *SSLRequest) write(w *wire.Writer) {
	w.Uint32(0)
	w.String("\x04\xd2\x16\x2f")
	w.Close(0, 4)
}

func (m *SSLRequest) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// GSSENCRequest: Asks for GSSAPI encryption before anything else is said.
//
// PostgreSQL 12 and newer, sent by the client.
type GSSENCRequest struct{}

func (m *GSSENCRequest) read(r *wire.Reader) {
	r.Length("length", 4)
	r.Constant("request_code", "\x04\xd2\x16\x30")
}

func (m *GSSENCRequest) write(w *wire.Writer) {
	w.Uint32(0)
	w.String("\x04\xd2\x16\x30")
	w.Close(0, 4)
}

func (m *GSSENCRequest) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// CancelRequest: Requests that another connection's query be cancelled.
//
// PostgreSQL 10 and newer, sent by the client.
type CancelRequest struct {
	// Process ID of the backend.
	ProcessID uint32

	// Its secret key, as long as in BackendKeyData.
	SecretKey []byte
}

func (m *CancelRequest) read(r *wire.Reader) {
	r.Length("length", 4)
	r.Constant("request_code", "\x04\xd2\x16\x2e")
	m.ProcessID = r.Uint32("process_id")
	m.SecretKey = r.Rest()
}

func (m *CancelRequest) write(w *wire.Writer) {
	w.Uint32(0)
	w.String("\x04\xd2\x16\x2e")
	w.Uint32(m.ProcessID)
	w.Bytes(m.SecretKey)
	w.Close(0, 4)
}

func (m *CancelRequest) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("process_id")
	j.Uint(uint64(m.ProcessID))
	j.Key("secret_key")
	j.Hex("hex", m.SecretKey)
	j.End()
}

// EncryptionAccepted: The client may begin its TLS handshake.
//
// PostgreSQL 10 and newer, sent by the server.
type EncryptionAccepted struct{}

func (m *EncryptionAccepted) read(r *wire.Reader) {
	r.Constant("tag", "S")
}

func (m *EncryptionAccepted) write(w *wire.Writer) {
	w.String("S")
}

func (m *EncryptionAccepted) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// GSSEncryptionAccepted: The client may begin to establish a GSSAPI context.
//
// PostgreSQL 12 and newer, sent by the server.
type GSSEncryptionAccepted struct{}

func (m *GSSEncryptionAccepted) read(r *wire.Reader) {
	r.Constant("tag", "G")
}

func (m *GSSEncryptionAccepted) write(w *wire.Writer) {
	w.String("G")
}

func (m *GSSEncryptionAccepted) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// EncryptionRefused: The server continues without encryption.
//
// PostgreSQL 10 and newer, sent by the server.
type EncryptionRefused struct{}

func (m *EncryptionRefused) read(r *wire.Reader) {
	r.Constant("tag", "N")
}

func (m *EncryptionRefused) write(w *wire.Writer) {
	w.String("N")
}

func (m *EncryptionRefused) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationOk: The client has been authenticated.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationOk struct{}

func (m *AuthenticationOk) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x00")
}

func (m *AuthenticationOk) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x00")
	w.Close(1, 4)
}

func (m *AuthenticationOk) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationKerberosV5: Asks for Kerberos V5 authentication; no supported server does.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationKerberosV5 struct{}

func (m *AuthenticationKerberosV5) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x02")
}

func (m *AuthenticationKerberosV5) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x02")
	w.Close(1, 4)
}

func (m *AuthenticationKerberosV5) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationCleartextPassword: Asks for a password as it is.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationCleartextPassword struct{}

func (m *AuthenticationCleartextPassword) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x03")
}

func (m *AuthenticationCleartextPassword) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x03")
	w.Close(1, 4)
}

func (m *AuthenticationCleartextPassword) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationMD5Password: Asks for a password that is hashed with MD5.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationMD5Password struct {
	// Bytes to hash with the MD5 of password and user name.
	Salt [4]byte
}

func (m *AuthenticationMD5Password) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x05")
	m.Salt = [4]byte(r.Block("salt", 4))
}

func (m *AuthenticationMD5Password) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x05")
	w.Bytes(m.Salt[:])
	w.Close(1, 4)
}

func (m *AuthenticationMD5Password) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("salt")
	j.Hex("hex", m.Salt[:])
	j.End()
}

// AuthenticationGSS: Asks for GSSAPI authentication.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationGSS struct{}

func (m *AuthenticationGSS) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x07")
}

func (m *AuthenticationGSS) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x07")
	w.Close(1, 4)
}

func (m *AuthenticationGSS) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationGSSContinue: Data of GSSAPI or SSPI; the client answers unless its context is
// complete.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationGSSContinue struct {
	// The data.
	Data []byte
}

func (m *AuthenticationGSSContinue) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x08")
	m.Data = r.Rest()
}

func (m *AuthenticationGSSContinue) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x08")
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *AuthenticationGSSContinue) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// AuthenticationSSPI: Asks for SSPI authentication.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationSSPI struct{}

func (m *AuthenticationSSPI) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x09")
}

func (m *AuthenticationSSPI) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x09")
	w.Close(1, 4)
}

func (m *AuthenticationSSPI) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// AuthenticationSASL: Asks for SASL authentication.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationSASL struct {
	// Mechanisms that the server has, in the order of its preference.
	Mechanisms []wire.Text
}

func (m *AuthenticationSASL) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x0a")
	r.Push("mechanisms")
	m.Mechanisms = []wire.Text{}
	for i := 0; r.MoreBeforeZero(); i++ {
		r.Index(i)
		var item wire.Text
		m.Mechanisms = append(m.Mechanisms, item)
		m.Mechanisms[i] = r.Text("")
	}
	r.Pop()
}

func (m *AuthenticationSASL) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x0a")
	w.Push("mechanisms")
	for i := range m.Mechanisms {
		w.Index(i)
		start := w.Len()
		w.Text("", m.Mechanisms[i])
		w.NotZeroAt(start)
	}
	w.Pop()
	w.String("\x00")
	w.Close(1, 4)
}

func (m *AuthenticationSASL) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("mechanisms")
	j.Array()
	for i := range m.Mechanisms {
		j.Text(m.Mechanisms[i])
	}
	j.End()
	j.End()
}

// AuthenticationSASLContinue: A challenge of the SASL mechanism.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationSASLContinue struct {
	// Content of the challenge, as the mechanism has it.
	Data []byte
}

func (m *AuthenticationSASLContinue) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x0b")
	m.Data = r.Rest()
}

func (m *AuthenticationSASLContinue) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x0b")
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *AuthenticationSASLContinue) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// AuthenticationSASLFinal: The last word of the SASL mechanism.
//
// PostgreSQL 10 and newer, sent by the server.
type AuthenticationSASLFinal struct {
	// The mechanism's final data.
	Data []byte
}

func (m *AuthenticationSASLFinal) read(r *wire.Reader) {
	r.Constant("tag", "R")
	r.Length("length", 4)
	r.Constant("request", "\x00\x00\x00\x0c")
	m.Data = r.Rest()
}

func (m *AuthenticationSASLFinal) write(w *wire.Writer) {
	w.String("R")
	w.Uint32(0)
	w.String("\x00\x00\x00\x0c")
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *AuthenticationSASLFinal) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// PasswordMessage: The requested password.
//
// PostgreSQL 10 and newer, sent by the client.
type PasswordMessage struct {
	// The password.
	Password wire.Text
}

func (m *PasswordMessage) read(r *wire.Reader) {
	r.Constant("tag", "p")
	r.Length("length", 4)
	m.Password = r.Text("password")
}

func (m *PasswordMessage) write(w *wire.Writer) {
	w.String("p")
	w.Uint32(0)
	w.Text("password", m.Password)
	w.Close(1, 4)
}

func (m *PasswordMessage) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("password")
	j.Text(m.Password)
	j.End()
}

// GSSResponse: Data of GSSAPI or SSPI for the server.
//
// PostgreSQL 10 and newer, sent by the client.
type GSSResponse struct {
	// The data.
	Data []byte
}

func (m *GSSResponse) read(r *wire.Reader) {
	r.Constant("tag", "p")
	r.Length("length", 4)
	m.Data = r.Rest()
}

func (m *GSSResponse) write(w *wire.Writer) {
	w.String("p")
	w.Uint32(0)
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *GSSResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// SASLInitialResponse: Chooses a SASL mechanism.
//
// PostgreSQL 10 and newer, sent by the client.
type SASLInitialResponse struct {
	// Name of the mechanism that the client has chosen.
	Mechanism wire.Text

	// The mechanism's initial data.
	Data wire.Optional[[]byte]
}

func (m *SASLInitialResponse) read(r *wire.Reader) {
	r.Constant("tag", "p")
	r.Length("length", 4)
	m.Mechanism = r.Text("mechanism")
	dataLength := r.Int32("data_length")
	m.Data = r.Nullable("data", int64(dataLength), -1)
}

func (m *SASLInitialResponse) write(w *wire.Writer) {
	w.String("p")
	w.Uint32(0)
	w.Text("mechanism", m.Mechanism)
	w.NullableSize("data_length", 4, len(m.Data.V), m.Data.Valid, -1)
	w.Bytes(m.Data.V)
	w.Close(1, 4)
}

func (m *SASLInitialResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("mechanism")
	j.Text(m.Mechanism)
	j.Key("data")
	if m.Data.Valid {
		j.Hex("hex", m.Data.V)
	} else {
		j.Null()
	}
	j.End()
}

// SASLResponse: Answers a challenge of the SASL mechanism.
//
// PostgreSQL 10 and newer, sent by the client.
type SASLResponse struct {
	// Content of the answer, as the mechanism has it.
	Data []byte
}

func (m *SASLResponse) read(r *wire.Reader) {
	r.Constant("tag", "p")
	r.Length("length", 4)
	m.Data = r.Rest()
}

func (m *SASLResponse) write(w *wire.Writer) {
	w.String("p")
	w.Uint32(0)
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *SASLResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// NegotiateProtocolVersion: The server does not know the minor version or some of the requested
// options.
//
// PostgreSQL 10 and newer, sent by the server.
type NegotiateProtocolVersion struct {
	// Newest version of the protocol that the server speaks.
	NewestVersion uint32

	// Options that the server does not know.
	Options []wire.Text
}

func (m *NegotiateProtocolVersion) read(r *wire.Reader) {
	r.Constant("tag", "v")
	r.Length("length", 4)
	m.NewestVersion = r.Uint32("newest_version")
	optionCount := r.Uint32("option_count")
	r.Push("options")
	m.Options = make([]wire.Text, r.Room(uint64(optionCount)))
	for i := 0; uint64(i) < uint64(optionCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Options) {
			var item wire.Text
			m.Options = append(m.Options, item)
		}
		m.Options[i] = r.Text("")
	}
	r.Pop()
}

func (m *NegotiateProtocolVersion) write(w *wire.Writer) {
	w.String("v")
	w.Uint32(0)
	w.Uint32(m.NewestVersion)
	w.Size("option_count", 4, len(m.Options))
	w.Push("options")
	for i := range m.Options {
		w.Index(i)
		w.Text("", m.Options[i])
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *NegotiateProtocolVersion) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("newest_version")
	j.Uint(uint64(m.NewestVersion))
	j.Key("options")
	j.Array()
	for i := range m.Options {
		j.Text(m.Options[i])
	}
	j.End()
	j.End()
}

// ParameterStatus: Tells a setting of the session.
//
// PostgreSQL 10 and newer, sent by the server.
type ParameterStatus struct {
	// Name of the setting.
	Name wire.Text

	// Its value.
	Value wire.Text
}

func (m *ParameterStatus) read(r *wire.Reader) {
	r.Constant("tag", "S")
	r.Length("length", 4)
	m.Name = r.Text("name")
	m.Value = r.Text("value")
}

func (m *ParameterStatus) write(w *wire.Writer) {
	w.String("S")
	w.Uint32(0)
	w.Text("name", m.Name)
	w.Text("value", m.Value)
	w.Close(1, 4)
}

func (m *ParameterStatus) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("name")
	j.Text(m.Name)
	j.Key("value")
	j.Text(m.Value)
	j.End()
}

// BackendKeyData: The key that a CancelRequest must have.
//
// PostgreSQL 10 and newer, sent by the server.
type BackendKeyData struct {
	// Process ID of the backend.
	ProcessID uint32

	// Its secret key: four bytes, up to 256 from version 3.2 of the protocol on.
	SecretKey []byte
}

func (m *BackendKeyData) read(r *wire.Reader) {
	r.Constant("tag", "K")
	r.Length("length", 4)
	m.ProcessID = r.Uint32("process_id")
	m.SecretKey = r.Rest()
}

func (m *BackendKeyData) write(w *wire.Writer) {
	w.String("K")
	w.Uint32(0)
	w.Uint32(m.ProcessID)
	w.Bytes(m.SecretKey)
	w.Close(1, 4)
}

func (m *BackendKeyData) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("process_id")
	j.Uint(uint64(m.ProcessID))
	j.Key("secret_key")
	j.Hex("hex", m.SecretKey)
	j.End()
}

// NotificationResponse: A notification of a channel to which the session listens.
//
// PostgreSQL 10 and newer, sent by the server.
type NotificationResponse struct {
	// Process ID of the backend that has notified.
	ProcessID uint32

	// Name of the channel.
	Channel wire.Text

	// What the notification carries, empty for nothing.
	Payload wire.Text
}

func (m *NotificationResponse) read(r *wire.Reader) {
	r.Constant("tag", "A")
	r.Length("length", 4)
	m.ProcessID = r.Uint32("process_id")
	m.Channel = r.Text("channel")
	m.Payload = r.Text("payload")
}

func (m *NotificationResponse) write(w *wire.Writer) {
	w.String("A")
	w.Uint32(0)
	w.Uint32(m.ProcessID)
	w.Text("channel", m.Channel)
	w.Text("payload", m.Payload)
	w.Close(1, 4)
}

func (m *NotificationResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("process_id")
	j.Uint(uint64(m.ProcessID))
	j.Key("channel")
	j.Text(m.Channel)
	j.Key("payload")
	j.Text(m.Payload)
	j.End()
}

// ReadyForQuery: The server waits for a command.
//
// PostgreSQL 10 and newer, sent by the server.
type ReadyForQuery struct {
	// The transaction status of the session.
	Status wire.Letter
}

// ReadyForQueryStatusNotInATransactionBlock is a value of ReadyForQuery.Status: not in a
// transaction block.
const ReadyForQueryStatusNotInATransactionBlock wire.Letter = 'I'

// ReadyForQueryStatusInATransactionBlock is a value of ReadyForQuery.Status: in a transaction
// block.
const ReadyForQueryStatusInATransactionBlock wire.Letter = 'T'

// ReadyForQueryStatusInAFailedTransactionBlock is a value of ReadyForQuery.Status: in a failed
// transaction block.
const ReadyForQueryStatusInAFailedTransactionBlock wire.Letter = 'E'

func (m *ReadyForQuery) read(r *wire.Reader) {
	r.Constant("tag", "Z")
	r.Length("length", 4)
	m.Status = r.Letter("status", "ITE")
}

func (m *ReadyForQuery) write(w *wire.Writer) {
	w.String("Z")
	w.Uint32(0)
	w.Letter("status", m.Status, "ITE")
	w.Close(1, 4)
}

func (m *ReadyForQuery) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("status")
	j.Letter(m.Status)
	j.End()
}

// Query: A simple query.
//
// PostgreSQL 10 and newer, sent by the client.
type Query struct {
	// SQL, or a replication command.
	Text wire.Text
}

func (m *Query) read(r *wire.Reader) {
	r.Constant("tag", "Q")
	r.Length("length", 4)
	m.Text = r.Text("text")
}

func (m *Query) write(w *wire.Writer) {
	w.String("Q")
	w.Uint32(0)
	w.Text("text", m.Text)
	w.Close(1, 4)
}

func (m *Query) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("text")
	j.Text(m.Text)
	j.End()
}

// ResultColumn: One column of the result.
type ResultColumn struct {
	// Name of the column.
	Name wire.Text

	// OID of the table that the column belongs to, 0 for none.
	TableOID uint32

	// Its number in that table, 0 for none.
	ColumnNumber int16

	// OID of the type.
	TypeOID uint32

	// Size of the type, as typlen in pg_type.
	TypeSize int16

	// Type modifier, as atttypmod in pg_attribute; -1 for none.
	TypeModifier int32

	// Format of the values.
	Format uint16
}

// ResultColumnFormatText is a value of ResultColumn.Format: text.
const ResultColumnFormatText uint16 = 0

// ResultColumnFormatBinary is a value of ResultColumn.Format: binary.
const ResultColumnFormatBinary uint16 = 1

func (m *ResultColumn) read(r *wire.Reader) {
	m.Name = r.Text("name")
	m.TableOID = r.Uint32("table_oid")
	m.ColumnNumber = r.Int16("column_number")
	m.TypeOID = r.Uint32("type_oid")
	m.TypeSize = r.Int16("type_size")
	m.TypeModifier = r.Int32("type_modifier")
	m.Format = wire.OneOf(r, "format", r.Uint16("format"), 0, 1)
}

func (m *ResultColumn) write(w *wire.Writer) {
	w.Text("name", m.Name)
	w.Uint32(m.TableOID)
	w.Int16(m.ColumnNumber)
	w.Uint32(m.TypeOID)
	w.Int16(m.TypeSize)
	w.Int32(m.TypeModifier)
	w.Uint16(wire.CheckOneOf(w, "format", m.Format, 0, 1))
}

func (m *ResultColumn) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("name")
	j.Text(m.Name)
	j.Key("table_oid")
	j.Uint(uint64(m.TableOID))
	j.Key("column_number")
	j.Int(int64(m.ColumnNumber))
	j.Key("type_oid")
	j.Uint(uint64(m.TypeOID))
	j.Key("type_size")
	j.Int(int64(m.TypeSize))
	j.Key("type_modifier")
	j.Int(int64(m.TypeModifier))
	j.Key("format")
	j.Uint(uint64(m.Format))
	j.End()
}

// RowDescription: Describes the rows that follow.
//
// PostgreSQL 10 and newer, sent by the server.
type RowDescription struct {
	// One column of the result.
	Columns []ResultColumn
}

func (m *RowDescription) read(r *wire.Reader) {
	r.Constant("tag", "T")
	r.Length("length", 4)
	columnCount := r.Uint16("column_count")
	r.Push("columns")
	m.Columns = make([]ResultColumn, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Columns) {
			var item ResultColumn
			m.Columns = append(m.Columns, item)
		}
		m.Columns[i].read(r)
	}
	r.Pop()
}

func (m *RowDescription) write(w *wire.Writer) {
	w.String("T")
	w.Uint32(0)
	w.Size("column_count", 2, len(m.Columns))
	w.Push("columns")
	for i := range m.Columns {
		w.Index(i)
		m.Columns[i].write(w)
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *RowDescription) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("columns")
	j.Array()
	for i := range m.Columns {
		m.Columns[i].json(j, layout)
	}
	j.End()
	j.End()
}

// DataRow: One row of a result.
//
// PostgreSQL 10 and newer, sent by the server.
type DataRow struct {
	// One value of the row.
	Row []wire.Optional[[]byte]
}

func (m *DataRow) read(r *wire.Reader) {
	r.Constant("tag", "D")
	r.Length("length", 4)
	valueCount := r.Uint16("value_count")
	r.Push("row")
	m.Row = make([]wire.Optional[[]byte], r.Room(uint64(valueCount)))
	for i := 0; uint64(i) < uint64(valueCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Row) {
			var item wire.Optional[[]byte]
			m.Row = append(m.Row, item)
		}
		m.Row[i] = readDataRowRow(r)
	}
	r.Pop()
}

func (m *DataRow) write(w *wire.Writer) {
	w.String("D")
	w.Uint32(0)
	w.Size("value_count", 2, len(m.Row))
	w.Push("row")
	for i := range m.Row {
		w.Index(i)
		writeDataRowRow(m.Row[i], w)
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *DataRow) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("row")
	j.Array()
	for i := range m.Row {
		if m.Row[i].Valid {
			j.Hex("hex", m.Row[i].V)
		} else {
			j.Null()
		}
	}
	j.End()
	j.End()
}

func readDataRowRow(r *wire.Reader) (value wire.Optional[[]byte]) {
	valueLength := r.Int32("value_length")
	value = r.Nullable("value", int64(valueLength), -1)
	return value
}

func writeDataRowRow(value wire.Optional[[]byte], w *wire.Writer) {
	w.NullableSize("value_length", 4, len(value.V), value.Valid, -1)
	w.Bytes(value.V)
}

// CommandComplete: A command has ended.
//
// PostgreSQL 10 and newer, sent by the server.
type CommandComplete struct {
	// The command tag, with the number of rows if it has any.
	Command wire.Text
}

func (m *CommandComplete) read(r *wire.Reader) {
	r.Constant("tag", "C")
	r.Length("length", 4)
	m.Command = r.Text("command")
}

func (m *CommandComplete) write(w *wire.Writer) {
	w.String("C")
	w.Uint32(0)
	w.Text("command", m.Command)
	w.Close(1, 4)
}

func (m *CommandComplete) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("command")
	j.Text(m.Command)
	j.End()
}

// EmptyQueryResponse: The query held no command.
//
// PostgreSQL 10 and newer, sent by the server.
type EmptyQueryResponse struct{}

func (m *EmptyQueryResponse) read(r *wire.Reader) {
	r.Constant("tag", "I")
	r.Length("length", 4)
}

func (m *EmptyQueryResponse) write(w *wire.Writer) {
	w.String("I")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *EmptyQueryResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// ErrorResponse: An error: the command has failed, or the connection ends.
//
// PostgreSQL 10 and newer, sent by the server.
type ErrorResponse struct {
	// The details of the message.
	Details []NoticeField
}

func (m *ErrorResponse) read(r *wire.Reader) {
	r.Constant("tag", "E")
	r.Length("length", 4)
	r.Push("details")
	m.Details = []NoticeField{}
	for i := 0; r.MoreBeforeZero(); i++ {
		r.Index(i)
		var item NoticeField
		m.Details = append(m.Details, item)
		m.Details[i].read(r)
	}
	r.Pop()
}

func (m *ErrorResponse) write(w *wire.Writer) {
	w.String("E")
	w.Uint32(0)
	w.Push("details")
	for i := range m.Details {
		w.Index(i)
		start := w.Len()
		m.Details[i].write(w)
		w.NotZeroAt(start)
	}
	w.Pop()
	w.String("\x00")
	w.Close(1, 4)
}

func (m *ErrorResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("details")
	j.Array()
	for i := range m.Details {
		m.Details[i].json(j, layout)
	}
	j.End()
	j.End()
}

// NoticeResponse: A warning or another notice.
//
// PostgreSQL 10 and newer, sent by the server.
type NoticeResponse struct {
	// The details of the message.
	Details []NoticeField
}

func (m *NoticeResponse) read(r *wire.Reader) {
	r.Constant("tag", "N")
	r.Length("length", 4)
	r.Push("details")
	m.Details = []NoticeField{}
	for i := 0; r.MoreBeforeZero(); i++ {
		r.Index(i)
		var item NoticeField
		m.Details = append(m.Details, item)
		m.Details[i].read(r)
	}
	r.Pop()
}

func (m *NoticeResponse) write(w *wire.Writer) {
	w.String("N")
	w.Uint32(0)
	w.Push("details")
	for i := range m.Details {
		w.Index(i)
		start := w.Len()
		m.Details[i].write(w)
		w.NotZeroAt(start)
	}
	w.Pop()
	w.String("\x00")
	w.Close(1, 4)
}

func (m *NoticeResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("details")
	j.Array()
	for i := range m.Details {
		m.Details[i].json(j, layout)
	}
	j.End()
	j.End()
}

// CopyInResponse: The server is ready for the data of a COPY FROM STDIN.
//
// PostgreSQL 10 and newer, sent by the server.
type CopyInResponse struct {
	// Format of the copy.
	Format uint8

	// Format of each column.
	ColumnFormats []uint16
}

// CopyInResponseFormatText is a value of CopyInResponse.Format: text.
const CopyInResponseFormatText uint8 = 0

// CopyInResponseFormatBinary is a value of CopyInResponse.Format: binary.
const CopyInResponseFormatBinary uint8 = 1

func (m *CopyInResponse) read(r *wire.Reader) {
	r.Constant("tag", "G")
	r.Length("length", 4)
	m.Format = wire.OneOf(r, "format", r.Uint8("format"), 0, 1)
	columnCount := r.Uint16("column_count")
	r.Push("column_formats")
	m.ColumnFormats = make([]uint16, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.ColumnFormats) {
			var item uint16
			m.ColumnFormats = append(m.ColumnFormats, item)
		}
		m.ColumnFormats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
}

func (m *CopyInResponse) write(w *wire.Writer) {
	w.String("G")
	w.Uint32(0)
	w.Uint8(wire.CheckOneOf(w, "format", m.Format, 0, 1))
	w.Size("column_count", 2, len(m.ColumnFormats))
	w.Push("column_formats")
	for i := range m.ColumnFormats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.ColumnFormats[i], 0, 1))
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *CopyInResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("format")
	j.Uint(uint64(m.Format))
	j.Key("column_formats")
	j.Array()
	for i := range m.ColumnFormats {
		j.Uint(uint64(m.ColumnFormats[i]))
	}
	j.End()
	j.End()
}

// CopyOutResponse: The data of a COPY TO STDOUT follow.
//
// PostgreSQL 10 and newer, sent by the server.
type CopyOutResponse struct {
	// Format of the copy.
	Format uint8

	// Format of each column.
	ColumnFormats []uint16
}

// CopyOutResponseFormatText is a value of CopyOutResponse.Format: text.
const CopyOutResponseFormatText uint8 = 0

// CopyOutResponseFormatBinary is a value of CopyOutResponse.Format: binary.
const CopyOutResponseFormatBinary uint8 = 1

func (m *CopyOutResponse) read(r *wire.Reader) {
	r.Constant("tag", "H")
	r.Length("length", 4)
	m.Format = wire.OneOf(r, "format", r.Uint8("format"), 0, 1)
	columnCount := r.Uint16("column_count")
	r.Push("column_formats")
	m.ColumnFormats = make([]uint16, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.ColumnFormats) {
			var item uint16
			m.ColumnFormats = append(m.ColumnFormats, item)
		}
		m.ColumnFormats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
}

func (m *CopyOutResponse) write(w *wire.Writer) {
	w.String("H")
	w.Uint32(0)
	w.Uint8(wire.CheckOneOf(w, "format", m.Format, 0, 1))
	w.Size("column_count", 2, len(m.ColumnFormats))
	w.Push("column_formats")
	for i := range m.ColumnFormats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.ColumnFormats[i], 0, 1))
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *CopyOutResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("format")
	j.Uint(uint64(m.Format))
	j.Key("column_formats")
	j.Array()
	for i := range m.ColumnFormats {
		j.Uint(uint64(m.ColumnFormats[i]))
	}
	j.End()
	j.End()
}

// CopyBothResponse: The stream begins: both may send CopyData.
//
// PostgreSQL 10 and newer, sent by the server.
type CopyBothResponse struct {
	// Format of the copy.
	Format uint8

	// Format of each column.
	ColumnFormats []uint16
}

// CopyBothResponseFormatText is a value of CopyBothResponse.Format: text.
const CopyBothResponseFormatText uint8 = 0

// CopyBothResponseFormatBinary is a value of CopyBothResponse.Format: binary.
const CopyBothResponseFormatBinary uint8 = 1

func (m *CopyBothResponse) read(r *wire.Reader) {
	r.Constant("tag", "W")
	r.Length("length", 4)
	m.Format = wire.OneOf(r, "format", r.Uint8("format"), 0, 1)
	columnCount := r.Uint16("column_count")
	r.Push("column_formats")
	m.ColumnFormats = make([]uint16, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.ColumnFormats) {
			var item uint16
			m.ColumnFormats = append(m.ColumnFormats, item)
		}
		m.ColumnFormats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
}

func (m *CopyBothResponse) write(w *wire.Writer) {
	w.String("W")
	w.Uint32(0)
	w.Uint8(wire.CheckOneOf(w, "format", m.Format, 0, 1))
	w.Size("column_count", 2, len(m.ColumnFormats))
	w.Push("column_formats")
	for i := range m.ColumnFormats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.ColumnFormats[i], 0, 1))
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *CopyBothResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("format")
	j.Uint(uint64(m.Format))
	j.Key("column_formats")
	j.Array()
	for i := range m.ColumnFormats {
		j.Uint(uint64(m.ColumnFormats[i]))
	}
	j.End()
	j.End()
}

// CopyData: A piece of a copy: in replication one frame of the envelope, of a COPY TO one row.
//
// PostgreSQL 10 and newer.
type CopyData struct {
	// The frame or the row, to the end.
	Data []byte
}

func (m *CopyData) read(r *wire.Reader) {
	r.Constant("tag", "d")
	r.Length("length", 4)
	m.Data = r.Rest()
}

func (m *CopyData) write(w *wire.Writer) {
	w.String("d")
	w.Uint32(0)
	w.Bytes(m.Data)
	w.Close(1, 4)
}

func (m *CopyData) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// ClientCopyDone: The client sends no more CopyData.
//
// PostgreSQL 10 and newer, sent by the client.
type ClientCopyDone struct{}

func (m *ClientCopyDone) read(r *wire.Reader) {
	r.Constant("tag", "c")
	r.Length("length", 4)
}

func (m *ClientCopyDone) write(w *wire.Writer) {
	w.String("c")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *ClientCopyDone) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// ServerCopyDone: The server sends no more CopyData.
//
// PostgreSQL 10 and newer, sent by the server.
type ServerCopyDone struct{}

func (m *ServerCopyDone) read(r *wire.Reader) {
	r.Constant("tag", "c")
	r.Length("length", 4)
}

func (m *ServerCopyDone) write(w *wire.Writer) {
	w.String("c")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *ServerCopyDone) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// CopyFail: The client cannot continue a copy.
//
// PostgreSQL 10 and newer, sent by the client.
type CopyFail struct {
	// What failed.
	Reason wire.Text
}

func (m *CopyFail) read(r *wire.Reader) {
	r.Constant("tag", "f")
	r.Length("length", 4)
	m.Reason = r.Text("reason")
}

func (m *CopyFail) write(w *wire.Writer) {
	w.String("f")
	w.Uint32(0)
	w.Text("reason", m.Reason)
	w.Close(1, 4)
}

func (m *CopyFail) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("reason")
	j.Text(m.Reason)
	j.End()
}

// Parse: Prepares a statement.
//
// PostgreSQL 10 and newer, sent by the client.
type Parse struct {
	// Name of the statement, empty for the one without a name.
	Statement wire.Text

	// SQL.
	Text wire.Text

	// Types of the first parameters.
	Types []uint32
}

func (m *Parse) read(r *wire.Reader) {
	r.Constant("tag", "P")
	r.Length("length", 4)
	m.Statement = r.Text("statement")
	m.Text = r.Text("text")
	typeCount := r.Uint16("type_count")
	r.Push("types")
	m.Types = make([]uint32, r.Room(uint64(typeCount)))
	for i := 0; uint64(i) < uint64(typeCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Types) {
			var item uint32
			m.Types = append(m.Types, item)
		}
		m.Types[i] = r.Uint32("")
	}
	r.Pop()
}

func (m *Parse) write(w *wire.Writer) {
	w.String("P")
	w.Uint32(0)
	w.Text("statement", m.Statement)
	w.Text("text", m.Text)
	w.Size("type_count", 2, len(m.Types))
	w.Push("types")
	for i := range m.Types {
		w.Index(i)
		w.Uint32(m.Types[i])
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *Parse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("statement")
	j.Text(m.Statement)
	j.Key("text")
	j.Text(m.Text)
	j.Key("types")
	j.Array()
	for i := range m.Types {
		j.Uint(uint64(m.Types[i]))
	}
	j.End()
	j.End()
}

// Bind: Gives a statement its parameters.
//
// PostgreSQL 10 and newer, sent by the client.
type Bind struct {
	// Name of the portal, empty for the one without a name.
	Portal wire.Text

	// Name of the statement, empty for the one without a name.
	Statement wire.Text

	// Formats of the parameters.
	Formats []uint16

	// The parameters.
	Parameters []wire.Optional[[]byte]

	// Formats of the columns of the result.
	ResultFormats []uint16
}

func (m *Bind) read(r *wire.Reader) {
	r.Constant("tag", "B")
	r.Length("length", 4)
	m.Portal = r.Text("portal")
	m.Statement = r.Text("statement")
	formatCount := r.Uint16("format_count")
	r.Push("formats")
	m.Formats = make([]uint16, r.Room(uint64(formatCount)))
	for i := 0; uint64(i) < uint64(formatCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Formats) {
			var item uint16
			m.Formats = append(m.Formats, item)
		}
		m.Formats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
	valueCount := r.Uint16("value_count")
	r.Push("parameters")
	m.Parameters = make([]wire.Optional[[]byte], r.Room(uint64(valueCount)))
	for i := 0; uint64(i) < uint64(valueCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Parameters) {
			var item wire.Optional[[]byte]
			m.Parameters = append(m.Parameters, item)
		}
		m.Parameters[i] = readBindParameters(r)
	}
	r.Pop()
	resultCount := r.Uint16("result_count")
	r.Push("result_formats")
	m.ResultFormats = make([]uint16, r.Room(uint64(resultCount)))
	for i := 0; uint64(i) < uint64(resultCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.ResultFormats) {
			var item uint16
			m.ResultFormats = append(m.ResultFormats, item)
		}
		m.ResultFormats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
}

func (m *Bind) write(w *wire.Writer) {
	w.String("B")
	w.Uint32(0)
	w.Text("portal", m.Portal)
	w.Text("statement", m.Statement)
	w.Size("format_count", 2, len(m.Formats))
	w.Push("formats")
	for i := range m.Formats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.Formats[i], 0, 1))
	}
	w.Pop()
	w.Size("value_count", 2, len(m.Parameters))
	w.Push("parameters")
	for i := range m.Parameters {
		w.Index(i)
		writeBindParameters(m.Parameters[i], w)
	}
	w.Pop()
	w.Size("result_count", 2, len(m.ResultFormats))
	w.Push("result_formats")
	for i := range m.ResultFormats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.ResultFormats[i], 0, 1))
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *Bind) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("portal")
	j.Text(m.Portal)
	j.Key("statement")
	j.Text(m.Statement)
	j.Key("formats")
	j.Array()
	for i := range m.Formats {
		j.Uint(uint64(m.Formats[i]))
	}
	j.End()
	j.Key("parameters")
	j.Array()
	for i := range m.Parameters {
		if m.Parameters[i].Valid {
			j.Hex("hex", m.Parameters[i].V)
		} else {
			j.Null()
		}
	}
	j.End()
	j.Key("result_formats")
	j.Array()
	for i := range m.ResultFormats {
		j.Uint(uint64(m.ResultFormats[i]))
	}
	j.End()
	j.End()
}

func readBindParameters(r *wire.Reader) (value wire.Optional[[]byte]) {
	valueLength := r.Int32("value_length")
	value = r.Nullable("value", int64(valueLength), -1)
	return value
}

func writeBindParameters(value wire.Optional[[]byte], w *wire.Writer) {
	w.NullableSize("value_length", 4, len(value.V), value.Valid, -1)
	w.Bytes(value.V)
}

// Describe: Requests the description of a statement or a portal.
//
// PostgreSQL 10 and newer, sent by the client.
type Describe struct {
	// The kind of object.
	Subject wire.Letter

	// Its name.
	Name wire.Text
}

// DescribeSubjectStatement is a value of Describe.Subject: statement.
const DescribeSubjectStatement wire.Letter = 'S'

// DescribeSubjectPortal is a value of Describe.Subject: portal.
const DescribeSubjectPortal wire.Letter = 'P'

func (m *Describe) read(r *wire.Reader) {
	r.Constant("tag", "D")
	r.Length("length", 4)
	m.Subject = r.Letter("subject", "SP")
	m.Name = r.Text("name")
}

func (m *Describe) write(w *wire.Writer) {
	w.String("D")
	w.Uint32(0)
	w.Letter("subject", m.Subject, "SP")
	w.Text("name", m.Name)
	w.Close(1, 4)
}

func (m *Describe) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("subject")
	j.Letter(m.Subject)
	j.Key("name")
	j.Text(m.Name)
	j.End()
}

// Execute: Runs a portal.
//
// PostgreSQL 10 and newer, sent by the client.
type Execute struct {
	// Name of the portal, empty for the one without a name.
	Portal wire.Text

	// Number of rows to return at most, 0 for all.
	RowLimit uint32
}

func (m *Execute) read(r *wire.Reader) {
	r.Constant("tag", "E")
	r.Length("length", 4)
	m.Portal = r.Text("portal")
	m.RowLimit = r.Uint32("row_limit")
}

func (m *Execute) write(w *wire.Writer) {
	w.String("E")
	w.Uint32(0)
	w.Text("portal", m.Portal)
	w.Uint32(m.RowLimit)
	w.Close(1, 4)
}

func (m *Execute) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("portal")
	j.Text(m.Portal)
	j.Key("row_limit")
	j.Uint(uint64(m.RowLimit))
	j.End()
}

// Close: Closes a statement or a portal.
//
// PostgreSQL 10 and newer, sent by the client.
type Close struct {
	// What is closed.
	Subject wire.Letter

	// Its name.
	Name wire.Text
}

// CloseSubjectStatement is a value of Close.Subject: statement.
const CloseSubjectStatement wire.Letter = 'S'

// CloseSubjectPortal is a value of Close.Subject: portal.
const CloseSubjectPortal wire.Letter = 'P'

func (m *Close) read(r *wire.Reader) {
	r.Constant("tag", "C")
	r.Length("length", 4)
	m.Subject = r.Letter("subject", "SP")
	m.Name = r.Text("name")
}

func (m *Close) write(w *wire.Writer) {
	w.String("C")
	w.Uint32(0)
	w.Letter("subject", m.Subject, "SP")
	w.Text("name", m.Name)
	w.Close(1, 4)
}

func (m *Close) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("subject")
	j.Letter(m.Subject)
	j.Key("name")
	j.Text(m.Name)
	j.End()
}

// Flush: Asks for the answers that there are.
//
// PostgreSQL 10 and newer, sent by the client.
type Flush struct{}

func (m *Flush) read(r *wire.Reader) {
	r.Constant("tag", "H")
	r.Length("length", 4)
}

func (m *Flush) write(w *wire.Writer) {
	w.String("H")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *Flush) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// Sync: Ends a series of messages of the extended query protocol.
//
// PostgreSQL 10 and newer, sent by the client.
type Sync struct{}

func (m *Sync) read(r *wire.Reader) {
	r.Constant("tag", "S")
	r.Length("length", 4)
}

func (m *Sync) write(w *wire.Writer) {
	w.String("S")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *Sync) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// ParseComplete: A statement has been prepared.
//
// PostgreSQL 10 and newer, sent by the server.
type ParseComplete struct{}

func (m *ParseComplete) read(r *wire.Reader) {
	r.Constant("tag", "1")
	r.Length("length", 4)
}

func (m *ParseComplete) write(w *wire.Writer) {
	w.String("1")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *ParseComplete) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// BindComplete: A portal has been created.
//
// PostgreSQL 10 and newer, sent by the server.
type BindComplete struct{}

func (m *BindComplete) read(r *wire.Reader) {
	r.Constant("tag", "2")
	r.Length("length", 4)
}

func (m *BindComplete) write(w *wire.Writer) {
	w.String("2")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *BindComplete) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// CloseComplete: A statement or a portal has been closed, or did not exist.
//
// PostgreSQL 10 and newer, sent by the server.
type CloseComplete struct{}

func (m *CloseComplete) read(r *wire.Reader) {
	r.Constant("tag", "3")
	r.Length("length", 4)
}

func (m *CloseComplete) write(w *wire.Writer) {
	w.String("3")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *CloseComplete) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// ParameterDescription: Describes the parameters of a statement.
//
// PostgreSQL 10 and newer, sent by the server.
type ParameterDescription struct {
	// Types of the parameters.
	Types []uint32
}

func (m *ParameterDescription) read(r *wire.Reader) {
	r.Constant("tag", "t")
	r.Length("length", 4)
	typeCount := r.Uint16("type_count")
	r.Push("types")
	m.Types = make([]uint32, r.Room(uint64(typeCount)))
	for i := 0; uint64(i) < uint64(typeCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Types) {
			var item uint32
			m.Types = append(m.Types, item)
		}
		m.Types[i] = r.Uint32("")
	}
	r.Pop()
}

func (m *ParameterDescription) write(w *wire.Writer) {
	w.String("t")
	w.Uint32(0)
	w.Size("type_count", 2, len(m.Types))
	w.Push("types")
	for i := range m.Types {
		w.Index(i)
		w.Uint32(m.Types[i])
	}
	w.Pop()
	w.Close(1, 4)
}

func (m *ParameterDescription) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("types")
	j.Array()
	for i := range m.Types {
		j.Uint(uint64(m.Types[i]))
	}
	j.End()
	j.End()
}

// NoData: The statement or the portal returns no rows.
//
// PostgreSQL 10 and newer, sent by the server.
type NoData struct{}

func (m *NoData) read(r *wire.Reader) {
	r.Constant("tag", "n")
	r.Length("length", 4)
}

func (m *NoData) write(w *wire.Writer) {
	w.String("n")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *NoData) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// PortalSuspended: An Execute has returned as many rows as it requested; the portal may have more.
//
// PostgreSQL 10 and newer, sent by the server.
type PortalSuspended struct{}

func (m *PortalSuspended) read(r *wire.Reader) {
	r.Constant("tag", "s")
	r.Length("length", 4)
}

func (m *PortalSuspended) write(w *wire.Writer) {
	w.String("s")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *PortalSuspended) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// FunctionCall: Calls a function by its OID.
//
// PostgreSQL 10 and newer, sent by the client.
type FunctionCall struct {
	// OID of the function.
	FunctionOID uint32

	// Formats of the arguments.
	Formats []uint16

	// The arguments.
	Arguments []wire.Optional[[]byte]

	// Format of the result.
	ResultFormat uint16
}

// FunctionCallResultFormatText is a value of FunctionCall.ResultFormat: text.
const FunctionCallResultFormatText uint16 = 0

// FunctionCallResultFormatBinary is a value of FunctionCall.ResultFormat: binary.
const FunctionCallResultFormatBinary uint16 = 1

func (m *FunctionCall) read(r *wire.Reader) {
	r.Constant("tag", "F")
	r.Length("length", 4)
	m.FunctionOID = r.Uint32("function_oid")
	formatCount := r.Uint16("format_count")
	r.Push("formats")
	m.Formats = make([]uint16, r.Room(uint64(formatCount)))
	for i := 0; uint64(i) < uint64(formatCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Formats) {
			var item uint16
			m.Formats = append(m.Formats, item)
		}
		m.Formats[i] = wire.OneOf(r, "", r.Uint16(""), 0, 1)
	}
	r.Pop()
	argumentCount := r.Uint16("argument_count")
	r.Push("arguments")
	m.Arguments = make([]wire.Optional[[]byte], r.Room(uint64(argumentCount)))
	for i := 0; uint64(i) < uint64(argumentCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Arguments) {
			var item wire.Optional[[]byte]
			m.Arguments = append(m.Arguments, item)
		}
		m.Arguments[i] = readFunctionCallArguments(r)
	}
	r.Pop()
	m.ResultFormat = wire.OneOf(r, "result_format", r.Uint16("result_format"), 0, 1)
}

func (m *FunctionCall) write(w *wire.Writer) {
	w.String("F")
	w.Uint32(0)
	w.Uint32(m.FunctionOID)
	w.Size("format_count", 2, len(m.Formats))
	w.Push("formats")
	for i := range m.Formats {
		w.Index(i)
		w.Uint16(wire.CheckOneOf(w, "", m.Formats[i], 0, 1))
	}
	w.Pop()
	w.Size("argument_count", 2, len(m.Arguments))
	w.Push("arguments")
	for i := range m.Arguments {
		w.Index(i)
		writeFunctionCallArguments(m.Arguments[i], w)
	}
	w.Pop()
	w.Uint16(wire.CheckOneOf(w, "result_format", m.ResultFormat, 0, 1))
	w.Close(1, 4)
}

func (m *FunctionCall) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("function_oid")
	j.Uint(uint64(m.FunctionOID))
	j.Key("formats")
	j.Array()
	for i := range m.Formats {
		j.Uint(uint64(m.Formats[i]))
	}
	j.End()
	j.Key("arguments")
	j.Array()
	for i := range m.Arguments {
		if m.Arguments[i].Valid {
			j.Hex("hex", m.Arguments[i].V)
		} else {
			j.Null()
		}
	}
	j.End()
	j.Key("result_format")
	j.Uint(uint64(m.ResultFormat))
	j.End()
}

func readFunctionCallArguments(r *wire.Reader) (value wire.Optional[[]byte]) {
	argumentLength := r.Int32("argument_length")
	value = r.Nullable("argument", int64(argumentLength), -1)
	return value
}

func writeFunctionCallArguments(value wire.Optional[[]byte], w *wire.Writer) {
	w.NullableSize("argument_length", 4, len(value.V), value.Valid, -1)
	w.Bytes(value.V)
}

// FunctionCallResponse: The result of a function call.
//
// PostgreSQL 10 and newer, sent by the server.
type FunctionCallResponse struct {
	// The result in the requested format.
	Result wire.Optional[[]byte]
}

func (m *FunctionCallResponse) read(r *wire.Reader) {
	r.Constant("tag", "V")
	r.Length("length", 4)
	resultLength := r.Int32("result_length")
	m.Result = r.Nullable("result", int64(resultLength), -1)
}

func (m *FunctionCallResponse) write(w *wire.Writer) {
	w.String("V")
	w.Uint32(0)
	w.NullableSize("result_length", 4, len(m.Result.V), m.Result.Valid, -1)
	w.Bytes(m.Result.V)
	w.Close(1, 4)
}

func (m *FunctionCallResponse) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("result")
	if m.Result.Valid {
		j.Hex("hex", m.Result.V)
	} else {
		j.Null()
	}
	j.End()
}

// Terminate: The client ends the connection.
//
// PostgreSQL 10 and newer, sent by the client.
type Terminate struct{}

func (m *Terminate) read(r *wire.Reader) {
	r.Constant("tag", "X")
	r.Length("length", 4)
}

func (m *Terminate) write(w *wire.Writer) {
	w.String("X")
	w.Uint32(0)
	w.Close(1, 4)
}

func (m *Terminate) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// ConnectionMessage is any of the messages.
type ConnectionMessage interface {
	// MessageName returns the name of the message.
	MessageName() string

	json(j *wire.JSON, layout *Layout)
	index() int
}

// MessageName returns the name of the message.
func (*StartupMessage) MessageName() string {
	return "StartupMessage"
}

func (*StartupMessage) index() int {
	return 0
}

// MessageName returns the name of the message.
func (*SSLRequest) MessageName() string {
	return "SSLRequest"
}

func (*SSLRequest) index() int {
	return 1
}

// MessageName returns the name of the message.
func (*GSSENCRequest) MessageName() string {
	return "GSSENCRequest"
}

func (*GSSENCRequest) index() int {
	return 2
}

// MessageName returns the name of the message.
func (*CancelRequest) MessageName() string {
	return "CancelRequest"
}

func (*CancelRequest) index() int {
	return 3
}

// MessageName returns the name of the message.
func (*EncryptionAccepted) MessageName() string {
	return "EncryptionAccepted"
}

func (*EncryptionAccepted) index() int {
	return 4
}

// MessageName returns the name of the message.
func (*GSSEncryptionAccepted) MessageName() string {
	return "GSSEncryptionAccepted"
}

func (*GSSEncryptionAccepted) index() int {
	return 5
}

// MessageName returns the name of the message.
func (*EncryptionRefused) MessageName() string {
	return "EncryptionRefused"
}

func (*EncryptionRefused) index() int {
	return 6
}

// MessageName returns the name of the message.
func (*AuthenticationOk) MessageName() string {
	return "AuthenticationOk"
}

func (*AuthenticationOk) index() int {
	return 7
}

// MessageName returns the name of the message.
func (*AuthenticationKerberosV5) MessageName() string {
	return "AuthenticationKerberosV5"
}

func (*AuthenticationKerberosV5) index() int {
	return 8
}

// MessageName returns the name of the message.
func (*AuthenticationCleartextPassword) MessageName() string {
	return "AuthenticationCleartextPassword"
}

func (*AuthenticationCleartextPassword) index() int {
	return 9
}

// MessageName returns the name of the message.
func (*AuthenticationMD5Password) MessageName() string {
	return "AuthenticationMD5Password"
}

func (*AuthenticationMD5Password) index() int {
	return 10
}

// MessageName returns the name of the message.
func (*AuthenticationGSS) MessageName() string {
	return "AuthenticationGSS"
}

func (*AuthenticationGSS) index() int {
	return 11
}

// MessageName returns the name of the message.
func (*AuthenticationGSSContinue) MessageName() string {
	return "AuthenticationGSSContinue"
}

func (*AuthenticationGSSContinue) index() int {
	return 12
}

// MessageName returns the name of the message.
func (*AuthenticationSSPI) MessageName() string {
	return "AuthenticationSSPI"
}

func (*AuthenticationSSPI) index() int {
	return 13
}

// MessageName returns the name of the message.
func (*AuthenticationSASL) MessageName() string {
	return "AuthenticationSASL"
}

func (*AuthenticationSASL) index() int {
	return 14
}

// MessageName returns the name of the message.
func (*AuthenticationSASLContinue) MessageName() string {
	return "AuthenticationSASLContinue"
}

func (*AuthenticationSASLContinue) index() int {
	return 15
}

// MessageName returns the name of the message.
func (*AuthenticationSASLFinal) MessageName() string {
	return "AuthenticationSASLFinal"
}

func (*AuthenticationSASLFinal) index() int {
	return 16
}

// MessageName returns the name of the message.
func (*PasswordMessage) MessageName() string {
	return "PasswordMessage"
}

func (*PasswordMessage) index() int {
	return 17
}

// MessageName returns the name of the message.
func (*GSSResponse) MessageName() string {
	return "GSSResponse"
}

func (*GSSResponse) index() int {
	return 18
}

// MessageName returns the name of the message.
func (*SASLInitialResponse) MessageName() string {
	return "SASLInitialResponse"
}

func (*SASLInitialResponse) index() int {
	return 19
}

// MessageName returns the name of the message.
func (*SASLResponse) MessageName() string {
	return "SASLResponse"
}

func (*SASLResponse) index() int {
	return 20
}

// MessageName returns the name of the message.
func (*NegotiateProtocolVersion) MessageName() string {
	return "NegotiateProtocolVersion"
}

func (*NegotiateProtocolVersion) index() int {
	return 21
}

// MessageName returns the name of the message.
func (*ParameterStatus) MessageName() string {
	return "ParameterStatus"
}

func (*ParameterStatus) index() int {
	return 22
}

// MessageName returns the name of the message.
func (*BackendKeyData) MessageName() string {
	return "BackendKeyData"
}

func (*BackendKeyData) index() int {
	return 23
}

// MessageName returns the name of the message.
func (*NotificationResponse) MessageName() string {
	return "NotificationResponse"
}

func (*NotificationResponse) index() int {
	return 24
}

// MessageName returns the name of the message.
func (*ReadyForQuery) MessageName() string {
	return "ReadyForQuery"
}

func (*ReadyForQuery) index() int {
	return 25
}

// MessageName returns the name of the message.
func (*Query) MessageName() string {
	return "Query"
}

func (*Query) index() int {
	return 26
}

// MessageName returns the name of the message.
func (*RowDescription) MessageName() string {
	return "RowDescription"
}

func (*RowDescription) index() int {
	return 27
}

// MessageName returns the name of the message.
func (*DataRow) MessageName() string {
	return "DataRow"
}

func (*DataRow) index() int {
	return 28
}

// MessageName returns the name of the message.
func (*CommandComplete) MessageName() string {
	return "CommandComplete"
}

func (*CommandComplete) index() int {
	return 29
}

// MessageName returns the name of the message.
func (*EmptyQueryResponse) MessageName() string {
	return "EmptyQueryResponse"
}

func (*EmptyQueryResponse) index() int {
	return 30
}

// MessageName returns the name of the message.
func (*ErrorResponse) MessageName() string {
	return "ErrorResponse"
}

func (*ErrorResponse) index() int {
	return 31
}

// MessageName returns the name of the message.
func (*NoticeResponse) MessageName() string {
	return "NoticeResponse"
}

func (*NoticeResponse) index() int {
	return 32
}

// MessageName returns the name of the message.
func (*CopyInResponse) MessageName() string {
	return "CopyInResponse"
}

func (*CopyInResponse) index() int {
	return 33
}

// MessageName returns the name of the message.
func (*CopyOutResponse) MessageName() string {
	return "CopyOutResponse"
}

func (*CopyOutResponse) index() int {
	return 34
}

// MessageName returns the name of the message.
func (*CopyBothResponse) MessageName() string {
	return "CopyBothResponse"
}

func (*CopyBothResponse) index() int {
	return 35
}

// MessageName returns the name of the message.
func (*CopyData) MessageName() string {
	return "CopyData"
}

func (*CopyData) index() int {
	return 36
}

// MessageName returns the name of the message.
func (*ClientCopyDone) MessageName() string {
	return "ClientCopyDone"
}

func (*ClientCopyDone) index() int {
	return 37
}

// MessageName returns the name of the message.
func (*ServerCopyDone) MessageName() string {
	return "ServerCopyDone"
}

func (*ServerCopyDone) index() int {
	return 38
}

// MessageName returns the name of the message.
func (*CopyFail) MessageName() string {
	return "CopyFail"
}

func (*CopyFail) index() int {
	return 39
}

// MessageName returns the name of the message.
func (*Parse) MessageName() string {
	return "Parse"
}

func (*Parse) index() int {
	return 40
}

// MessageName returns the name of the message.
func (*Bind) MessageName() string {
	return "Bind"
}

func (*Bind) index() int {
	return 41
}

// MessageName returns the name of the message.
func (*Describe) MessageName() string {
	return "Describe"
}

func (*Describe) index() int {
	return 42
}

// MessageName returns the name of the message.
func (*Execute) MessageName() string {
	return "Execute"
}

func (*Execute) index() int {
	return 43
}

// MessageName returns the name of the message.
func (*Close) MessageName() string {
	return "Close"
}

func (*Close) index() int {
	return 44
}

// MessageName returns the name of the message.
func (*Flush) MessageName() string {
	return "Flush"
}

func (*Flush) index() int {
	return 45
}

// MessageName returns the name of the message.
func (*Sync) MessageName() string {
	return "Sync"
}

func (*Sync) index() int {
	return 46
}

// MessageName returns the name of the message.
func (*ParseComplete) MessageName() string {
	return "ParseComplete"
}

func (*ParseComplete) index() int {
	return 47
}

// MessageName returns the name of the message.
func (*BindComplete) MessageName() string {
	return "BindComplete"
}

func (*BindComplete) index() int {
	return 48
}

// MessageName returns the name of the message.
func (*CloseComplete) MessageName() string {
	return "CloseComplete"
}

func (*CloseComplete) index() int {
	return 49
}

// MessageName returns the name of the message.
func (*ParameterDescription) MessageName() string {
	return "ParameterDescription"
}

func (*ParameterDescription) index() int {
	return 50
}

// MessageName returns the name of the message.
func (*NoData) MessageName() string {
	return "NoData"
}

func (*NoData) index() int {
	return 51
}

// MessageName returns the name of the message.
func (*PortalSuspended) MessageName() string {
	return "PortalSuspended"
}

func (*PortalSuspended) index() int {
	return 52
}

// MessageName returns the name of the message.
func (*FunctionCall) MessageName() string {
	return "FunctionCall"
}

func (*FunctionCall) index() int {
	return 53
}

// MessageName returns the name of the message.
func (*FunctionCallResponse) MessageName() string {
	return "FunctionCallResponse"
}

func (*FunctionCallResponse) index() int {
	return 54
}

// MessageName returns the name of the message.
func (*Terminate) MessageName() string {
	return "Terminate"
}

func (*Terminate) index() int {
	return 55
}

// ToJSON returns a message as JSON, as the golden vectors have it.
func ToJSON(message ConnectionMessage, layout *Layout) []byte {
	j := wire.NewJSON(message.MessageName())
	message.json(j, layout)
	return j.Finish()
}

// BuildMessage returns the bytes of a message.
func BuildMessage(message ConnectionMessage) ([]byte, error) {
	w := wire.NewWriter(message.MessageName())
	switch m := message.(type) {
	case *StartupMessage:
		m.write(w)
	case *SSLRequest:
		m.write(w)
	case *GSSENCRequest:
		m.write(w)
	case *CancelRequest:
		m.write(w)
	case *EncryptionAccepted:
		m.write(w)
	case *GSSEncryptionAccepted:
		m.write(w)
	case *EncryptionRefused:
		m.write(w)
	case *AuthenticationOk:
		m.write(w)
	case *AuthenticationKerberosV5:
		m.write(w)
	case *AuthenticationCleartextPassword:
		m.write(w)
	case *AuthenticationMD5Password:
		m.write(w)
	case *AuthenticationGSS:
		m.write(w)
	case *AuthenticationGSSContinue:
		m.write(w)
	case *AuthenticationSSPI:
		m.write(w)
	case *AuthenticationSASL:
		m.write(w)
	case *AuthenticationSASLContinue:
		m.write(w)
	case *AuthenticationSASLFinal:
		m.write(w)
	case *PasswordMessage:
		m.write(w)
	case *GSSResponse:
		m.write(w)
	case *SASLInitialResponse:
		m.write(w)
	case *SASLResponse:
		m.write(w)
	case *NegotiateProtocolVersion:
		m.write(w)
	case *ParameterStatus:
		m.write(w)
	case *BackendKeyData:
		m.write(w)
	case *NotificationResponse:
		m.write(w)
	case *ReadyForQuery:
		m.write(w)
	case *Query:
		m.write(w)
	case *RowDescription:
		m.write(w)
	case *DataRow:
		m.write(w)
	case *CommandComplete:
		m.write(w)
	case *EmptyQueryResponse:
		m.write(w)
	case *ErrorResponse:
		m.write(w)
	case *NoticeResponse:
		m.write(w)
	case *CopyInResponse:
		m.write(w)
	case *CopyOutResponse:
		m.write(w)
	case *CopyBothResponse:
		m.write(w)
	case *CopyData:
		m.write(w)
	case *ClientCopyDone:
		m.write(w)
	case *ServerCopyDone:
		m.write(w)
	case *CopyFail:
		m.write(w)
	case *Parse:
		m.write(w)
	case *Bind:
		m.write(w)
	case *Describe:
		m.write(w)
	case *Execute:
		m.write(w)
	case *Close:
		m.write(w)
	case *Flush:
		m.write(w)
	case *Sync:
		m.write(w)
	case *ParseComplete:
		m.write(w)
	case *BindComplete:
		m.write(w)
	case *CloseComplete:
		m.write(w)
	case *ParameterDescription:
		m.write(w)
	case *NoData:
		m.write(w)
	case *PortalSuspended:
		m.write(w)
	case *FunctionCall:
		m.write(w)
	case *FunctionCallResponse:
		m.write(w)
	case *Terminate:
		m.write(w)
	}
	return w.Finish()
}

// Sender is who sends a message.
type Sender int

// SenderServer is the server.
const SenderServer Sender = 0

// SenderClient is the client.
const SenderClient Sender = 1

// State is a state of a connection; the initial one is 0.
type State int

// StateStartup: The client has connected.
const StateStartup State = 0

// StateEncryption: The client has requested encryption.
const StateEncryption State = 1

// StateAuthentication: The server authenticates the client.
const StateAuthentication State = 2

// StatePassword: The server has requested a password.
const StatePassword State = 3

// StateGss: The server has requested GSSAPI or SSPI data, or has sent its last.
const StateGss State = 4

// StateSasl: The server has named SASL mechanisms.
const StateSasl State = 5

// StateSaslResponse: The server has sent a SASL challenge.
const StateSaslResponse State = 6

// StateStarting: The client is authenticated; the server reports its settings.
const StateStarting State = 7

// StateIdle: The server waits for a command, or answers commands that the client has sent without
// waiting (a pipeline).
const StateIdle State = 8

// StateQuery: The last command of the client is a simple query or a function call; the server
// answers it, or earlier ones.
const StateQuery State = 9

// StateExtended: The client has sent messages of the extended query protocol; the server answers
// them. A Sync leaves the state as it is, and the ReadyForQuery that answers it ends it.
const StateExtended State = 10

// StateCopyIn: The client sends the data of a COPY FROM STDIN.
const StateCopyIn State = 11

// StateCopyOut: The server sends the data of a COPY TO STDOUT. After further commands of the client
// the state is that of these, which permits the rest of the data.
const StateCopyOut State = 12

// StateCopyBoth: Both send CopyData.
const StateCopyBoth State = 13

// StateCopyClientDone: The client has ended its side of the copy; the server ends the command, and
// may answer others of the same query or pipeline.
const StateCopyClientDone State = 14

// StateCopyServerDone: The server has ended its side of the copy; it ends the command, and may
// answer others of the same query or pipeline.
const StateCopyServerDone State = 15

// StateClosed: The client has said goodbye; what the server was still sending is read by nobody.
const StateClosed State = 16

// States are the names of the states.
var States = []string{
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
}

// The messages that each sender can send in a state, each with the state that follows.
var following = [2][][][2]int{
	{
		{{31, 0}},
		{{4, 0}, {5, 0}, {6, 0}, {31, 1}},
		{{7, 7}, {8, 2}, {9, 3}, {10, 3}, {11, 4}, {12, 4}, {13, 4}, {14, 5}, {15, 6}, {16, 2}, {21, 2}, {31, 2}, {32, 2}},
		{{31, 3}},
		{{7, 7}, {8, 4}, {9, 3}, {10, 3}, {11, 4}, {12, 4}, {13, 4}, {14, 5}, {31, 4}, {32, 4}},
		{{31, 5}},
		{{31, 6}},
		{{22, 7}, {23, 7}, {24, 7}, {25, 8}, {31, 7}, {32, 7}},
		{{22, 8}, {24, 8}, {25, 8}, {27, 8}, {28, 8}, {29, 8}, {30, 8}, {31, 8}, {32, 8}, {33, 11}, {34, 12}, {35, 13}, {47, 8}, {48, 8}, {49, 8}, {50, 8}, {51, 8}, {52, 8}, {54, 8}},
		{{22, 9}, {24, 9}, {25, 8}, {27, 9}, {28, 9}, {29, 9}, {30, 9}, {31, 9}, {32, 9}, {33, 11}, {34, 12}, {35, 13}, {36, 9}, {38, 15}, {47, 9}, {48, 9}, {49, 9}, {50, 9}, {51, 9}, {52, 9}, {54, 9}},
		{{22, 10}, {24, 10}, {25, 8}, {27, 10}, {28, 10}, {29, 10}, {30, 10}, {31, 10}, {32, 10}, {33, 11}, {34, 12}, {36, 10}, {38, 15}, {47, 10}, {48, 10}, {49, 10}, {50, 10}, {51, 10}, {52, 10}, {54, 10}},
		{{22, 11}, {24, 11}, {25, 8}, {27, 11}, {28, 11}, {29, 11}, {30, 11}, {31, 11}, {32, 11}, {33, 11}, {34, 12}, {36, 11}, {47, 11}, {48, 11}, {49, 11}, {50, 11}, {51, 11}, {52, 11}, {54, 11}},
		{{22, 12}, {24, 12}, {25, 8}, {31, 12}, {32, 12}, {36, 12}, {38, 15}},
		{{22, 13}, {24, 13}, {25, 8}, {29, 13}, {31, 13}, {32, 13}, {36, 13}, {38, 15}},
		{{22, 14}, {24, 14}, {25, 8}, {27, 14}, {28, 14}, {29, 14}, {30, 14}, {31, 14}, {32, 14}, {33, 11}, {34, 12}, {36, 14}, {38, 15}, {47, 14}, {48, 14}, {49, 14}, {50, 14}, {51, 14}, {52, 14}, {54, 14}},
		{{22, 15}, {24, 15}, {25, 8}, {27, 15}, {28, 15}, {29, 15}, {30, 15}, {31, 15}, {32, 15}, {33, 11}, {34, 12}, {36, 15}, {47, 15}, {48, 15}, {49, 15}, {50, 15}, {51, 15}, {52, 15}, {54, 15}},
		{},
	},
	{
		{{0, 2}, {1, 1}, {2, 1}, {3, 16}},
		{},
		{},
		{{17, 2}},
		{{18, 2}},
		{{19, 2}},
		{{20, 2}},
		{},
		{{26, 9}, {36, 8}, {37, 8}, {39, 8}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 8}, {46, 8}, {53, 9}, {55, 16}},
		{{26, 9}, {36, 9}, {37, 9}, {39, 9}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 9}, {46, 9}, {53, 9}, {55, 16}},
		{{26, 9}, {36, 10}, {37, 10}, {39, 10}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 10}, {46, 10}, {53, 9}, {55, 16}},
		{{36, 11}, {37, 14}, {39, 14}, {45, 11}, {46, 11}, {55, 16}},
		{{26, 9}, {36, 12}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 12}, {46, 12}, {53, 9}, {55, 16}},
		{{36, 13}, {37, 14}, {39, 14}, {55, 16}},
		{{26, 9}, {36, 14}, {37, 14}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 14}, {46, 14}, {53, 9}, {55, 16}},
		{{26, 9}, {36, 15}, {37, 14}, {39, 14}, {40, 10}, {41, 10}, {42, 10}, {43, 10}, {44, 10}, {45, 15}, {46, 15}, {53, 9}, {55, 16}},
		{},
	},
}

// The tag of each message, none for one without, and its constant after the length.
var begins = [][2]string{
	{"", "\x00\x03"},
	{"", "\x04\xd2\x16\x2f"},
	{"", "\x04\xd2\x16\x30"},
	{"", "\x04\xd2\x16\x2e"},
	{"S", ""},
	{"G", ""},
	{"N", ""},
	{"R", "\x00\x00\x00\x00"},
	{"R", "\x00\x00\x00\x02"},
	{"R", "\x00\x00\x00\x03"},
	{"R", "\x00\x00\x00\x05"},
	{"R", "\x00\x00\x00\x07"},
	{"R", "\x00\x00\x00\x08"},
	{"R", "\x00\x00\x00\x09"},
	{"R", "\x00\x00\x00\x0a"},
	{"R", "\x00\x00\x00\x0b"},
	{"R", "\x00\x00\x00\x0c"},
	{"p", ""},
	{"p", ""},
	{"p", ""},
	{"p", ""},
	{"v", ""},
	{"S", ""},
	{"K", ""},
	{"A", ""},
	{"Z", ""},
	{"Q", ""},
	{"T", ""},
	{"D", ""},
	{"C", ""},
	{"I", ""},
	{"E", ""},
	{"N", ""},
	{"G", ""},
	{"H", ""},
	{"W", ""},
	{"d", ""},
	{"c", ""},
	{"c", ""},
	{"f", ""},
	{"P", ""},
	{"B", ""},
	{"D", ""},
	{"E", ""},
	{"C", ""},
	{"H", ""},
	{"S", ""},
	{"1", ""},
	{"2", ""},
	{"3", ""},
	{"t", ""},
	{"n", ""},
	{"s", ""},
	{"F", ""},
	{"V", ""},
	{"X", ""},
}

// NextState returns the state after a message; an error if the sender cannot send it in this state.
func NextState(message ConnectionMessage, sender Sender, state State) (State, error) {
	for _, each := range following[sender][state] {
		if each[0] == message.index() {
			return State(each[1]), nil
		}
	}
	return state, wire.NotPermitted(message.MessageName())
}

// ParseMessage parses a message of a connection, with its tag and length, which fills the bytes
// exactly.
func ParseMessage(data []byte, sender Sender, state State) (ConnectionMessage, error) {
	r := wire.NewReader(data)
	var message ConnectionMessage
	switch wire.Begins(data, following[sender][state], begins, 4) {
	case 0:
		r.Begin("StartupMessage")
		m := new(StartupMessage)
		m.read(r)
		message = m
	case 1:
		r.Begin("SSLRequest")
		m := new(SSLRequest)
		m.read(r)
		message = m
	case 2:
		r.Begin("GSSENCRequest")
		m := new(GSSENCRequest)
		m.read(r)
		message = m
	case 3:
		r.Begin("CancelRequest")
		m := new(CancelRequest)
		m.read(r)
		message = m
	case 4:
		r.Begin("EncryptionAccepted")
		m := new(EncryptionAccepted)
		m.read(r)
		message = m
	case 5:
		r.Begin("GSSEncryptionAccepted")
		m := new(GSSEncryptionAccepted)
		m.read(r)
		message = m
	case 6:
		r.Begin("EncryptionRefused")
		m := new(EncryptionRefused)
		m.read(r)
		message = m
	case 7:
		r.Begin("AuthenticationOk")
		m := new(AuthenticationOk)
		m.read(r)
		message = m
	case 8:
		r.Begin("AuthenticationKerberosV5")
		m := new(AuthenticationKerberosV5)
		m.read(r)
		message = m
	case 9:
		r.Begin("AuthenticationCleartextPassword")
		m := new(AuthenticationCleartextPassword)
		m.read(r)
		message = m
	case 10:
		r.Begin("AuthenticationMD5Password")
		m := new(AuthenticationMD5Password)
		m.read(r)
		message = m
	case 11:
		r.Begin("AuthenticationGSS")
		m := new(AuthenticationGSS)
		m.read(r)
		message = m
	case 12:
		r.Begin("AuthenticationGSSContinue")
		m := new(AuthenticationGSSContinue)
		m.read(r)
		message = m
	case 13:
		r.Begin("AuthenticationSSPI")
		m := new(AuthenticationSSPI)
		m.read(r)
		message = m
	case 14:
		r.Begin("AuthenticationSASL")
		m := new(AuthenticationSASL)
		m.read(r)
		message = m
	case 15:
		r.Begin("AuthenticationSASLContinue")
		m := new(AuthenticationSASLContinue)
		m.read(r)
		message = m
	case 16:
		r.Begin("AuthenticationSASLFinal")
		m := new(AuthenticationSASLFinal)
		m.read(r)
		message = m
	case 17:
		r.Begin("PasswordMessage")
		m := new(PasswordMessage)
		m.read(r)
		message = m
	case 18:
		r.Begin("GSSResponse")
		m := new(GSSResponse)
		m.read(r)
		message = m
	case 19:
		r.Begin("SASLInitialResponse")
		m := new(SASLInitialResponse)
		m.read(r)
		message = m
	case 20:
		r.Begin("SASLResponse")
		m := new(SASLResponse)
		m.read(r)
		message = m
	case 21:
		r.Begin("NegotiateProtocolVersion")
		m := new(NegotiateProtocolVersion)
		m.read(r)
		message = m
	case 22:
		r.Begin("ParameterStatus")
		m := new(ParameterStatus)
		m.read(r)
		message = m
	case 23:
		r.Begin("BackendKeyData")
		m := new(BackendKeyData)
		m.read(r)
		message = m
	case 24:
		r.Begin("NotificationResponse")
		m := new(NotificationResponse)
		m.read(r)
		message = m
	case 25:
		r.Begin("ReadyForQuery")
		m := new(ReadyForQuery)
		m.read(r)
		message = m
	case 26:
		r.Begin("Query")
		m := new(Query)
		m.read(r)
		message = m
	case 27:
		r.Begin("RowDescription")
		m := new(RowDescription)
		m.read(r)
		message = m
	case 28:
		r.Begin("DataRow")
		m := new(DataRow)
		m.read(r)
		message = m
	case 29:
		r.Begin("CommandComplete")
		m := new(CommandComplete)
		m.read(r)
		message = m
	case 30:
		r.Begin("EmptyQueryResponse")
		m := new(EmptyQueryResponse)
		m.read(r)
		message = m
	case 31:
		r.Begin("ErrorResponse")
		m := new(ErrorResponse)
		m.read(r)
		message = m
	case 32:
		r.Begin("NoticeResponse")
		m := new(NoticeResponse)
		m.read(r)
		message = m
	case 33:
		r.Begin("CopyInResponse")
		m := new(CopyInResponse)
		m.read(r)
		message = m
	case 34:
		r.Begin("CopyOutResponse")
		m := new(CopyOutResponse)
		m.read(r)
		message = m
	case 35:
		r.Begin("CopyBothResponse")
		m := new(CopyBothResponse)
		m.read(r)
		message = m
	case 36:
		r.Begin("CopyData")
		m := new(CopyData)
		m.read(r)
		message = m
	case 37:
		r.Begin("ClientCopyDone")
		m := new(ClientCopyDone)
		m.read(r)
		message = m
	case 38:
		r.Begin("ServerCopyDone")
		m := new(ServerCopyDone)
		m.read(r)
		message = m
	case 39:
		r.Begin("CopyFail")
		m := new(CopyFail)
		m.read(r)
		message = m
	case 40:
		r.Begin("Parse")
		m := new(Parse)
		m.read(r)
		message = m
	case 41:
		r.Begin("Bind")
		m := new(Bind)
		m.read(r)
		message = m
	case 42:
		r.Begin("Describe")
		m := new(Describe)
		m.read(r)
		message = m
	case 43:
		r.Begin("Execute")
		m := new(Execute)
		m.read(r)
		message = m
	case 44:
		r.Begin("Close")
		m := new(Close)
		m.read(r)
		message = m
	case 45:
		r.Begin("Flush")
		m := new(Flush)
		m.read(r)
		message = m
	case 46:
		r.Begin("Sync")
		m := new(Sync)
		m.read(r)
		message = m
	case 47:
		r.Begin("ParseComplete")
		m := new(ParseComplete)
		m.read(r)
		message = m
	case 48:
		r.Begin("BindComplete")
		m := new(BindComplete)
		m.read(r)
		message = m
	case 49:
		r.Begin("CloseComplete")
		m := new(CloseComplete)
		m.read(r)
		message = m
	case 50:
		r.Begin("ParameterDescription")
		m := new(ParameterDescription)
		m.read(r)
		message = m
	case 51:
		r.Begin("NoData")
		m := new(NoData)
		m.read(r)
		message = m
	case 52:
		r.Begin("PortalSuspended")
		m := new(PortalSuspended)
		m.read(r)
		message = m
	case 53:
		r.Begin("FunctionCall")
		m := new(FunctionCall)
		m.read(r)
		message = m
	case 54:
		r.Begin("FunctionCallResponse")
		m := new(FunctionCallResponse)
		m.read(r)
		message = m
	case 55:
		r.Begin("Terminate")
		m := new(Terminate)
		m.read(r)
		message = m
	default:
		return nil, r.UnknownTag()
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return message, nil
}
