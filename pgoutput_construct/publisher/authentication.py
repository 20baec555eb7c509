"""Who a client is: trust, a password as it is, or SCRAM-SHA-256.

Source: PostgreSQL documentation, section "SASL Authentication"; RFC 5802 and 7677 by way of scramp.
"""

import hmac
from collections.abc import Generator
from functools import cache
from typing import Any, Literal, TypeAlias

from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire import connection_messages as m

__all__ = ["MECHANISM", "Exchange", "Method", "authenticate"]

Method: TypeAlias = Literal["trust", "password", "scram-sha-256"]
"""How a client proves who it is, as ``pg_hba.conf`` calls it."""

MECHANISM = "SCRAM-SHA-256"

Exchange: TypeAlias = Generator[m.ConnectionMessage, m.ConnectionMessage | None, None]
"""What the server says; it is sent the client's answer to each question."""


def authenticate(method: Method, user: str, known: str | None, password: str | None) -> Exchange:
    """Yield what the server says to a client until it is known; raise Refusal where it is not who it should be.

    Args:
        method: How it proves who it is.
        user: Who it says that it is.
        known: Who may connect; None: anyone.
        password: The password of that user.
    """
    if known is not None and user != known:
        raise _failed(user)
    if method == "password":
        yield from _password(user, password or "")
    elif method == "scram-sha-256":
        yield from _scram(user, password or "")
    yield m.AuthenticationOk()


def _password(user: str, password: str) -> Exchange:
    answer = yield m.AuthenticationCleartextPassword()
    given = answer.password if isinstance(answer, m.PasswordMessage) else ""
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), password.encode()):
        raise _failed(user)


def _scram(user: str, password: str) -> Exchange:
    from scramp import ScramException, ScramMechanism

    verifier = _verifier(password)
    exchange = ScramMechanism(MECHANISM).make_server(lambda _: verifier)
    first = yield m.AuthenticationSASL((MECHANISM,))
    try:
        if not isinstance(first, m.SASLInitialResponse) or first.mechanism != MECHANISM:
            raise Refusal("28000", "the client has chosen a SASL mechanism that was not offered", fatal=True)
        _take_first(exchange, (first.data or b"").decode())
        final = yield m.AuthenticationSASLContinue(exchange.get_server_first().encode())
        exchange.set_client_final(final.data.decode() if isinstance(final, m.SASLResponse) else "")
        said = exchange.get_server_final()
    except (ScramException, ValueError, LookupError) as error:
        raise _failed(user) from error
    yield m.AuthenticationSASLFinal(said.encode())


def _take_first(exchange: Any, said: str) -> None:
    """Take in the first message of a client, whose name libpq leaves empty: the startup message has said it.

    scramp reads no empty name, and needs one for nothing but its lookup: it is given another, and signs what was said.
    """
    *header, bare = said.split(",", 2)
    named = bare.replace("n=,", "n=*,", 1) if bare.startswith("n=,") else bare
    exchange.set_client_first(",".join([*header, named]))
    exchange.client_first_bare = bare


@cache
def _verifier(password: str) -> Any:
    """Return what is known of a password: derived once, as PostgreSQL stores it, for it takes thousands of hashes."""
    from scramp import ScramMechanism

    return ScramMechanism(MECHANISM).make_auth_info(password)


def _failed(user: str) -> Refusal:
    return Refusal("28P01", f'password authentication failed for user "{user}"', fatal=True)
