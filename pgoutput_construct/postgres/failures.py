"""What a server's errors in a stream mean, and what to do about them."""

import re
from typing import Any, Final

from psycopg import pq

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import is_transient
from pgoutput_construct.postgres.notices import LostPublicationError

__all__ = ["ENDED", "REFUSED", "DecodingError", "server_error"]

ENDED = "the server ended the stream"
REFUSED = "the server refused START_REPLICATION"

_INTERNAL: Final = re.compile("XX...|58P01")
"""Internal errors, damaged data, and a file that the decoder needs and that is missing, as a WAL segment."""

_PLUGIN: Final = b"pgoutput"
"""Named by the error of a server that cannot load its output plugin, as while its package is replaced: the slot is
as good as before. (Errors of the plugin itself name it in their context.)"""
_UNLOADED: Final = (
    "the server cannot load its output plugin: see to its installation (and its dynamic_library_path), then try again; "
    "the slot is as it was"
)

_REMEDIES = {
    "42704": "create what is missing; a publication must exist before the changes that it publishes are made",
    "55006": "stop the other reader of this slot, or wait until the server notices that it is gone",
    "55000": "if the slot was invalidated: drop it, create it, begin a new log with an initial copy of the tables, "
    "or capture with --on-lost-slot snapshot (on_lost_slot='snapshot')",
    "42501": "the role needs the attribute REPLICATION: ALTER ROLE ... REPLICATION",
}
_TOO_LARGE = ("invalid memory alloc request size", "Cannot enlarge string buffer")
"""What PostgreSQL says where a message would have 1 GB or more (MaxAllocSize; palloc, enlargeStringInfo). The latter is
a DETAIL: the error itself is "out of memory" up to PostgreSQL 16."""
_BINARY = (
    "a row is larger than 1 GB as text, as a bytea is whose hexadecimal text has twice its bytes: capture with the "
    "option binary (binary=True, --binary), which the log takes as it is; what is larger than 1 GB in binary format, "
    "too, must be left out of the publication by a list of columns"
)


class DecodingError(ReplicationError):
    """The server met an internal error while it decoded, or began to: the next attempt passes it, or meets it again."""


def server_error(result: Any, what: str) -> ReplicationError:
    """Turn the result that ended a stream, or refused it (``what``), into an error with a remedy."""
    if result is None or result.status not in {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR}:
        return ReplicationError(f"{what} without an error: it is shutting down", transient=True)
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode("ascii", "replace") or None
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message or b""
    detail = result.error_field(pq.DiagnosticField.MESSAGE_DETAIL) or b""
    said = b"; ".join(part.strip() for part in (primary, detail) if part)
    text = f"{what}: {said.decode('utf-8', 'replace')}"
    transient = state is None or is_transient(state)
    if state == "42704" and what == ENDED:
        return LostPublicationError(text, sqlstate=state)
    if any(words in text for words in _TOO_LARGE):
        text += f" ({_BINARY})"
    elif state in _REMEDIES:
        text += f" ({_REMEDIES[state]})"
    elif state is not None and _INTERNAL.fullmatch(state):
        if _PLUGIN in said:
            return ReplicationError(f"{text} ({_UNLOADED})", sqlstate=state, transient=transient)
        return DecodingError(text, sqlstate=state, transient=True)  # for a few times: see Retry
    return ReplicationError(text, sqlstate=state, transient=transient)
