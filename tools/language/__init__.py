"""The specification language: reading it, checking it, and the model that the generator works from."""

from tools.language.load import SPEC, load, load_text
from tools.language.model import (
    Alternative,
    Block,
    Choice,
    Field,
    Fields,
    Message,
    Part,
    Repeat,
    Spec,
    Type,
)

__all__ = [
    "SPEC",
    "Alternative",
    "Block",
    "Choice",
    "Field",
    "Fields",
    "Message",
    "Part",
    "Repeat",
    "Spec",
    "Type",
    "load",
    "load_text",
]
