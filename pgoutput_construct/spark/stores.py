"""The object stores that tables lie in: which jars reach them, and what a session must know of their buckets."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from pgoutput_construct.changelog.store import Address, is_uri

__all__ = ["STORES", "ObjectStore", "bucket_settings", "store_of"]


class ObjectStore(NamedTuple):
    """A store, as Hadoop knows it."""

    jars: Mapping[str, str]
    """By version of Spark: what Maven Central calls them (group:artifact:version), with commas between."""
    excluded: tuple[str, ...]
    """What these would bring and need not: Spark has it."""
    bucket: str
    """What settings of one bucket begin with."""


def _s3(hadoop: str, sdk: str) -> str:
    """Return what reaches S3 from this version of Hadoop, Spark's own, with the AWS SDK that it was made with."""
    parts = (f"software.amazon.awssdk:{part}:{sdk}" for part in ("s3-transfer-manager", "sts", "apache-client"))
    return ",".join((f"org.apache.hadoop:hadoop-aws:{hadoop}", *parts))


STORES: Final[Mapping[str, ObjectStore]] = {
    "s3": ObjectStore(
        {"4.1": _s3("3.4.2", "2.29.52"), "4.2": _s3("3.5.0", "2.35.4"), "4.3": _s3("3.5.0", "2.35.4")},
        (
            "software.amazon.awssdk:bundle",  # the clients of all services of AWS: 600 MB
            "commons-codec:*",
            "commons-logging:*",
            "io.netty:*",
            "org.apache.httpcomponents:*",
            "org.slf4j:*",
            "org.wildfly.openssl:*",
        ),
        "fs.s3a.bucket.",
    ),
}
"""By the schemes of addresses."""


def store_of(address: Address | None) -> str | None:
    """Return the name in STORES of the store that an address is in; None where Spark needs nothing to reach it."""
    if address is None or not is_uri(address):
        return None
    scheme = urlsplit(str(address)).scheme.lower()
    return scheme if scheme in STORES else None


def bucket_settings(address: Address | None) -> dict[str, str]:
    """Return what a session must be told of the bucket of an address: endpoint, region, credentials.

    They are those of the URI, and the endpoint and the region those of the environment (``AWS_ENDPOINT_URL_S3``,
    ``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_DEFAULT_REGION``) where it has none. Credentials in the environment are
    not among them: Spark takes these itself.
    """
    name = store_of(address)
    if name is None:
        return {}
    parts = urlsplit(str(address))
    place = f"{STORES[name].bucket}{parts.netloc.rpartition('@')[2]}."
    return {f"{place}{key}": value for key, value in _told(parts.netloc, parse_qs(parts.query)).items() if value}


def _told(netloc: str, query: Mapping[str, list[str]]) -> dict[str, str]:
    """Return what Hadoop calls the options of a URI."""
    user, _, password = netloc.rpartition("@")[0].partition(":")
    host = query.get("endpoint_override", [""])[-1]
    scheme = query.get("scheme", ["https"])[-1]
    endpoint = (f"{scheme}://{host}" if host else "") or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return {
        "access.key": unquote(user),
        "secret.key": unquote(password),
        "endpoint": endpoint,
        "endpoint.region": query.get("region", [""])[-1] or _environment("AWS_REGION", "AWS_DEFAULT_REGION"),
        "path.style.access": "true" if endpoint else "",  # one that is not AWS has no host for each bucket
    }


def _environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
