"""Log and warehouse on an S3 server: tables of each format, by one address."""

from typing import Any

import pytest

from pgoutput_construct.spark import open_log, read_current, replicate, spark_session
from tests.spark.logs import write_orders

pytestmark = pytest.mark.spark


def rows(frame: Any) -> list[Any]:
    """Return the rows of orders, in order."""
    return sorted(tuple(row) for row in frame.select("id", "total").collect())


@pytest.mark.parametrize("into", ["parquet", "delta", "iceberg"])
@pytest.mark.filterwarnings("ignore::pgoutput_construct.changelog.wholeness.IncompleteTableWarning")
def test_tables_on_s3(lake: Any, s3_address: str, into: str) -> None:
    """Two batches in each format: the address says all that Spark needs."""
    warehouse = s3_address.replace("/deep/log?", f"/{into}?")
    session = spark_session(warehouse=warehouse)
    for first, last in ((0, 2), (2, 4)):
        write_orders(s3_address, range(first, last))
        batch = replicate(session, s3_address, warehouse, into)
        assert batch is not None and batch.tables == {"public.orders": "written" if not first else "changed"}
        expected = rows(open_log(lake, s3_address).state("public.orders"))
        assert rows(read_current(lake, warehouse, "public.orders")) == expected and len(expected) > 10
