"""Messages that came another way become the same rows."""

from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark import decode, open_log, register
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.spark

COLUMNS = ("_op", "id", "name", "amount", "big", "_unchanged")


def test_messages_of_a_stream(spark: Any, tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """Streamed messages in any order: the rows are those of the log, and of transactions that were rolled back."""
    write_recording(tmp_path, recordings["18-v4-text"])
    register(spark)
    messages = spark.read.format("pgoutput").option("path", str(tmp_path)).option("view", "messages").load()
    rows = decode(messages.repartition(3), "public.item", proto_version=4, streaming="parallel")
    found = [tuple(map(str, row)) for row in rows.orderBy("seq").select(*COLUMNS).collect()]
    expected = [
        tuple(map(str, row)) for row in open_log(spark, tmp_path).changes("public.item").select(*COLUMNS).collect()
    ]
    assert len(found) > len(expected) and not set(expected) - set(found)
    with pytest.raises(pgo.ChangeLogError, match=r"no Relation describes public\.other: the messages have "):
        decode(messages, "public.other", proto_version=4, streaming="parallel")
    with pytest.raises(pgo.ChangeLogError, match="no column 'seq'"):
        decode(messages.drop("seq"), "public.item")
