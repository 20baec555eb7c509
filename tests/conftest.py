"""Fixtures for every test: servers, a Spark session, stored recordings, and Hypothesis profiles."""

import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.live.capture import SERVER_SETTINGS
from tests.live.recording import STORE, Recording
from tools.class_archive import java_options
from tools.few_rows import FEW_ROWS
from tools.jars import LAKES, WAREHOUSE, missing_jars
from tools.servers import SERVERS, missing_server, open_server

PROFILES = {"save": 10, "quick": 50, "ci": 250, "soak": 20000}

for _name, _examples in PROFILES.items():
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=False,  # Hypothesis itself would repeat the same examples wherever CI is set
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{java_options()} -Djava.io.tmpdir={tempfile.gettempdir()}")
settings.load_profile(os.environ.get("PGOUTPUT_HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))


NEWEST = 18
"""The release that tests run on by default, if the others do the same there."""
_GIVEN_UP = "Python worker failed to connect back"
"""What Spark raises when a process of Python has not started within ten seconds (PythonWorkerFactory), as it may not on
a busy machine; no setting changes that."""
_ROOM = "-Xmn512m -XX:MetaspaceSize=256m"
"""Options of the JVM that all tests share: of what it holds, a tenth lives. It begins with a heap of a sixty-fourth of
the memory, and spent a quarter of its time on collections, some for the sake of classes."""
_OF_RELEASE = re.compile(r"\bpg(\d+)\b")
"""A parameter of the name of a test."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``long`` what runs on one release and needs no other; then sort.

    What takes many minutes comes first, then what needs servers, then Spark. The others come last: they are many and
    short, so that none is left to run alone at the end.
    """
    for item in items:
        releases = _OF_RELEASE.findall(item.name)
        if str(NEWEST) not in releases and releases and not item.get_closest_marker("differs_by_version"):
            item.add_marker(pytest.mark.long)
    marked = {item.path: set[str]() for item in items}
    for item in items:
        marked[item.path] |= {mark.name for mark in item.iter_markers()}
    order = {
        path: 0 if "first" in marks else 2 if "spark" in marks else 1 if "server" in marks else 3
        for path, marks in marked.items()
    }
    items.sort(key=lambda item: order[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test; once more if Spark gave up a worker of Python, for which it waits ten seconds on any machine."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(each.failed and _GIVEN_UP in each.longreprtext for each in reports):
        item.warn(pytest.PytestWarning(f"was run once more: {_GIVEN_UP}"))
        item._initrequest()  # type: ignore[attr-defined]
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class HalfWithSpark(LoadFileScheduling):
    """Files in turn; half of the processes take those with Spark first, the others take these last: few need a JVM.

    A JVM is slow until it has run the planner of Spark, and the writer of each format, for a while. The files of the
    others wait more than they compute: each half leaves time to the other.
    """

    def _assign_work_unit(self, node: Any) -> None:
        is_for_spark = 2 * self.nodes.index(node) < len(self.nodes)
        file = next((each for each in self.workqueue if _has_spark(self.config.rootpath / each) == is_for_spark), None)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


@cache
def _has_spark(file: Path) -> bool:
    """Return whether tests of a file need Spark."""
    return "mark.spark" in file.read_text("utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> HalfWithSpark | None:
    """Give the files of a run to its processes, unless they are to take tests in another way."""
    return HalfWithSpark(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def server16() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 16 for the whole run; use a database of your own and drop your slots."""
    with EmbeddedServer(16, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def server18() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 18 for the whole run; use a database of your own and drop your slots."""
    with EmbeddedServer(18, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def server19() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 19 for the whole run, where it was fetched; use a database of your own and drop your slots."""
    if problem := missing_server(19):
        pytest.skip(problem)
    with open_server(19, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(
    scope="session",
    params=[pytest.param(version, marks=pytest.mark.server, id=f"pg{version}") for version in SERVERS],
)
def server(request: pytest.FixtureRequest) -> EmbeddedServer:
    """Each of the servers in turn."""
    started: EmbeddedServer = request.getfixturevalue(f"server{request.param}")
    return started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark session in UTC, for a few rows: what it plans is not compiled.

    Programs that tests start in processes of their own, as users do, have Spark's own settings; and tests of exact
    values ask for ``compiled``, too.
    """
    from pgoutput_construct.spark import spark_session

    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    settings = {
        **FEW_ROWS,
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.memory": "1500m",  # several may run at the same time
        # What Spark and Delta Lake remember of tables and queries of former tests fills the heap.
        "spark.databricks.delta.delta.log.cacheSize": "8",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.warehouse.dir": warehouse,
    }
    _remember_classes()
    jars: Any = {} if missing_jars() else {"into": LAKES, "warehouse": WAREHOUSE}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_SUBMIT_OPTS", f"{os.environ['SPARK_SUBMIT_OPTS']} {_ROOM}")
        session = spark_session("local[2]", settings, "tests", **jars)
    yield session
    session.stop()


def _remember_classes() -> None:
    """Have Py4J remember which class a name is: it looks for ``PythonUtils`` in all jars, for each imported package.

    A class stays what it is; a name that is none may become one by a later import.
    """
    from py4j.java_gateway import JavaClass, JVMView

    look_up = JVMView.__getattr__

    def class_or_package(view: JVMView, name: str) -> Any:
        found = look_up(view, name)
        if isinstance(found, JavaClass):
            vars(view)[name] = found  # is found before __getattr__ is called
        return found

    JVMView.__getattr__ = class_or_package


@pytest.fixture
def compiled(spark: Any) -> Iterator[Any]:
    """The same session as users have it: plans are compiled, and adapted to what they meet, with several tasks."""
    own = {name: spark.conf.get(name) for name in FEW_ROWS}
    for name in own:
        spark.conf.unset(name)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    for name, value in own.items():
        spark.conf.set(name, value)


@pytest.fixture
def lake(spark: Any) -> Any:
    """The same session where it has Delta Lake, Iceberg and S3."""
    if problem := missing_jars():
        pytest.skip(problem)
    return spark


@pytest.fixture(scope="session")
def recordings() -> dict[str, Recording]:
    """The stored recordings, by name, such as ``18-v4-text``."""
    return {path.stem: Recording.load(path) for path in sorted(STORE.glob("*.txt"))}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """An S3 server for the whole run: its ``host:port``."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture
def s3_address(s3_server: str, tmp_path: Path) -> str:
    """The address of a log in a bucket of its own; its credentials are for this server only."""
    from pyarrow import fs

    bucket = tmp_path.name.replace("_", "-").lower()
    query = f"endpoint_override={s3_server}&scheme=http&allow_bucket_creation=true&region=us-east-1"
    system, path = fs.FileSystem.from_uri(f"s3://key:secret@{bucket}?{query}")
    system.create_dir(path)
    return f"s3://key:secret@{bucket}/deep/log?{query}"
