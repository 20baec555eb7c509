"""Peak memory while one large batch is decoded, in a process of its own: ``python -m tools.benchmark.memory``."""

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pgoutput_construct.demo.processes import printed
from pgoutput_construct.errors import PgoutputError
from tools.benchmark.batch import Batch
from tools.benchmark.batches import decoder
from tools.benchmark.cases import CASES
from tools.benchmark.errors import BenchmarkError, Unavailable

__all__ = ["BATCH_BYTES", "Memory", "as_json", "measure_memory"]

BATCH_BYTES = 256 << 20
"""The payload bytes of the batch."""

_WARM_UP = 1000


@dataclass(frozen=True, slots=True)
class Memory:
    """What one engine needed."""

    engine: str
    batch_bytes: int
    before: int
    """Resident bytes before decoding: interpreter, libraries, and the batch."""
    peak: int
    """Most resident bytes while decoding: the whole process."""
    seconds: float

    @property
    def multiple(self) -> float:
        """The peak of the whole process, in batches."""
        return self.peak / self.batch_bytes

    @property
    def beside(self) -> float:
        """What decoding added to the batch that was there, in batches."""
        return (self.peak - self.before) / self.batch_bytes


def measure_memory(engine: str, batch: Batch, batch_bytes: int = BATCH_BYTES) -> Memory:
    """Decode rows of ``batch``, repeated up to ``batch_bytes``, in a new process; raise Unavailable."""
    if batch.path is None:
        raise BenchmarkError("other processes need a batch that is in a file")
    decoder(engine, batch)
    path = batch.path.with_suffix(f".{batch_bytes}.arrow")
    if not path.exists():
        _write(batch, path, batch_bytes)
    command = "-m", "tools.benchmark.memory", engine, batch.case.name, str(batch.path), str(path)
    try:
        return Memory(engine, batch_bytes, **json.loads(printed(*command)))
    except PgoutputError as error:
        raise Unavailable(f"decoding {batch_bytes:,} bytes failed: {error}") from None


def _write(batch: Batch, path: Path, batch_bytes: int) -> None:
    """Write the rows of a batch, over and over, as one Arrow batch."""
    import pyarrow as pa

    rows = batch.rows()
    repeats = batch_bytes // rows.size + 1
    count = batch_bytes * len(rows) // rows.size
    large = Batch(batch.case, [*rows.payloads] * repeats, [*rows.in_stream] * repeats)
    record = pa.record_batch({"payload": large.array.slice(0, count), "in_stream": pa.array(large.in_stream[:count])})
    temporary = path.with_suffix(".tmp")
    with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, record.schema) as writer:
        writer.write_batch(record)
    temporary.rename(path)


def _read(path: Path) -> Any:
    """Read the Arrow batch into memory; a mapped file would not count as the process's own."""
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).get_batch(0)


def _small(case_name: str, path: Path) -> Batch:
    """Return the head of a capture: the Relation is there, and enough rows to compile what is compiled."""
    case = next(case for case in CASES if case.name == case_name)
    return Batch.load(case, path, _WARM_UP)


def _resident(line: str) -> int:
    """Return a number of /proc/self/status in bytes; elsewhere, the most that this process ever had."""
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    found = next(text for text in status.read_text("ascii").splitlines() if text.startswith(line))
    return int(found.split()[1]) * 1024


def _forget_peak() -> None:
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5", "ascii")


def _decode(engine: str, case_name: str, capture: Path, path: Path) -> dict[str, Any]:
    small = _small(case_name, capture)
    decode = decoder(engine, small)
    decode(small.array, small.states)
    streamed, record = small.states is not None, _read(path)
    del small
    payloads, states = record["payload"], record["in_stream"] if streamed else None
    before = _resident("VmRSS:")
    _forget_peak()
    began = time.perf_counter()
    decoded = decode(payloads, states)
    seconds = time.perf_counter() - began
    del decoded
    return {"before": before, "peak": _resident("VmHWM:"), "seconds": seconds}


def as_json(memory: Memory) -> dict[str, Any]:
    """Return everything known, for a report."""
    return {**asdict(memory), "multiple": memory.multiple, "beside": memory.beside}


if __name__ == "__main__":
    print(json.dumps(_decode(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
