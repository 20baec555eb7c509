"""The specification language: parsing, validation, and the model that the generator works from. Start in ``load``."""

from tools.language.elements import Alternative, Block, Choice, Repeat
from tools.language.fields import Field, Fields, Type
from tools.language.load import SPEC, load, load_text
from tools.language.model import Message, Part, Spec
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
