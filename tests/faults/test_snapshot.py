"""Copies of tables under attack, in a short form."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import drop_slot
from tools.faults.snapshot import Attack, attack

pytestmark = pytest.mark.server


@pytest.mark.long
def test_killed_while_tables_are_copied_and_change(server18: EmbeddedServer, tmp_path: Path) -> None:
    """Writers change, delete, truncate and alter; the capture is killed twice; the log has what the source has."""
    said: list[str] = []
    try:
        assert attack(server18, "attacked_copies", tmp_path, Attack(5000, 2, 2, 0.3), 7, said.append) == []
    finally:
        with server18.connect() as admin:
            drop_slot(admin, "attacked_attacked_copies", missing_ok=True)
            admin.execute("DROP DATABASE attacked_copies WITH (FORCE)")
    assert said[1].startswith("killed 2 times")
