//! A connection of pgwire-replication's parts. Its whole client asks for version 1 alone, and reads Begin and Commit by
//! itself, so that a codec does not see their bytes.

use bytes::Bytes;
use pgwire_replication::auth::ScramClient;
use pgwire_replication::protocol::framing::{
    write_copy_data, write_password_message, write_query, write_startup_message, MessageReader,
};
use pgwire_replication::protocol::messages::{auth, parse_auth_request, ErrorFields};
use pgwire_replication::protocol::BackendMessage;
use pgwire_replication::PgWireError;
use std::fmt;
use tokio::net::TcpStream;

/// Errors of servers that are over soon: a slot in use, too many clients, a server that stops or starts.
const PASSING: [&str; 5] = ["55006", "53300", "57P01", "57P02", "57P03"];
const PROTOCOL: i32 = 3 << 16;

/// Why a connection ended.
#[derive(Debug)]
pub enum Failure {
    /// It was lost, and may be opened again.
    Lost(String),
    /// What came is not accepted, or the server does not accept this client.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(text) | Self::Refused(text) => f.write_str(text),
        }
    }
}

impl From<PgWireError> for Failure {
    fn from(error: PgWireError) -> Self {
        if error.is_io() {
            Self::Lost(error.to_string())
        } else {
            Self::Refused(error.to_string())
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<pgoutput_codec::Error> for Failure {
    fn from(error: pgoutput_codec::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Where to connect.
pub struct Server {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
}

/// A connection, which streams once it was started.
pub struct Connection {
    socket: TcpStream,
    reader: MessageReader,
}

impl Connection {
    /// Connect, log in, and start the stream.
    pub async fn open(server: &Server, command: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect((server.host.as_str(), server.port)).await?;
        socket.set_nodelay(true)?;
        let reader = MessageReader::new();
        let mut connection = Self { socket, reader };
        connection.log_in(server).await?;
        write_query(&mut connection.socket, command).await?;
        connection.until(b'W').await?;
        Ok(connection)
    }

    /// Return the next CopyData; a call that is cancelled loses nothing.
    pub async fn receive(&mut self) -> Result<Bytes, Failure> {
        Ok(self.until(b'd').await?.payload)
    }

    /// Send CopyData.
    pub async fn send(&mut self, data: &[u8]) -> Result<(), Failure> {
        Ok(write_copy_data(&mut self.socket, data).await?)
    }

    /// Return the next message with a tag; notices and settings come at any time.
    async fn until(&mut self, tag: u8) -> Result<BackendMessage, Failure> {
        loop {
            let message = self.reader.read(&mut self.socket).await?;
            match message.tag {
                found if found == tag => return Ok(message),
                b'E' => return Err(refusal(&message.payload)),
                b'c' => return Err(Failure::Lost("the server has ended the stream".into())),
                _ => {}
            }
        }
    }

    async fn log_in(&mut self, server: &Server) -> Result<(), Failure> {
        let parameters = [
            ("user", server.user.as_str()),
            ("database", &server.database),
            ("replication", "database"),
            ("client_encoding", "UTF8"),
        ];
        write_startup_message(&mut self.socket, PROTOCOL, &parameters).await?;
        loop {
            let request = self.until(b'R').await?;
            match parse_auth_request(&request.payload)? {
                (auth::OK, _) => break,
                (auth::CLEARTEXT_PASSWORD, _) => {
                    let data = [server.password.as_bytes(), b"\0"].concat();
                    write_password_message(&mut self.socket, &data).await?;
                }
                (auth::SASL, _) => self.scram(server).await?,
                (method, _) => {
                    return Err(Failure::Refused(format!(
                        "authentication {method} is not supported"
                    )))
                }
            }
        }
        self.until(b'Z').await?;
        Ok(())
    }

    /// Log in with SCRAM-SHA-256, after the server has requested it.
    async fn scram(&mut self, server: &Server) -> Result<(), Failure> {
        let client = ScramClient::new(&server.user);
        let first = client.client_first.as_bytes();
        let length = u32::try_from(first.len()).unwrap_or(u32::MAX).to_be_bytes();
        let data = [b"SCRAM-SHA-256\0", &length[..], first].concat();
        write_password_message(&mut self.socket, &data).await?;
        let answer = self.sasl(auth::SASL_CONTINUE).await?;
        let (last, message, salted) = client.client_final(&server.password, &answer)?;
        write_password_message(&mut self.socket, last.as_bytes()).await?;
        let answer = self.sasl(auth::SASL_FINAL).await?;
        Ok(ScramClient::verify_server_final(
            &answer, &salted, &message,
        )?)
    }

    async fn sasl(&mut self, expected: i32) -> Result<String, Failure> {
        let request = self.until(b'R').await?;
        match parse_auth_request(&request.payload)? {
            (code, rest) if code == expected => Ok(String::from_utf8_lossy(rest).into_owned()),
            (code, _) => Err(Failure::Refused(format!(
                "authentication {code} instead of {expected}"
            ))),
        }
    }
}

fn refusal(payload: &[u8]) -> Failure {
    let fields = ErrorFields::parse(payload);
    let text = fields.to_error_string();
    match fields.code {
        Some(code) if PASSING.contains(&code.as_str()) => Failure::Lost(text),
        _ => Failure::Refused(text),
    }
}
