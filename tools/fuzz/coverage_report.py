"""python -m tools.fuzz.coverage_report TARGET DIRECTORY: prints the lines and branches that inputs cover, by module."""

import io
import sys
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import coverage

__all__ = ["main"]

_PACKAGE: Final = Path(__file__).parents[2] / "pgoutput_construct"


def main() -> None:
    """Run a target on every input of a directory, and print the coverage of its modules."""
    name, directory = sys.argv[1], Path(sys.argv[2])
    counted = coverage.Coverage(branch=True, include=[f"{_PACKAGE}/*"], data_file=None, config_file=False)
    counted.start()
    from tools.fuzz.targets import TARGETS

    target = TARGETS[name]
    with redirect_stdout(io.StringIO()):
        for path in sorted(directory.iterdir()):
            with suppress(Exception):  # findings were reported when they were found
                target.read(path.read_bytes())
    counted.stop()
    for module in target.covered:
        print(f"  {_line(counted, module)}")


def _line(counted: coverage.Coverage, module: str) -> str:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    numbers = counted._analyze(spec.origin).numbers  # what its reports are made of
    lines, branches = numbers.n_executed, numbers.n_executed_branches
    return (
        f"{module.removeprefix('pgoutput_construct.')}: {lines} of {numbers.n_statements} lines, "
        f"{branches} of {numbers.n_branches} branches"
    )


if __name__ == "__main__":
    main()
