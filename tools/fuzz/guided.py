"""Coverage-guided fuzzing: each target under libFuzzer (atheris) in a process of its own."""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pgoutput_construct.demo.processes import completed
from tools.fuzz.targets import TARGETS, seeds

__all__ = ["lacking", "run"]

_HANG_SECONDS: Final = 20
_MEMORY_MB: Final = 3072
_COVERED: Final = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units: (\d+)")


def lacking() -> str | None:
    """Return why guided fuzzing is not available; None if it is."""
    missing = [name for name in ("atheris", "coverage") if find_spec(name) is None]
    return f"{' and '.join(missing)} cannot be imported: pip install --editable '.[fuzz]'" if missing else None


def run(names: Sequence[str], seconds: int, seed: int, directory: Path) -> int:
    """Fuzz targets; print the runs and their coverage, and return the number of findings.

    ``directory`` keeps the inputs that reach something (they are what the next run begins with) and the findings.
    """
    return sum(_run(name, seconds, seed, directory / name) for name in names)


def _run(name: str, seconds: int, seed: int, directory: Path) -> int:
    corpus, findings = directory / "corpus", directory / "findings"
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    known = set(findings.iterdir())
    for content in seeds(name):
        (corpus / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
    flags = {
        "max_total_time": seconds, "seed": seed + 1, "max_len": TARGETS[name].longest, "timeout": _HANG_SECONDS,
        "rss_limit_mb": _MEMORY_MB, "artifact_prefix": f"{findings}/", "print_final_stats": 1,
    }  # fmt: skip
    command = ["tools.fuzz.child", name, str(findings), *(f"-{key}={value}" for key, value in flags.items())]
    done = _python(*command, str(corpus))
    print("\n".join(_lines(name, done)), flush=True)
    print(_python("tools.fuzz.coverage_report", name, str(corpus)).stdout, end="", flush=True)
    found = [path for path in sorted(set(findings.iterdir()) - known) if path.suffix != ".txt"]
    for path in found:
        note = path.with_suffix(".txt")
        told = note.read_text("utf-8") if note.exists() else done.stderr[-3000:]
        print(f"FINDING {path}\n{told}", flush=True)
    return len(found) or int(done.returncode != 0)


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module; libFuzzer ends its process at once, so that its files are removed here."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as scratch:
        return completed("-m", *arguments, errors="replace", env={"TMPDIR": scratch})


def _lines(name: str, done: subprocess.CompletedProcess[str]) -> Iterator[str]:
    """Yield what libFuzzer says of a run."""
    covered, executed = _COVERED.findall(done.stderr), _EXECUTED.findall(done.stderr)
    if not covered or not executed:
        yield f"{name}: the run ended with status {done.returncode}:\n{done.stderr[-3000:]}"
        return
    edges, features, inputs = map(int, covered[-1])
    reached = f"{edges:,} branches and {features:,} features of them, reached by {inputs:,}"
    yield f"{name}: {int(executed[-1]):,} inputs; {reached}"
