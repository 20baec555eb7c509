"""The functions of the libpq that psycopg uses, for kernels that call it without Python in between."""

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from psycopg import pq

from pgoutput_construct.errors import ReplicationError

__all__ = ["Libpq", "connection_address", "libpq"]


@dataclass(frozen=True)
class Libpq:
    """Functions of libpq and of the C library, as ctypes has them."""

    get_copy_data: Any
    consume_input: Any
    free: Any
    sleep: Any
    clock: Any


@cache
def libpq() -> Libpq:
    """Return the functions; raise ReplicationError where psycopg's libpq does not show them."""
    try:
        # A handle finds what the libraries have that its library was linked with: psycopg's own libpq, no other one.
        library, system = ctypes.CDLL(_path()), ctypes.CDLL(None)
        library.PQfreemem.argtypes, library.PQfreemem.restype = [ctypes.c_void_p], None
        functions = library.PQgetCopyData, library.PQconsumeInput, library.PQfreemem
        return Libpq(*functions, system.nanosleep, system.clock_gettime)
    except (OSError, AttributeError, ImportError, TypeError) as error:
        raise ReplicationError(
            f"the libpq of psycopg's implementation {pq.__impl__!r} cannot be called on {sys.platform}: {error}"
        ) from error


def connection_address(connection: Any) -> int:
    """Return where libpq keeps a connection of psycopg.pq, 0 for one that is closed, which libpq refuses."""
    return int(connection.pgconn_ptr or 0)


def _path() -> str | None:
    if pq.__impl__ == "python":
        return pq.misc.find_libpq_full_path()
    return import_module(f"psycopg_{pq.__impl__}.pq").__file__
