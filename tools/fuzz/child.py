"""One target in a process of its own, under libFuzzer: python -m tools.fuzz.child TARGET FINDINGS [libFuzzer's flags].

A finding is written into the directory FINDINGS, its traceback beside it, once for each place that raises; then the
run goes on. What ends the process (a hang, a fault of native code, too much memory) libFuzzer writes there itself.
"""

import hashlib
import resource
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import atheris

__all__ = ["main"]

_MOST_MEMORY_MB: Final = 1024
"""By how much one input may make the process grow."""


def main() -> None:
    """Run a target until libFuzzer ends; it does not return."""
    name, findings = sys.argv[1], Path(sys.argv[2])
    include, exclude = ["pgoutput_construct"], list(_compiled())
    with atheris.instrument_imports(include, exclude, enable_loader_override=False):
        from tools.fuzz.targets import TARGETS
    read = TARGETS[name].read
    known: set[str] = set()

    def one(data: bytes) -> None:
        before = _peak_mb()
        try:
            read(data)
            if _peak_mb() - before > _MOST_MEMORY_MB:
                raise MemoryError(f"{len(data)} bytes have made the process grow by {_peak_mb() - before} MB")
        except Exception as error:
            _keep(findings, known, data, error)

    atheris.Setup([sys.argv[0], *sys.argv[3:]], one)
    atheris.Fuzz()


def _compiled() -> Iterator[str]:
    """Yield the modules in rooms that have kernels: numba cannot compile what is instrumented."""
    place = Path(__file__).parents[2]
    for room in ("columnar", "compiled", "pgtypes/kernels"):
        for path in (place / "pgoutput_construct" / room).rglob("*.py"):
            yield ".".join(path.relative_to(place).with_suffix("").parts)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _keep(findings: Path, known: set[str], data: bytes, error: Exception) -> None:
    """Write a finding, where it is the first of its place."""
    frames: Any = traceback.extract_tb(error.__traceback__)
    place = "\n".join([type(error).__name__, *(f"{frame.filename}:{frame.lineno}" for frame in frames)])
    if place not in known:
        known.add(place)
        path = findings / f"finding-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
        path.write_bytes(data)
        path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), "utf-8")


if __name__ == "__main__":
    main()
