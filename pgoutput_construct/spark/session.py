"""A Spark session as this package needs it: local unless told otherwise."""

import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.formats import format_settings
from pgoutput_construct.spark.stores import bucket_settings, store_of

__all__ = ["SETTINGS", "spark_session"]

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # PostgreSQL's columns may differ in case alone
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
}
"""What every session starts with."""

_MASTER = re.compile(r"(local(\[([1-9][0-9]*|\*)(, *[0-9]+)?\])?|yarn)$|(spark|k8s)://.|local-cluster\[")
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",  # a machine's own name need not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} "
    # Spark's ArrowWriter makes room before it writes; that Arrow checks each value again is most of what it takes.
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
}

_ONE_PROCESS: Final[Mapping[str, str]] = {"spark.python.daemon.module": "pgoutput_construct.spark.daemon"}
"""For a session in one process: elsewhere workers may lack the package, and then PySpark's own say so."""
_MASTER_KEY: Final = "spark.master"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit, whose process has a master already, is known."""


def spark_session(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    name: str = "pgoutput_construct",
    into: Collection[str] = (),
    warehouse: Address | None = None,
) -> SparkSession:
    """Return the running session, or start one on a master (``local[*]``, ``spark://host:7077``, ``yarn`` ...).

    Without a master it is that of spark-submit, or ``local[*]`` in a program of its own. ``settings`` are Spark's
    properties and win over ``SETTINGS``. ``into`` names formats of tables that the session is to write, such as
    ``["delta"]`` (see FORMATS), ``warehouse`` the address where: Spark then fetches the jars of the formats, and of S3,
    from Maven Central, once. The caller stops the session.

    Raises PgoutputError for a master that Spark does not know (Spark itself would print a stack trace), and for a
    format or store that this version of Spark has no jars for.
    """
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    chosen = {**SETTINGS, **_of_master(master), **format_settings(into, store_of(warehouse)), **(settings or {})}
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for key, value in bucket_settings(warehouse).items():
        spark.conf.set(key, value)  # with the others it would stand on Spark's command line
    return spark


def _of_master(master: str | None) -> Mapping[str, str]:
    """Return what a master needs; raise PgoutputError for one that is none."""
    if master is not None and not _MASTER.match(master):
        raise PgoutputError(
            f"{master!r} is no master of Spark: it is local, local[N], spark://HOST:PORT, yarn, or k8s://HOST:PORT"
        )
    if master is None or master.startswith(("local", "spark:")):
        # The property spark.pyspark.python counts for spark-submit alone; workers need this Python's packages, on
        # the machines of a standalone cluster under the same path unless the variable says otherwise.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None:
        return {}
    local = _LOCAL if master.startswith("local") else {}
    return {_MASTER_KEY: master, **local, **(_ONE_PROCESS if re.match(r"local(\[|$)", master) else {})}
