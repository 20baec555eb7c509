"""Cases of what precedes the stream: authentication, options, and servers of other versions."""

from pgoutput_construct.conformance.case_group import CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import CaseServer, Level, Outcome
from pgoutput_construct.conformance.steps import SendBytes
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.connection_messages import NoticeField, NoticeResponse, ParameterStatus

__all__ = ["GROUP"]

GROUP = CaseGroup("handshake", "Handshake and options")
_ASYNCHRONOUS = "protocol-flow: asynchronous operations, at any time"
_OLDER = "protocol-logical-replication: proto_version; libpqwalreceiver.c asks by the server's version"


def _notice(text: str) -> bytes:
    """Return a notice with a field of a type that a later version has."""
    known = {"S": "WARNING", "V": "WARNING", "C": "01000", "M": text, "R": "of a later version"}
    built = build_connection(NoticeResponse(tuple(NoticeField(*each) for each in known.items())))
    return built.replace(b"Rof a later version", b"zof a later version")


@GROUP.case("trust", "protocol-flow: AuthenticationOk")
def trust(w: CaseWriter) -> None:
    """Connect without being asked for a password."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("password", "protocol-flow: AuthenticationCleartextPassword", server=CaseServer(method="password"))
def password(w: CaseWriter) -> None:
    """Log in with a password that is asked for in clear text."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("scram", "sasl-authentication: SCRAM-SHA-256", server=CaseServer(method="scram-sha-256"))
def scram(w: CaseWriter) -> None:
    """Log in with SCRAM-SHA-256, PostgreSQL's default."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("byte-by-byte", "protocol-overview: messages on a stream of bytes", server=CaseServer(split=1))
def byte_by_byte(w: CaseWriter) -> None:
    """Take bytes one by one, from the first one on: a message is as long as its length says, not as a segment."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case(
    "greetings",
    f"{_ASYNCHRONOUS}; protocol-flow: start-up",
    server=CaseServer(
        greeting=build_connection(ParameterStatus("a_new_setting", "of a later version")) + _notice("take care")
    ),
)
def greetings(w: CaseWriter) -> None:
    """Take settings and notices that one does not know before the server is ready, with fields of later versions."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("notice-in-stream", f"{_ASYNCHRONOUS}; fe-protocol3.c getCopyDataMessage()")
def notice_in_stream(w: CaseWriter) -> None:
    """Take a notice between the messages of a stream, such as the one about a publication that does not exist."""
    orders, notice = w.orders(), SendBytes(_notice('skipped loading publication "suite"'))
    w.commit(orders.insert({"id": 1, "note": "one"}), notice, orders.insert({"id": 2, "note": "two"}))


@GROUP.case("setting-in-stream", f"{_ASYNCHRONOUS}; fe-protocol3.c getCopyDataMessage()")
def setting_in_stream(w: CaseWriter) -> None:
    """Take a ParameterStatus between the messages of a stream: the server has reloaded its configuration."""
    orders, status = w.orders(), SendBytes(build_connection(ParameterStatus("TimeZone", "Europe/Oslo")))
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(status)
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case(
    "odd-publication",
    "protocol-logical-replication: publication_names are identifiers, quoted as needed; libpqwalreceiver.c",
    level=Level.SHOULD,
    server=CaseServer(publication='The "odd" one, too'),
)
def odd_publication(w: CaseWriter) -> None:
    """Quote the name of a publication where it has upper case, blanks, commas or quotes."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case(
    "refused",
    "protocol-error-fields; worker.c: the error ends the worker, and is logged",
    server=CaseServer(start_refusals=(("42704", 'publication "suite" does not exist'),) * 100),
)
def refused(w: CaseWriter) -> None:
    """Say so when the server refuses the stream, and do not wait for it without a word."""
    w.outcome = Outcome.REFUSED


@GROUP.case(
    "login-refused",
    "errcodes-appendix 28P01; libpqwalreceiver.c libpqrcv_connect()",
    server=CaseServer(refusals=(("28P01", 'password authentication failed for user "suite"'),) * 100),
)
def login_refused(w: CaseWriter) -> None:
    """Say so when the server refuses the login."""
    w.outcome = Outcome.REFUSED


def _older(version: int, what: str) -> None:
    def write(w: CaseWriter) -> None:
        orders = w.orders()
        w.commit(orders.insert({"id": 1, "note": "one"}))
        w.commit(orders.update({"id": 1, "note": "uno"}))

    demand = f"Follow PostgreSQL {version}, {what}: ask for no more than it has."
    server = CaseServer(version=version * 10000 + 5)
    GROUP.add(f"server-{version}", _OLDER, demand, write, level=Level.SHOULD, server=server)


_older(14, "which knows protocol versions 1 and 2")
_older(15, "which knows protocol versions up to 3")
_older(16, "the first with version 4")
_older(17, "the first with failover slots")
