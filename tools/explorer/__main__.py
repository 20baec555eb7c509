"""python -m tools.explorer: fetch esbuild, and build the explorer of the documentation."""

import argparse
import sys
from pathlib import Path

from tools.explorer.build import FETCH, BuildError, build
from tools.npm import ESBUILD

_TARGET = Path(__file__).parents[2] / "build" / "explorer"


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog=FETCH, description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="fetch esbuild alone")
    parser.add_argument("folder", nargs="?", type=Path, default=_TARGET, help="where to write it (%(default)s)")
    options = parser.parse_args()
    ESBUILD.fetch()
    if problem := ESBUILD.missing(FETCH):
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    if not options.fetch:
        try:
            build(options.folder)
        except BuildError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 1
        print(options.folder / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
