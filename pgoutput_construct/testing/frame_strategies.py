# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: Hypothesis strategies for every message, under given options."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.testing.primitives import (
    blobs,
    lsns,
    record,
    timestamps,
    unsigned,
)
from pgoutput_construct.wire import frames as m

__all__ = [
    "STRATEGIES",
    "any_hot_standby_feedback",
    "any_primary_keepalive",
    "any_primary_status_request",
    "any_primary_status_update",
    "any_standby_status_update",
    "any_x_log_data",
]


def any_x_log_data() -> SearchStrategy[m.XLogData]:
    """Return any XLogData that these options can carry."""
    return record(
        m.XLogData,
        wal_start=lsns(),
        wal_end=lsns(),
        send_time=timestamps(),
        data=blobs(),
    )


def any_primary_keepalive() -> SearchStrategy[m.PrimaryKeepalive]:
    """Return any PrimaryKeepalive that these options can carry."""
    return record(
        m.PrimaryKeepalive,
        wal_end=lsns(),
        send_time=timestamps(),
        reply_requested=st.sampled_from([0, 1]),
    )


def any_primary_status_update() -> SearchStrategy[m.PrimaryStatusUpdate]:
    """Return any PrimaryStatusUpdate that these options can carry."""
    return record(
        m.PrimaryStatusUpdate,
        lsn=lsns(),
        oldest_full_xid=unsigned(8),
        next_full_xid=unsigned(8),
        send_time=timestamps(),
    )


def any_standby_status_update() -> SearchStrategy[m.StandbyStatusUpdate]:
    """Return any StandbyStatusUpdate that these options can carry."""
    return record(
        m.StandbyStatusUpdate,
        write_lsn=lsns(),
        flush_lsn=lsns(),
        apply_lsn=lsns(),
        send_time=timestamps(),
        reply_requested=st.sampled_from([0, 1]),
    )


def any_hot_standby_feedback() -> SearchStrategy[m.HotStandbyFeedback]:
    """Return any HotStandbyFeedback that these options can carry."""
    return record(
        m.HotStandbyFeedback,
        send_time=timestamps(),
        xmin=unsigned(4),
        xmin_epoch=unsigned(4),
        catalog_xmin=unsigned(4),
        catalog_xmin_epoch=unsigned(4),
    )


def any_primary_status_request() -> SearchStrategy[m.PrimaryStatusRequest]:
    """Return any PrimaryStatusRequest that these options can carry."""
    return record(
        m.PrimaryStatusRequest,
        send_time=timestamps(),
    )


STRATEGIES: Final[Mapping[type, tuple[int, Callable[..., SearchStrategy[Any]]]]] = {
    m.XLogData: (1, any_x_log_data),
    m.PrimaryKeepalive: (1, any_primary_keepalive),
    m.PrimaryStatusUpdate: (1, any_primary_status_update),
    m.StandbyStatusUpdate: (1, any_standby_status_update),
    m.HotStandbyFeedback: (1, any_hot_standby_feedback),
    m.PrimaryStatusRequest: (1, any_primary_status_request),
}
"""The protocol version that each message class needs, and its strategy."""
