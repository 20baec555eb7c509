"""Debezium's embedded engine with its PostgreSQL connector: a program of ours writes each change as a line of JSON."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tools.benchmark.alternatives.change_source import PUBLICATION, TABLE, ChangeSource
from tools.benchmark.alternatives.pipeline import HEAP, MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage, measure_program
from tools.benchmark.alternatives.table_rows import COLUMNS, rows_of_lists
from tools.maven import MavenJars, java_program

__all__ = ["JARS", "DebeziumEngine", "connector_settings", "json_result"]

_VERSION: Final = "3.6.1.Final"
_SOURCE: Final = Path(__file__).parent / "java" / "ChangesToFile.java"
_COMPILER: Final = "org.eclipse.jdt.internal.compiler.batch.Main"
"""Eclipse's compiler: what Spark needs is a runtime of Java, which has none."""
JARS: Final = MavenJars(
    "debezium",
    f"""
<ivy-module version="2.0">
  <info organisation="pgoutput" module="debezium"/>
  <configurations defaultconfmapping="*->default"><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.debezium" name="debezium-api" rev="{_VERSION}"/>
    <dependency org="io.debezium" name="debezium-embedded" rev="{_VERSION}"/>
    <dependency org="io.debezium" name="debezium-connector-postgres" rev="{_VERSION}"/>
    <dependency org="org.eclipse.jdt" name="ecj" rev="3.38.0"/>
  </dependencies>
</ivy-module>
""",
)
"""The engine, the connector, and a compiler for the program."""
_CLASSES: Final = JARS.folder / "classes"
_STAMP: Final = _CLASSES / "source.txt"
_JSON_TYPES: Final = pa.schema(
    {
        **{field.name: field.type for field in COLUMNS},
        "created": pa.string(),
        "price": pa.string(),
        "day": pa.int32(),
    }
)
"""The types of the values that a line has: a timestamp in ISO 8601, a date as days."""


class DebeziumEngine(MeasuredPipeline):
    """The engine, without Kafka."""

    name = "debezium"
    title = f"Debezium's engine {_VERSION}: changes as lines of JSON"

    def prepare(self) -> str:
        """Fetch the jars, and compile the program."""
        if not JARS.fetch():
            return "its jars could not be fetched from Maven Central"
        source = _SOURCE.read_bytes()
        stamp = hashlib.sha256(source).hexdigest()
        if _STAMP.exists() and _STAMP.read_text("ascii") == stamp:
            return ""
        jars = os.pathsep.join(map(str, JARS.folder.glob("*.jar")))
        command = [java_program(), "-cp", jars, _COMPILER, "-17", "-cp", jars, "-d", str(_CLASSES), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"its program could not be compiled: {done.stderr.strip()[-600:]}"
        _STAMP.write_text(stamp, "ascii")
        return ""

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Read until all changes are in the file."""
        with source.slot() as slot:
            settings = connector_settings(source.port, slot, folder)
            lines = (f"{name}={value}\n" for name, value in settings.items())
            (folder / "connector.properties").write_text("".join(lines), "utf-8")
            classes = os.pathsep.join([str(_CLASSES), str(JARS.folder / "*")])
            command = [java_program(), f"-Xmx{HEAP}", "-cp", classes, "ChangesToFile"]
            arguments = ["connector.properties", "changes.json", str(source.changes)]
            return measure_program([*command, *arguments], folder)

    def result(self, folder: Path) -> PipelineResult:
        """Read the lines."""
        return json_result(folder / "changes.json")


def connector_settings(port: int, slot: str, folder: Path) -> Mapping[str, str]:
    """Return the properties of the connector; what is not named has Debezium's default.

    Args:
        port: The port of the server on 127.0.0.1.
        slot: The slot.
        folder: Where the offsets are stored.
    """
    return {
        "name": "alternatives",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": TABLE,
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "postgres",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / "offsets"),
        "decimal.handling.mode": "string",  # the default is base64
        "tombstones.on.delete": "false",  # there is no topic to compact
        "message.prefix.exclude.list": ".*",  # ingestr writes logical messages
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }


def json_result(file: Path) -> PipelineResult:
    """Return the number of changes in a file of Debezium's JSON, and the rows that remain.

    Args:
        file: One change a line, in the order of the stream.
    """
    rows: dict[int, Mapping[str, Any]] = {}
    changes = 0
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            change = json.loads(line)
            changes += 1
            if change["op"] == "d":
                del rows[change["before"]["id"]]
            else:
                rows[change["after"]["id"]] = change["after"]
    values = ([row[name] for name in COLUMNS.names] for row in rows.values())
    return PipelineResult(changes, rows_of_lists(values, _JSON_TYPES))
