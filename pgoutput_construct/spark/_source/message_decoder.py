"""``decode``: typed rows of a table from payloads that came another way, such as through Kafka."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog._facts.lineage import Lineage
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.columnar import rows_schema
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import OUTSIDE, UNDESCRIBED, find_descriptions
from pgoutput_construct.columnar.index import BatchIndex, index_batch
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.errors import ChangeLogError, PgoutputError, ProtocolError
from pgoutput_construct.spark._execution import plain_errors
from pgoutput_construct.spark._log_view.table_columns import find_columns, group_descriptions
from pgoutput_construct.spark._source.segment_rows import with_column_names
from pgoutput_construct.stream.identifiers import full_name, normal_name
from pgoutput_construct.stream.relations import DESCRIBING, RelationHistory, undescribed_row
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire import parse
from pgoutput_construct.wire.messages import BY_TAG
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import MoreOptions, Streaming

_NEEDED: Final = ("seq", "payload")


def decode(
    messages: DataFrame,
    table: str,
    proto_version: int = 1,
    streaming: Streaming = "off",
    **others: Unpack[MoreOptions],
) -> DataFrame:
    """Decode the rows of one table among messages of a slot, wherever they come from.

    Args:
        messages: A row a message: ``payload`` (binary) and ``seq`` (bigint), its position in the stream. With streaming
            also ``in_stream`` (boolean: it stands between a Stream Start and its Stop, or is that Stop) and
            ``stream_xid`` (bigint: the transaction of that stream, null outside). Its Relations must be among them:
            they are collected, the rows are not. A view ``messages`` of a change log has these columns.
        table: ``schema.table``, as it was described last; in double quotes where SQL needs them.
        proto_version: As the slot was read, see ``parse``; so are ``streaming`` and ``others``.
        streaming: See there.
        others: See there.

    Returns:
        The table's columns, ``_op``, ``_before``, ``_unchanged``, ``_untyped`` as in a change log's rows, then ``seq``
        and ``_xid`` (of the (sub)transaction, inside streams). Which transactions committed, the messages say: their
        Commits are to be joined by programs that need it.

    Raises:
        ChangeLogError: A column is missing, or no Relation describes the table.
        PgoutputError: A message is malformed; an action raises it inside Spark's exception (see ``plain_errors``).
    """
    for name in _NEEDED:
        if name not in messages.columns:
            raise ChangeLogError(f"the messages have no column {name!r}: decode() needs {' and '.join(_NEEDED)}")
    layout = {"proto_version": proto_version, "streaming": streaming, **others}
    history = _history(messages, layout)
    latest = {each.relation.relation_oid: each for each in history.descriptions}
    names = {oid: full_name(each.relation) for oid, each in latest.items()}
    qualified = normal_name(table)
    chosen = [
        (number, each, False)
        for number, each in reversed([*enumerate(history.descriptions)])
        if names[each.relation.relation_oid] == qualified
    ]
    if not chosen:
        raise ChangeLogError(
            f"no Relation describes {qualified}: the messages have {', '.join(names.values()) or 'none'}"
        )
    columns = find_columns(group_descriptions(chosen, Lineage()), Lineage())
    decoder = _Decoder(history, columns.schema, columns.names, layout)
    return messages.select(*_present_columns(messages)).mapInArrow(
        decoder.decode, from_arrow_schema(decoder.schema, prefer_timestamp_ntz=True)
    )


def _present_columns(messages: DataFrame) -> list[str]:
    return [name for name in (*_NEEDED, *STATE_PARAMETERS, "stream_xid") if name in messages.columns]


def _history(messages: DataFrame, layout: Mapping[str, Any]) -> RelationHistory:
    """Collect the Relations and Types, and the messages that say which of them are in force."""
    tags = [tag.hex().upper() for tag, cls in BY_TAG.items() if cls in DESCRIBING]
    describing = messages.where(F.hex(F.substring(F.col("payload"), 1, 1)).isin(tags)).select(
        *_present_columns(messages)
    )
    with plain_errors():
        rows = sorted((row.asDict() for row in describing.collect()), key=lambda row: int(row["seq"]))
    history = RelationHistory()
    for row in rows:
        states = {name: row[name] for name in STATE_PARAMETERS if name in row}
        message = parse(bytes(row["payload"]), **layout, **states)
        history.read(ControlMessage(row["seq"], row.get("stream_xid"), message))
    return history


class _Decoder:
    """The work of each task; it is sent to executors."""

    def __init__(
        self,
        history: RelationHistory,
        columns: pa.Schema,
        names: Mapping[int, tuple[str, ...]],
        layout: Mapping[str, Any],
    ) -> None:
        self.history = history
        self.columns = columns
        self.names = dict(names)
        self.layout = dict(layout)
        added = [pa.field("seq", pa.int64()), pa.field("_xid", pa.int64())]
        self.schema = pa.schema([*rows_schema(columns), *added])

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode batches of messages."""
        for batch in batches:
            states = {name: batch.column(name) for name in STATE_PARAMETERS if name in batch.schema.names}
            index = index_batch(batch.column("payload"), **states, **self.layout)
            seqs = batch.column("seq").to_numpy()
            for row in index.malformed()[:1].tolist():
                raise PgoutputError(f"seq {seqs[row]}: {index.error(row)}")
            yield from self._rows(index, seqs, _scopes(batch))

    def _rows(self, index: BatchIndex, seqs: Numbers, scopes: Numbers) -> Iterator[pa.RecordBatch]:
        rows, oids = index.tables()
        found = find_descriptions(self.history, oids, scopes[rows], seqs[rows])
        mine = np.isin(oids, [self.history.descriptions[number].relation.relation_oid for number in self.names])
        for row in np.flatnonzero(mine & (found == UNDESCRIBED))[:1].tolist():
            raise ProtocolError(f"seq {seqs[rows[row]]}: {undescribed_row(oids[row])} before")
        for number in sorted(self.names.keys() & found.tolist()):
            description = with_column_names(self.history.descriptions[number], self.names[number])
            for block in table_rows(index, rows[found == number], DecodePlan(description, self.columns)):
                for error in block.errors:
                    raise PgoutputError(f"seq {seqs[error.row]}: {error}")
                assert block.batch is not None
                xids = index.rows["xid"][block.rows].astype(np.int64)
                added = [pa.array(seqs[block.rows]), pa.array(xids, mask=scopes[block.rows] == OUTSIDE)]
                yield pa.RecordBatch.from_arrays([*block.batch.columns, *added], schema=self.schema)


def _scopes(batch: pa.RecordBatch) -> Numbers:
    if "stream_xid" not in batch.schema.names:
        return np.full(batch.num_rows, OUTSIDE, np.int64)
    scopes: Numbers = batch.column("stream_xid").fill_null(OUTSIDE).to_numpy()
    return scopes
