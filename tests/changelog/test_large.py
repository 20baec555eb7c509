"""A payload that is written into its Parquet page by ourselves."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment import segment_writer
from pgoutput_construct.changelog._segment.thrift import read_struct, struct_bytes
from pgoutput_construct.changelog.verify import verify
from tests.changelog.blocks import block_of

OPTIONS = LogOptions(slot="s", publications=("p",), server_version=180000, system_identifier="1", database="d")
SIZES = (20, 3, 1000)


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "_LARGE_BYTES", 1000)


def write(address: str) -> list[bytes]:
    """Write two segments that end with a large payload, which is alone in the second, and a small one; return all."""
    session, sizes = pgo.Session(), (*SIZES, 70_000, 5)
    payloads = [pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "", bytes(n % 251 for n in range(size)))) for size in sizes]
    with LogWriter(address) as writer:
        writer.use(OPTIONS)
        for seq, payload in enumerate(payloads):
            writer.append(block_of(session, seq, payload))
            if seq >= len(SIZES) - 1:
                writer.publish(Position())
    return payloads


@pytest.mark.slow
def test_a_large_payload_is_read_like_any_other(address: str) -> None:
    """In every store, with other rows and alone; verify finds no problem."""
    payloads = write(address)
    log = ChangeLog(address)
    assert [segment.rows for segment in log.segments] == [3, 1, 1]
    assert [entry.payload for entry in log] == payloads and log.entry(2).payload == payloads[2]
    assert verify(address).problems == ()


def test_the_file_is_valid_parquet(tmp_path: Path) -> None:
    """Its pages' checksums fit, its sizes and places are those of the file, and damage is found by the checksum."""
    payloads = write(str(tmp_path))
    file = min(tmp_path.glob("segment-*"))
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    assert parquet.read()["payload"].to_pylist() == payloads[: len(SIZES)]
    content, group = file.read_bytes(), parquet.metadata.row_group(parquet.num_row_groups - 1)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert group.total_byte_size == sum(column.total_uncompressed_size for column in columns)
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    assert columns[-1].data_page_offset + columns[-1].total_compressed_size == len(content) - 8 - len(footer)
    assert struct_bytes(read_struct(io.BytesIO(footer))) == footer
    damaged = bytearray(content)
    damaged[len(content) - 8 - len(footer) - 1] ^= 1
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)crc|checksum"):
        pq.ParquetFile(io.BytesIO(damaged), page_checksum_verification=True).read()
