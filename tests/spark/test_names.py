"""Names of tables as directories and in SQL."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import directory_name, table_of_directory
from pgoutput_construct.stream.identifiers import qualified_name


@given(st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))
def test_directories_are_invertible(namespace: str, name: str) -> None:
    """Names that are not too long give a directory that gives them back, and is no path or pattern to anybody."""
    directory = directory_name(namespace, name)
    assert table_of_directory(directory) == (namespace, name)
    assert not set(directory) & set('/\\:*?[]{}=, "\n') and directory[0] not in "._"


@pytest.mark.parametrize(
    ("namespace", "name", "directory", "qualified"),
    [
        ("public", "item_1", "public.item_1", "public.item_1"),
        ("", "pg_class", "pg_catalog.pg_class", "pg_catalog.pg_class"),
        ("_s", "a.b", "%5Fs.a%2Eb", '_s."a.b"'),
        ("Odd", 'Straße "x"', "Odd.Straße%20%22x%22", '"Odd"."Straße ""x"""'),
    ],
)
def test_names(namespace: str, name: str, directory: str, qualified: str) -> None:
    """Plain names stay as they are."""
    assert directory_name(namespace, name) == directory
    assert qualified_name(namespace, name) == qualified


def test_bytes_that_are_not_utf_8() -> None:
    """A name from a database in another encoding is its bytes."""
    directory = directory_name("public", "caf\udce9")
    assert directory == "public.caf%E9"
    assert table_of_directory(directory) == ("public", "caf\udce9")


@pytest.mark.parametrize("letter", ["%", "ü", "表", "a"])
def test_long_names(letter: str, tmp_path: Path) -> None:
    """What no file system takes is cut, differs from every other, and says that it cannot be turned back."""
    names = [letter * 200 + end for end in ("", "x", "y")]
    directories = {directory_name("s" * 100, name) for name in names}
    assert len(directories) == 3
    for directory in directories:
        assert len(directory.encode()) <= 255 and directory.startswith("s" * 100 + ".")
        (tmp_path / directory).mkdir()
        with pytest.raises(PgoutputError, match=r"too long.*OpenLog\.table"):
            table_of_directory(directory)


def test_the_longest_names_of_a_server() -> None:
    """63 bytes each, all of them percent-encoded, are cut before a percent sign."""
    directory = directory_name("%" * 63, "%" * 63)
    assert len(directory.encode()) <= 255
    assert len(directory.partition("~")[0].replace(".", "")) % 3 == 0
