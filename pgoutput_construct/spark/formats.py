"""The settings of a Spark session, and the jars for formats of tables and for object stores."""

import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qs, unquote, urlsplit
from zipfile import BadZipFile, ZipFile

import pyspark
from pyspark.sql import SparkSession

from pgoutput_construct.changelog._store.store import Address, is_uri
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import JAVA, has_java, installation
from pgoutput_construct.spark._deferred_session import NEEDED_BY, DeferredSession, needed_by
from pgoutput_construct.spark._heap import HEAP, default_heap, heap_of, machine_memory

__all__ = [
    "FORMATS",
    "SETTINGS",
    "STORES",
    "bucket_settings",
    "check_format",
    "check_master",
    "deferred_session",
    "format_settings",
    "spark_session",
    "store_of",
]

_LOG: Final = logging.getLogger("pgoutput_construct")
_SPARK: Final = ".".join(pyspark.__version__.split(".")[:2])
_EXTENSIONS: Final = "spark.sql.extensions"
_PACKAGES: Final = "spark.jars.packages"
_EXCLUDED: Final = "spark.jars.excludes"


class TableFormat(NamedTuple):
    """A format of tables, as a session knows it."""

    jars: Mapping[str, str]
    """By version of Spark: their Maven coordinates (group:artifact:version)."""
    extension: str
    """The class that brings its SQL; a session that has it has the jars."""
    settings: Mapping[str, str]
    """Further settings of the session."""


FORMATS: Final[Mapping[str, TableFormat]] = {
    "parquet": TableFormat({}, "", {}),
    "delta": TableFormat(
        {"4.1": "io.delta:delta-spark_4.1_2.13:4.4.0"},
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",  # of its own metadata; by default 50 tasks for each read
        },
    ),
    "iceberg": TableFormat(
        {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"},
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        {},
    ),
}
"""The formats that tables can be written in."""


def format_settings(names: Collection[str], store: str | None = None) -> dict[str, str]:
    """Return the properties of a session that writes tables of these formats; raise PgoutputError where none can.

    ``store`` is the object store of the warehouse, one of STORES; None for directories.
    """
    formats = [_table_format(name) for name in names]
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
    extension = _table_format(name).extension
    if extension and extension not in (spark.conf.get(_EXTENSIONS, "") or ""):
        raise PgoutputError(
            f"the Spark session has no {name}: start it with spark_session(into=[{name!r}]), or set {_PACKAGES}, "
            f"{_EXTENSIONS} and what else its documentation asks for"
        )


def _table_format(name: str) -> TableFormat:
    if name not in FORMATS:
        raise PgoutputError(f"unknown table format {name!r}: choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _jars(name: str, jars: Mapping[str, str]) -> str:
    if _SPARK not in jars:
        raise PgoutputError(
            f"{name} has jars for Spark {', '.join(jars)}, not for {pyspark.__version__}: {installation('lakes')}; or "
            "choose parquet, in a directory"
        )
    return jars[_SPARK]


class ObjectStore(NamedTuple):
    """An object store, as Hadoop knows it."""

    jars: Mapping[str, str]
    """By version of Spark: their Maven coordinates (group:artifact:version), separated by commas."""
    excluded: tuple[str, ...]
    """Dependencies of these that are not needed: Spark has them."""
    bucket: str
    """The prefix of settings of one bucket."""


def _s3(hadoop: str, sdk: str) -> str:
    """Return the jars for S3 of a version of Hadoop, which is Spark's own, with its AWS SDK."""
    parts = (f"software.amazon.awssdk:{part}:{sdk}" for part in ("s3-transfer-manager", "sts", "apache-client"))
    return ",".join((f"org.apache.hadoop:hadoop-aws:{hadoop}", *parts))


STORES: Final[Mapping[str, ObjectStore]] = {
    "s3": ObjectStore(
        {"4.1": _s3("3.4.2", "2.29.52"), "4.2": _s3("3.5.0", "2.35.4"), "4.3": _s3("3.5.0", "2.35.4")},
        (
            "software.amazon.awssdk:bundle",  # the clients of all services of AWS: 600 MB
            "commons-codec:*",
            "commons-logging:*",
            "io.netty:*",
            "org.apache.httpcomponents:*",
            "org.slf4j:*",
            "org.wildfly.openssl:*",
        ),
        "fs.s3a.bucket.",
    ),
}
"""By the schemes of URLs."""


def store_of(address: Address | None) -> str | None:
    """Return the name in STORES of the store of an address; None where Spark needs no jars for it."""
    if address is None or not is_uri(address):
        return None
    scheme = urlsplit(str(address)).scheme.lower()
    return scheme if scheme in STORES else None


def bucket_settings(address: Address | None) -> dict[str, str]:
    """Return a session's settings for the bucket of an address: endpoint, region, credentials.

    They come from the URL; endpoint and region from the environment where it has none (``AWS_ENDPOINT_URL_S3``,
    ``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_DEFAULT_REGION``). Credentials in the environment are not included:
    Spark reads these itself.
    """
    name = store_of(address)
    if name is None:
        return {}
    parts = urlsplit(str(address))
    prefix = f"{STORES[name].bucket}{parts.netloc.rpartition('@')[2]}."
    return {
        f"{prefix}{key}": value for key, value in _hadoop_options(parts.netloc, parse_qs(parts.query)).items() if value
    }


def _hadoop_options(netloc: str, query: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the options of a URL under Hadoop's names."""
    user, _, password = netloc.rpartition("@")[0].partition(":")
    host = query.get("endpoint_override", [""])[-1]
    scheme = query.get("scheme", ["https"])[-1]
    endpoint = (f"{scheme}://{host}" if host else "") or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return {
        "access.key": unquote(user),
        "secret.key": unquote(password),
        "endpoint": endpoint,
        "endpoint.region": query.get("region", [""])[-1] or _environment("AWS_REGION", "AWS_DEFAULT_REGION"),
        "path.style.access": "true" if endpoint else "",  # one that is not AWS has no host for each bucket
    }


def _environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # PostgreSQL's columns may differ in case alone
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.artifact.isolation.enabled": "false",  # this session and those of our own share Python's workers
    # Each expression of a DataFrame would take a walk through Python's stack, and five calls into the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # PySpark 4.1 has no admission control: a query with ``availableNow`` would end with the batch that was interrupted.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
}
"""The settings of every session."""
_MASTER = re.compile(r"(local(\[([1-9][0-9]*|\*)(, *[0-9]+)?\])?|yarn)$|(spark|k8s)://.|local-cluster\[")
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",  # a machine's own name need not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # Of a task that takes more memory than there is. Spark would end the JVM, and with it the work for all tables.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} "
    # Spark's ArrowWriter allocates before it writes; Arrow's checks of each value take most of its time.
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
}
_ONE_PROCESS: Final[Mapping[str, str]] = {"spark.python.daemon.module": "pgoutput_construct.spark.daemon"}
"""For a session in one process: elsewhere workers may lack the package, which PySpark's own daemon reports."""
_MASTER_KEY: Final = "spark.master"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable of a process that spark-submit started, which has a master already."""
_VARIABLES: Final = (_SUBMITTED, "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE")
"""The environment variables,"""
_JAVA_OPTIONS: Final = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""those that may have options of the JVM, and"""
_CONFIGURATION: Final = ("spark-defaults.conf", "spark-env.sh")
"""the files, of a process whose Spark has settings that are not given here."""
_NAME: Final = "pgoutput_construct"


def spark_session(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    name: str = _NAME,
    into: Collection[str] = (),
    warehouse: Address | None = None,
) -> SparkSession:
    """Return the running session, or start one on a master (``local[*]``, ``spark://host:7077``, ``yarn`` ...).

    The caller stops it. Unless ``spark.driver.memory`` is set, its heap is a quarter of the memory of the machine, or
    of the container, and at least 1 GB.

    Args:
        master: The master; None for that of spark-submit, or ``local[*]`` in a program of its own.
        settings: Spark's properties, which win over ``SETTINGS``; ``spark.jars.packages`` in addition to those of
            formats.
        name: The name of the application.
        into: Formats of tables that the session is to write, such as ``["delta"]`` (see FORMATS). Spark fetches their
            jars from Maven Central, once.
        warehouse: The address of these tables; for S3 its jars are fetched, too.

    Raises:
        PgoutputError: The master is invalid, or this version of Spark has no
            jars for a format or store.
    """
    return _started(_all_settings(master, settings, into, warehouse), name, warehouse)


def deferred_session(
    announce: Callable[[str], None],
    master: str,
    settings: Mapping[str, str] | None = None,
    into: Collection[str] = (),
    warehouse: Address | None = None,
) -> SparkSession:
    """Return what stands for a session of ``spark_session`` until something needs Spark, which is started then.

    Where Spark has a session already, or settings that this process does not know, it is that of ``spark_session``.

    Args:
        announce: Called before Spark is started, with what needs it, such as a table; "" for nothing in particular.
        master: The master.
        settings: Spark's properties.
        into: Formats of tables that the session is to write.
        warehouse: The address of these tables.

    Raises:
        PgoutputError: As ``spark_session``.
    """
    chosen = _all_settings(master, settings, into, warehouse)

    def start() -> SparkSession:
        what = NEEDED_BY.get()
        if not has_java():
            raise PgoutputError(f"{what or 'this'} needs Spark. {JAVA}")
        announce(what)
        return _started(chosen, _NAME, warehouse)

    if others := _other_settings():
        with needed_by(f"what {others} sets"):
            return start()
    settled = {**chosen, **bucket_settings(warehouse)}
    return cast("SparkSession", DeferredSession(start, settled, can_start=has_java))


def _other_settings() -> str:
    """Return what has settings of Spark that are not given here: a session, a variable, a file; "" for nothing."""
    running: Any = SparkSession
    if running._instantiatedSession is not None:
        return "the session"
    folder = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0], "conf")
    found = [name for name in _VARIABLES if name in os.environ]
    found += [name for name in _JAVA_OPTIONS if "-Dspark." in os.environ.get(name, "")]
    found += [str(path) for name in _CONFIGURATION if (path := Path(folder, name)).exists()]
    return next(iter(found), "")


def _all_settings(
    master: str | None, settings: Mapping[str, str] | None, into: Collection[str], warehouse: Address | None
) -> dict[str, str]:
    """Return the settings that a session is started with; raise PgoutputError as ``spark_session`` does."""
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    given, own = dict(settings or {}), format_settings(into, store_of(warehouse))
    if _PACKAGES in given and _PACKAGES in own:
        given[_PACKAGES] = f"{own[_PACKAGES]},{given[_PACKAGES]}"
    return {**SETTINGS, **_of_master(master), **own, **given}


def _started(settings: Mapping[str, str], name: str, warehouse: Address | None) -> SparkSession:
    """Return the running session, or start one."""
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _import_from_no_jar()
    if (heap := heap_of(spark)) is not None:
        _LOG.info("Spark's tasks have a heap of %s (%s)", heap, heap.setting)
    for key, value in bucket_settings(warehouse).items():
        spark.conf.set(key, value)  # not with the others, which are on Spark's command line
    return spark


def _import_from_no_jar() -> None:
    """Have Python look for modules in no jar that has none.

    Spark takes the jars of packages for packages of Python, too: each task would read what is in them again
    (``importlib.invalidate_caches``), which takes half a second of CPU for Iceberg's and those of S3.
    """
    try:
        from pyspark import SparkContext, SparkFiles
    except ImportError:  # of pyspark-client, whose sessions are all on a server
        return
    context = SparkContext._active_spark_context
    includes: list[str] = [] if context is None else context._python_includes or []
    for name in [each for each in includes if each.endswith(".jar")]:
        path = Path(SparkFiles.getRootDirectory()) / name
        with suppress(OSError, BadZipFile), ZipFile(path) as jar:
            if not any(each.endswith((".py", ".pyc")) for each in jar.namelist()):
                includes.remove(name)
                with suppress(ValueError):
                    sys.path.remove(str(path))


def check_master(master: str | None) -> None:
    """Raise PgoutputError for an invalid master: Spark itself would print a stack trace."""
    if master is not None and not _MASTER.match(master):
        raise PgoutputError(
            f"invalid Spark master {master!r}: it is local, local[N], spark://HOST:PORT, yarn, or k8s://HOST:PORT"
        )


def _of_master(master: str | None) -> Mapping[str, str]:
    """Return the settings for a master; raise PgoutputError for an invalid one."""
    check_master(master)
    if master is None or master.startswith(("local", "spark:")):
        # The property spark.pyspark.python counts for spark-submit alone; workers need this Python's packages, on
        # the machines of a standalone cluster under the same path unless the variable says otherwise.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None:
        return {}
    if master.startswith("local") and (memory := machine_memory()) is not None:
        os.environ.setdefault(HEAP, f"{default_heap(memory) >> 20}m")
    local = _LOCAL if master.startswith("local") else {}
    return {_MASTER_KEY: master, **local, **(_ONE_PROCESS if re.match(r"local(\[|$)", master) else {})}
