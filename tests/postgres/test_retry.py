"""Which failures of a connection are retried."""

import time

import pytest

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._retry import Retry
from pgoutput_construct.postgres.replication import DecodingError, SilentServerError


def test_an_internal_error_is_retried_a_few_times() -> None:
    """It is tried again three times; another one counts for itself, and so does one after another transaction."""
    retry = Retry()
    for number in (1, 2):
        error = DecodingError(f"could not map filenumber {number}", sqlstate="XX000", transient=True)
        for transactions in (5, 6):
            for _ in range(3):
                retry.begin()
                assert not retry.recurs(error, transactions) and retry.failed(error) > 0
    assert not retry.recurs(ReplicationError("broken", sqlstate="08006", transient=True), 6)
    assert retry.recurs(error, 6)


def test_transient_errors_are_retried_without_limit() -> None:
    """However often a connection breaks; what cannot pass is raised at once."""
    retry = Retry()
    for _ in range(50):
        retry.begin()
        assert retry.failed(ReplicationError("broken", sqlstate="08006", transient=True)) <= 30
    with pytest.raises(ReplicationError, match="no slot"):
        retry.failed(ReplicationError("no slot", sqlstate="42704"))


def test_a_first_connection_has_a_limit_of_its_own() -> None:
    """It applies until the work begins, not only a stream, unless there is a limit for all."""
    broken = ReplicationError("broken", sqlstate="08006", transient=True)
    with pytest.raises(ReplicationError, match="broken"):
        Retry(None, 0.0).failed(broken)
    assert Retry(60.0, 0.0).failed(broken) > 0 and Retry().failed(broken) > 0
    retry = Retry(None, 0.0)
    retry.connected("slot")
    with pytest.raises(ReplicationError, match="broken"):
        retry.failed(broken)
    retry.began()
    assert retry.failed(broken) > 0


def test_what_does_not_extend_a_first_limit() -> None:
    """Silence after a connection, and streams that break at once; one that breaks after long work is tried again."""
    silent = SilentServerError(1)
    retry = Retry(None, 0.2)
    retry.begin()
    retry.connected("slot")
    time.sleep(0.3)
    assert retry.failed(ReplicationError("broken", sqlstate="08006", transient=True)) > 0
    retry.begin()
    retry.connected("slot")
    time.sleep(0.3)
    with pytest.raises(ReplicationError, match="sent nothing"):
        retry.failed(silent)
