"""From an address to the store behind it."""

from urllib.parse import unquote, urlsplit

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.remote_store import RemoteStore
from pgoutput_construct.changelog._store.store import Address, LogStore, is_uri

__all__ = ["open_store"]


def open_store(address: "Address | LogStore", *, private: bool = True) -> LogStore:
    """Return the store at an address; a relative path is made absolute now, whatever directory is current later.

    A path, ``file://``, and what pyarrow knows (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``) or fsspec. Options of
    the store are parameters of the URI (``?endpoint_override=...&scheme=http``), credentials best come from the
    environment. ``private`` is as for LocalStore, and counts for directories alone. Raises ChangeLogError, which shows
    no credentials.
    """
    if isinstance(address, LogStore):
        return address
    if not is_uri(address):
        return LocalStore(address, private=private)
    if str(address).startswith("file://"):
        return LocalStore(unquote(urlsplit(str(address)).path), private=private)
    return RemoteStore(str(address))
