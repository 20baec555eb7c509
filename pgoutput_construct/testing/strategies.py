# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: Hypothesis strategies for every message, under given options."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.testing.primitives import (
    absent_or,
    bits,
    blobs,
    branches,
    lsns,
    record,
    several,
    signed,
    strings,
    timestamps,
    unsigned,
)
from pgoutput_construct.wire import messages as m

__all__ = [
    "STRATEGIES",
    "any_begin",
    "any_begin_prepare",
    "any_commit",
    "any_commit_prepared",
    "any_delete",
    "any_insert",
    "any_message",
    "any_origin",
    "any_prepare",
    "any_relation",
    "any_rollback_prepared",
    "any_stream_abort",
    "any_stream_commit",
    "any_stream_prepare",
    "any_stream_start",
    "any_stream_stop",
    "any_truncate",
    "any_tuple_data",
    "any_type",
    "any_update",
]


def any_tuple_data(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.TupleData]:
    """Return any TupleData that these options can carry."""
    return several(st.one_of(st.none(), st.just(m.UNCHANGED), blobs(), blobs().map(m.Binary)))


def any_begin(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Begin]:
    """Return any Begin that these options can carry."""
    return record(
        m.Begin,
        final_lsn=lsns(),
        commit_time=timestamps(),
        xid=unsigned(4),
    )


def any_message(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Message]:
    """Return any Message that these options can carry."""
    return record(
        m.Message,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        flags=bits(0x1),
        lsn=lsns(),
        prefix=strings(),
        content=blobs(),
    )


def any_commit(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Commit]:
    """Return any Commit that these options can carry."""
    return record(
        m.Commit,
        commit_lsn=lsns(),
        end_lsn=lsns(),
        commit_time=timestamps(),
    )


def any_origin(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Origin]:
    """Return any Origin that these options can carry."""
    return record(
        m.Origin,
        origin_lsn=lsns(),
        name=strings(),
    )


def any_relation(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Relation]:
    """Return any Relation that these options can carry."""
    return record(
        m.Relation,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        relation_oid=unsigned(4),
        namespace=strings(),
        name=strings(),
        replica_identity=st.sampled_from(["d", "n", "f", "i"]),
        columns=several(
            record(
                m.RelationColumn,
                flags=bits(0x1),
                name=strings(),
                type_oid=unsigned(4),
                type_modifier=signed(4),
            )
        ),
    )


def any_type(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Type]:
    """Return any Type that these options can carry."""
    return record(
        m.Type,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        type_oid=unsigned(4),
        namespace=strings(),
        name=strings(),
    )


def any_insert(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Insert]:
    """Return any Insert that these options can carry."""
    return record(
        m.Insert,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        relation_oid=unsigned(4),
        new=any_tuple_data(proto_version, in_stream, parallel),
    )


def any_update(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Update]:
    """Return any Update that these options can carry."""
    return record(
        m.Update,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        relation_oid=unsigned(4),
        old=branches(
            {
                "K": any_tuple_data(proto_version, in_stream, parallel),
                "O": any_tuple_data(proto_version, in_stream, parallel),
            },
            optional=True,
        ),
        new=any_tuple_data(proto_version, in_stream, parallel),
    )


def any_delete(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Delete]:
    """Return any Delete that these options can carry."""
    return record(
        m.Delete,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        relation_oid=unsigned(4),
        old=branches(
            {
                "K": any_tuple_data(proto_version, in_stream, parallel),
                "O": any_tuple_data(proto_version, in_stream, parallel),
            }
        ),
    )


def any_truncate(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Truncate]:
    """Return any Truncate that these options can carry."""
    return record(
        m.Truncate,
        xid=absent_or(proto_version >= 2 and in_stream, unsigned(4)),
        options=bits(0x3),
        relation_oids=several(unsigned(4)),
    )


def any_stream_start(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.StreamStart]:
    """Return any StreamStart that these options can carry."""
    return record(
        m.StreamStart,
        xid=unsigned(4),
        first_segment=st.sampled_from([0, 1]),
    )


def any_stream_stop(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.StreamStop]:
    """Return any StreamStop that these options can carry."""
    return st.builds(m.StreamStop)


def any_stream_commit(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.StreamCommit]:
    """Return any StreamCommit that these options can carry."""
    return record(
        m.StreamCommit,
        xid=unsigned(4),
        commit_lsn=lsns(),
        end_lsn=lsns(),
        commit_time=timestamps(),
    )


def any_stream_abort(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.StreamAbort]:
    """Return any StreamAbort that these options can carry."""
    return record(
        m.StreamAbort,
        xid=unsigned(4),
        subxid=unsigned(4),
        abort_lsn=absent_or(proto_version >= 4 and parallel, lsns()),
        abort_time=absent_or(proto_version >= 4 and parallel, timestamps()),
    )


def any_begin_prepare(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.BeginPrepare]:
    """Return any BeginPrepare that these options can carry."""
    return record(
        m.BeginPrepare,
        prepare_lsn=lsns(),
        end_lsn=lsns(),
        prepare_time=timestamps(),
        xid=unsigned(4),
        gid=strings(),
    )


def any_prepare(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.Prepare]:
    """Return any Prepare that these options can carry."""
    return record(
        m.Prepare,
        prepare_lsn=lsns(),
        end_lsn=lsns(),
        prepare_time=timestamps(),
        xid=unsigned(4),
        gid=strings(),
    )


def any_commit_prepared(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.CommitPrepared]:
    """Return any CommitPrepared that these options can carry."""
    return record(
        m.CommitPrepared,
        commit_lsn=lsns(),
        end_lsn=lsns(),
        commit_time=timestamps(),
        xid=unsigned(4),
        gid=strings(),
    )


def any_rollback_prepared(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.RollbackPrepared]:
    """Return any RollbackPrepared that these options can carry."""
    return record(
        m.RollbackPrepared,
        prepare_end_lsn=lsns(),
        rollback_end_lsn=lsns(),
        prepare_time=timestamps(),
        rollback_time=timestamps(),
        xid=unsigned(4),
        gid=strings(),
    )


def any_stream_prepare(proto_version: int, in_stream: bool, parallel: bool) -> SearchStrategy[m.StreamPrepare]:
    """Return any StreamPrepare that these options can carry."""
    return record(
        m.StreamPrepare,
        prepare_lsn=lsns(),
        end_lsn=lsns(),
        prepare_time=timestamps(),
        xid=unsigned(4),
        gid=strings(),
    )


STRATEGIES: Final[Mapping[type, tuple[int, Callable[..., SearchStrategy[Any]]]]] = {
    m.Begin: (1, any_begin),
    m.Message: (1, any_message),
    m.Commit: (1, any_commit),
    m.Origin: (1, any_origin),
    m.Relation: (1, any_relation),
    m.Type: (1, any_type),
    m.Insert: (1, any_insert),
    m.Update: (1, any_update),
    m.Delete: (1, any_delete),
    m.Truncate: (1, any_truncate),
    m.StreamStart: (2, any_stream_start),
    m.StreamStop: (2, any_stream_stop),
    m.StreamCommit: (2, any_stream_commit),
    m.StreamAbort: (1, any_stream_abort),
    m.BeginPrepare: (1, any_begin_prepare),
    m.Prepare: (1, any_prepare),
    m.CommitPrepared: (1, any_commit_prepared),
    m.RollbackPrepared: (1, any_rollback_prepared),
    m.StreamPrepare: (1, any_stream_prepare),
}
"""The protocol version that each message class needs, and its strategy."""
