"""What a switch can be called in a command (parse_bool() in bool.c)."""

from typing import Final

__all__ = ["OFF_WORDS", "ON_WORDS"]

ON_WORDS: Final = ("true", "on", "yes", "1", "t", "y")
OFF_WORDS: Final = ("false", "off", "no", "0", "f", "n")
