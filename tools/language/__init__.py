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
from tools.language.records import Deviation, Document, Option

__all__ = [
    "SPEC",
    "Alternative",
    "Block",
    "Choice",
    "Deviation",
    "Document",
    "Field",
    "Fields",
    "Message",
    "Option",
    "Part",
    "Repeat",
    "Spec",
    "Type",
    "load",
    "load_text",
]
