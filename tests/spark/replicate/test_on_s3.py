"""Log and warehouse on an S3 server: tables of files and of a catalog, by one address."""

from typing import Any

import pytest

from pgoutput_construct.spark import read_current, replicate, spark_session
from tests.spark.logs import orders_after, write_orders

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("into", ["parquet", pytest.param("iceberg", marks=pytest.mark.long)])
def test_tables_on_s3(lake: Any, s3_address: str, into: str) -> None:
    """Two batches in each: the address says all that Spark needs."""
    warehouse = s3_address.replace("/deep/log?", f"/{into}?")
    session = spark_session(warehouse=warehouse)
    for first, last, how in ((0, 2, "written"), (2, 4, "changed")):
        write_orders(s3_address, range(first, last))
        batch = replicate(session, s3_address, warehouse, into)
        assert batch is not None and batch.tables == {"public.orders": how}
        rows = read_current(lake, warehouse, "public.orders").collect()
        assert {row.id: row.total and str(row.total) for row in rows} == orders_after(range(last))
