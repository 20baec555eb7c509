"""The picture of README: what is generated from the specification, and that it can be read."""

import re
from pathlib import Path
from xml.etree import ElementTree

from tools.generate.outputs import OUTPUTS

PICTURE = Path(__file__).parents[2] / "docs" / "static" / "pipeline.svg"
SVG = "{http://www.w3.org/2000/svg}"
MADE = {
    "definitions": r".*/wire/\w*definitions\.py",
    "codec": r".*/wire/\w*codec\.py",
    "classes": r".*/wire/(\w*messages|frames|\w*fields|protocol)\.py|.*/builtin_types\.py",
    "kernels": r".*/columnar/\w*kernels\.py",
    "vectors": r"spec/vectors.*",
    "pages": r"spec/reference.*\.md",
    "Kaitai": r"spec/\w+\.ksy",
    "Wireshark": r"spec/\w+\.lua",
    "Rust": r"spec/rust/.*",
    "Go": r"spec/go/.*",
    "TypeScript": r"spec/typescript/.*",
}
"""The words of the picture, and what the generator writes of each kind."""
OTHERS = {"Arrow columns", "strategies"}
"""Words of what follows from these."""
MADE_AT = "130"
"""Where the row of their boxes begins."""
HEIGHT = 56
LETTER = 5.6
"""The mean width of a letter of the small font; those of names are wider by a third."""


def test_what_is_generated_is_in_the_picture() -> None:
    """Each output is of one kind, and the boxes of these kinds have no other words."""
    root = ElementTree.parse(PICTURE).getroot()
    small = [e for e in root.iter(f"{SVG}text") if e.attrib["class"] == "box small"]
    texts = [each for each in small if 0 < float(each.attrib["y"]) - float(MADE_AT) < HEIGHT]
    assert {word for text in texts for word in (text.text or "").split(", ")} == MADE.keys() | OTHERS
    kinds = {each.path: [word for word in MADE if re.fullmatch(MADE[word], each.path)] for each in OUTPUTS}
    assert {path: found for path, found in kinds.items() if len(found) != 1} == {}
    assert {word for found in kinds.values() for word in found} == MADE.keys()


def test_words_are_inside_their_boxes() -> None:
    """Text in white, which is invisible outside of a box on a light page, has room in one."""
    root = ElementTree.parse(PICTURE).getroot()
    boxes = [
        tuple(float(each.attrib[key]) for key in ("x", "y", "width", "height"))
        for each in root.iter(f"{SVG}rect")
        if "fill" in each.attrib
    ]
    texts = [each for each in root.iter(f"{SVG}text") if "box" in each.attrib["class"]]
    assert len(texts) == 2 * len(boxes)
    for text in texts:
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        half = len(text.text or "") * LETTER * (1.33 if "name" in text.attrib["class"] else 1) / 2
        assert any(
            left <= x - half and x + half <= left + width and top < y < top + height
            for left, top, width, height in boxes
        ), text.text


def test_the_specification_has_a_line_to_each_kind() -> None:
    """An arrow ends at each box in the row below it."""
    root = ElementTree.parse(PICTURE).getroot()
    arrows = [e.attrib["d"] for e in root.iter(f"{SVG}path") if e.attrib.get("marker-end") == "url(#made)"]
    tops = [
        float(e.attrib["x"]) + float(e.attrib["width"]) / 2 for e in root.iter(f"{SVG}rect") if e.attrib["y"] == MADE_AT
    ]
    for middle in tops:
        assert any(
            f"M{middle:g},104 V128" in d or f"M{middle:g},116 V128" in d or f" {middle:g},116 V128" in d for d in arrows
        )
    assert len(tops) == 5
