"""Names of tables as directories and in SQL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.spark.names import directory_name, qualified_name, table_of_directory


@given(st.text(min_size=1), st.text(min_size=1))
def test_directories_are_invertible(namespace: str, name: str) -> None:
    """Any two names give a directory that gives them back, and that nobody takes for a path or a pattern."""
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
