"""``pgoutput verify``: arguments are checked before a session is started."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no warehouse here (no table was replicated into it)"),
        (["--resume", "damaged.json"], "invalid progress file of a verification: "),
        (["--wait", "0"], "0.0 is not in the range"),
    ],
)
def test_invalid_arguments(run: Run, change_log: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    """One line, without a password."""
    (tmp_path / "damaged.json").write_text("{}}")
    if arguments[:1] == ["--resume"]:
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / "_warehouse.json").write_text('{"format": "parquet"}')
        arguments = ["--resume", str(tmp_path / arguments[1])]
    dsn = "host=nowhere password=secret"
    result = run("verify", change_log, "--dsn", dsn, "--warehouse", tmp_path / "w", *arguments)
    assert result.exit_code != 0 and said in result.output and "secret" not in result.output
