"""Progress on standard error: one line that is updated in a terminal, plain lines otherwise."""

import sys

__all__ = ["Progress"]


class Progress:
    """Says what is being done now."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()

    def step(self, text: str) -> None:
        """Say what begins now, in place of what was said before."""
        if not self._quiet:
            print(
                f"\r\x1b[K{text}" if self._live else text, end="" if self._live else "\n", file=sys.stderr, flush=True
            )

    def detail(self, text: str) -> None:
        """Say what changes often: only a terminal shows it."""
        if self._live:
            self.step(text)

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._live and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
