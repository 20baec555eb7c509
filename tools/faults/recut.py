"""A captured log once more, in as many segments as a capture would have made of it in months."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._facts.events import LogEvent
from pgoutput_construct.changelog._segment.columns import parts_of
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._upkeep.note import read_note, write_note
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn

__all__ = ["recut"]


def recut(log: ChangeLog, directory: Path, segments: int) -> ChangeLog:
    """Write a log again with about ``segments`` segments; a capture may continue it in the place of the first one."""
    store, rows = LocalStore(directory, durable=False), max(1, len(log) // segments)
    ended = log.transactions().filter(pc.equal(log.transactions()["outcome"], COMMITTED))
    seqs, lsns = ended["seq"].to_numpy(), [0, *ended["end_lsn"].to_pylist()]
    with LogWriter(store) as writer:
        for segment in log.segments:
            writer.use(segment.options)
            for part in parts_of(log.table(segment), segment.options.layout()):
                if isinstance(part, LogEvent):
                    writer.append_fact(part.name, part.lsn, **part.details)
                    continue
                for first in range(0, len(part), rows):
                    writer.append(part.take(slice(first, first + rows)))
                    complete = lsns[int(np.searchsorted(seqs, writer.next_seq))]
                    writer.publish(Position(Lsn(complete)))
        writer.publish(log.segments[-1].position)
    # Where nothing is left to publish no segment says how far the last one was confirmed.
    note, last = read_note(log.store), log.segments[-1]
    write_note(store, replace(note, confirmed_lsn=note.reached(last), next_seq=last.last_seq + 1))
    return ChangeLog(directory)
