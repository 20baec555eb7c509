"""Who a client is: trust, a password as it is, or SCRAM-SHA-256.

Source: PostgreSQL documentation, section "SASL Authentication"; RFC 5802 and 7677 by way of scramp.
"""

import hmac
from collections.abc import Generator
from functools import cache
from secrets import token_bytes
from typing import Any, Final, Literal, TypeAlias

from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire import connection_messages as m

__all__ = ["MECHANISM", "Exchange", "Method", "authenticate"]

Method: TypeAlias = Literal["trust", "password", "scram-sha-256"]
"""How a client proves who it is, as ``pg_hba.conf`` calls it."""

MECHANISM = "SCRAM-SHA-256"

_SALT_BYTES: Final = 16
"""SCRAM_DEFAULT_SALT_LEN."""
_KEY_BYTES: Final = 32
_MOCK_NONCE: Final = token_bytes(32)
"""What salts of users that do not exist are derived from (GetMockAuthenticationNonce())."""

Exchange: TypeAlias = Generator[m.ConnectionMessage, m.ConnectionMessage | None, None]
"""What the server says; it is sent the client's answer to each question."""


def authenticate(method: Method, user: str, known: str | None, password: str | None) -> Exchange:
    """Yield what the server says to a client until it is authenticated; raise Refusal where that fails.

    A user that does not exist is asked for a password as others are, and gets the same error: nobody learns names by
    trying them.

    Args:
        method: How a client proves who it is.
        user: The user that the client names.
        known: The user that may connect; None: any.
        password: The password of that user.
    """
    exists = known is None or user == known
    if method == "password":
        yield from _password(user, password if exists else None)
    elif method == "scram-sha-256":
        yield from _scram(user, password if exists else None)
    elif not exists:
        raise Refusal("28000", f'role "{user}" does not exist', fatal=True)
    yield m.AuthenticationOk()


def _password(user: str, password: str | None) -> Exchange:
    answer = yield m.AuthenticationCleartextPassword()
    given = answer.password if isinstance(answer, m.PasswordMessage) else ""
    is_right = hmac.compare_digest(given.encode("utf-8", "surrogateescape"), (password or "").encode())
    if password is None or not is_right:
        raise _failed(user)


def _scram(user: str, password: str | None) -> Exchange:
    from scramp import ScramException, ScramMechanism

    verifier = _mock_verifier(user) if password is None else _verifier(password)
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
    if password is None:
        raise _failed(user)
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

    return ScramMechanism(MECHANISM).make_auth_info(password, salt=token_bytes(_SALT_BYTES))


def _mock_verifier(user: str) -> Any:
    """Return a verifier that no password fits, with a salt that stays the same for a name (mock_scram_secret()).

    A salt that changed would tell a name that does not exist from one that does.
    """
    from scramp import ScramMechanism

    salt = hmac.digest(_MOCK_NONCE, user.encode("utf-8", "surrogateescape"), "sha256")[:_SALT_BYTES]
    return salt, bytes(_KEY_BYTES), bytes(_KEY_BYTES), int(ScramMechanism(MECHANISM).iteration_count)


def _failed(user: str) -> Refusal:
    return Refusal("28P01", f'password authentication failed for user "{user}"', fatal=True)
