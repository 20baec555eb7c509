"""The picture of README: what is generated from the specification, and that it can be read."""

from pathlib import Path
from xml.etree import ElementTree

from tools.generate.outputs import OUTPUTS

PICTURE = Path(__file__).parents[2] / "docs" / "static" / "pipeline.svg"
SVG = "{http://www.w3.org/2000/svg}"
MADE = {
    "definitions.py": "definitions",
    "codec.py": "codec",
    "messages.py": "classes",
    "kernels.py": "kernels",
    "vectors.jsonl": "vectors",
    "reference.md": "pages",
    "pgoutput.ksy": "Kaitai",
    "pgoutput.lua": "Wireshark",
    "pgoutput.rs": "Rust",
    "pgoutput.go": "Go",
    "pgoutput.ts": "TypeScript",
}
"""A file of each kind that the generator writes, and the word for it in the picture."""
LETTER = 5.6
"""The mean width of a letter of the small font; those of names are wider by a third."""


def test_what_is_generated_is_in_the_picture() -> None:
    """Each kind of output has its word."""
    words = " ".join(ElementTree.parse(PICTURE).getroot().itertext())
    written = {Path(output.path).name for output in OUTPUTS}
    for file, word in MADE.items():
        assert file in written and word in words


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
        float(e.attrib["x"]) + float(e.attrib["width"]) / 2 for e in root.iter(f"{SVG}rect") if e.attrib["y"] == "130"
    ]
    for middle in tops:
        assert any(
            f"M{middle:g},104 V128" in d or f"M{middle:g},116 V128" in d or f" {middle:g},116 V128" in d for d in arrows
        )
    assert len(tops) == 5
