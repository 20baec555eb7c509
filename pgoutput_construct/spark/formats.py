"""The formats of tables that Spark writes with jars of others: which jars, and which settings of a session."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import pyspark
from pyspark.sql import SparkSession

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import installation
from pgoutput_construct.spark.stores import STORES

__all__ = ["FORMATS", "TableFormat", "check_format", "format_settings"]

_SPARK: Final = ".".join(pyspark.__version__.split(".")[:2])
_EXTENSIONS: Final = "spark.sql.extensions"
_PACKAGES: Final = "spark.jars.packages"
_EXCLUDED: Final = "spark.jars.excludes"


class TableFormat(NamedTuple):
    """A format, as a session knows it."""

    jars: Mapping[str, str]
    """By version of Spark: what Maven Central calls them (group:artifact:version)."""
    extension: str
    """The class that brings its SQL; a session that has it has the jars."""
    settings: Mapping[str, str]
    """What else the session is started with."""


FORMATS: Final[Mapping[str, TableFormat]] = {
    "parquet": TableFormat({}, "", {}),
    "delta": TableFormat(
        {"4.1": "io.delta:delta-spark_2.13:4.1.0"},
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",  # of its own metadata; 50 tasks a look otherwise
        },
    ),
    "iceberg": TableFormat(
        {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"},
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        {},
    ),
}
"""All that tables can be written into."""


def format_settings(names: Collection[str], store: str | None = None) -> dict[str, str]:
    """Return the properties of a session that writes tables of these formats; raise PgoutputError where none can.

    ``store`` is where they lie, one of STORES; None for directories.
    """
    formats = [_known(name) for name in names]
    found = {key: value for each in formats for key, value in each.settings.items()}
    jars = [_jars(name, each.jars) for name, each in zip(names, formats, strict=True) if each.jars]
    if jars:
        found[_EXTENSIONS] = ",".join(each.extension for each in formats if each.jars)
    if store is not None:
        jars.append(_jars(store, STORES[store].jars))
        found[_EXCLUDED] = ",".join(STORES[store].excluded)
    return found | ({_PACKAGES: ",".join(jars)} if jars else {})


def check_format(spark: SparkSession, name: str) -> None:
    """Raise PgoutputError when a session that runs cannot write tables of a format."""
    extension = _known(name).extension
    if extension and extension not in (spark.conf.get(_EXTENSIONS, "") or ""):
        raise PgoutputError(
            f"the Spark session has no {name}: start it with spark_session(into=[{name!r}]), or set {_PACKAGES}, "
            f"{_EXTENSIONS} and what else its documentation asks for"
        )


def _known(name: str) -> TableFormat:
    if name not in FORMATS:
        raise PgoutputError(f"{name!r} is no format of tables: choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _jars(name: str, jars: Mapping[str, str]) -> str:
    if _SPARK not in jars:
        raise PgoutputError(
            f"{name} has jars for Spark {', '.join(jars)}, not for {pyspark.__version__}: {installation('lakes')}; or "
            "choose parquet, in a directory"
        )
    return jars[_SPARK]
