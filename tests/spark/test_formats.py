"""What an address says of a bucket, and which jars it takes; ``warehouse/test_on_s3.py`` writes tables there."""

import sys
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark import formats
from pgoutput_construct.spark.formats import bucket_settings, format_settings, store_of

NAMES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
OWN = {"endpoint": "http://own:1", "endpoint.region": "here", "path.style.access": "true"}
OTHER = {"endpoint": "http://other:2", "endpoint.region": "there", "path.style.access": "true"}
SECRET = {"access.key": "k/y", "secret.key": "s+t"}
GIVEN = "endpoint_override=own:1&scheme=http&region=here"


@pytest.mark.parametrize(
    ("address", "environment", "expected"),
    [
        ("s3://b/lake", {}, {}),
        (f"s3://b/lake?{GIVEN}", {}, OWN),
        ("s3://b/lake", {"AWS_ENDPOINT_URL": "http://other:2", "AWS_REGION": "there"}, OTHER),
        (f"s3://b/lake?{GIVEN}", {"AWS_ENDPOINT_URL_S3": "http://other:2", "AWS_DEFAULT_REGION": "there"}, OWN),
        ("s3://k%2Fy:s%2Bt@b/lake", {}, SECRET),
        ("/tables", {"AWS_ENDPOINT_URL": "http://other:2"}, {}),
        ("file:///tables", {}, {}),
        (None, {}, {}),
    ],
)
def test_buckets(
    monkeypatch: pytest.MonkeyPatch, address: str | None, environment: dict[str, str], expected: dict[str, str]
) -> None:
    """The address counts before the environment; other buckets are not meant."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bucket_settings(address) == {f"fs.s3a.bucket.b.{key}": value for key, value in expected.items()}


def test_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of formats and stores together, for this version of Spark; one that has none is refused."""
    monkeypatch.setattr(formats, "_SPARK", "4.1")
    found = format_settings(["delta"], store_of("s3://b/lake"))
    assert "delta-spark" in found["spark.jars.packages"] and ",org.apache.hadoop:" in found["spark.jars.packages"]
    assert "software.amazon.awssdk:bundle" in found["spark.jars.excludes"].split(",")
    assert format_settings(["parquet"], store_of("/tables")) == {}
    monkeypatch.setattr(formats, "_SPARK", "9.9")
    with pytest.raises(pgo.PgoutputError, match=r"^s3 has jars for Spark 4\.1, 4\.2, 4\.3, not for "):
        format_settings(["parquet"], "s3")


@pytest.mark.spark
def test_jars_that_have_no_module(lake: Any) -> None:
    """Neither this process nor a task looks for modules in them: each task would read what is in them again."""

    def searched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"path": [each for each in sys.path if each.endswith(".jar")]})

    in_task = [row["path"] for row in lake.range(0, 1, 1, 1).mapInArrow(searched, "path string").collect()]
    for jars in in_task, [each for each in sys.path if each.endswith(".jar")]:
        assert any("delta-spark" in each for each in jars)
        assert all(any(name.endswith(".py") for name in ZipFile(each).namelist()) for each in jars)
