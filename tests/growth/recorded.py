"""What becomes of a recording: the same today and in a copy of the project that has grown."""

import json
from hashlib import sha256
from pathlib import Path

import pgoutput_construct as pgo
from pgoutput_construct.columnar import BatchDecoder

__all__ = ["digest_of"]


def digest_of(path: Path) -> list[list[str]]:
    """Return the tables of a recording, each with a digest of its rows; both ways give the same bytes."""
    header, *lines = path.read_text("utf-8").splitlines()
    mode = json.loads(header.removeprefix("# "))
    mode = {"proto_version": mode["proto_version"], "streaming": mode["streaming"]}
    session, builder = pgo.Session(**mode), pgo.Session(**mode)
    for line in lines:
        assert builder.build(session.parse(bytes.fromhex(line))).hex() == line
    decoded = BatchDecoder(**mode).decode([bytes.fromhex(line) for line in lines])
    assert not decoded.errors
    return [
        [table.description.relation.name, sha256(repr(table.batch.to_pydict()).encode()).hexdigest()]
        for table in decoded.tables
    ]
