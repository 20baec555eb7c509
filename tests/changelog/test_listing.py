"""A log that is listed while it grows."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._store.local_store import LocalStore
from tests.spark.logs import log_options, write_log

MESSAGE = pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "p", b""))


class Growing(LocalStore):
    """A directory that shows later segments before earlier ones, as readdir may: one is missing in each listing."""

    def __init__(self, directory: Path, *missing: int) -> None:
        super().__init__(directory)
        self.missing = list(missing)

    def files(self, folder: str = "") -> dict[str, int]:
        """Leave out the segment that this listing misses."""
        hole = f"segment-{self.missing.pop(0):020d}" if self.missing else "none"
        return {name: size for name, size in super().files(folder).items() if not name.startswith(hole)}


def test_a_log_is_listed_while_it_grows(tmp_path: Path) -> None:
    """A gap that the next listing fills is none; one that stays is a loss."""
    write_log(tmp_path, [MESSAGE] * 9, log_options(), rows=1)
    assert len(list_log(Growing(tmp_path, 5, 7))) == 9
    with pytest.raises(pgo.ChangeLogError, match="the seqs 5 to 5 are missing"):
        list_log(Growing(tmp_path, *[5] * 9))
