"""Open the store at an address: a path, or a URL."""

from urllib.parse import unquote, urlsplit

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.remote_store import RemoteStore
from pgoutput_construct.changelog._store.store import Address, LogStore, is_uri

__all__ = ["open_store"]


def open_store(address: "Address | LogStore", *, private: bool = True) -> LogStore:
    """Return the store at an address.

    Args:
        address: A path, a ``file://`` URL, or a URL that pyarrow (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``) or
            fsspec can open. Options of the store are parameters of the URL
            (``?endpoint_override=...&scheme=http``); credentials best come from the environment. A relative path is
            made absolute now, so a later chdir() does not matter. A LogStore is returned as it is.
        private: As for LocalStore; ignored by object stores.

    Raises:
        ChangeLogError: The store cannot be opened; the text shows no credentials.
    """
    if isinstance(address, LogStore):
        return address
    if not is_uri(address):
        return LocalStore(address, private=private)
    if str(address).startswith("file://"):
        return LocalStore(unquote(urlsplit(str(address)).path), private=private)
    return RemoteStore(str(address))
