"""Messages that stand by themselves: a switch brings one, and generated streams have them."""

from pathlib import Path

import pytest

from tests.growth.project import grow

pytestmark = pytest.mark.long  # test_growth.py has switches, and draws streams of new messages
HERE = Path(__file__).parent


def test_messages_by_themselves(tmp_path: Path) -> None:
    """The switch is one of the options that decide what comes; the strategies of streams follow the specification."""
    done = grow(tmp_path, "drawn").run(HERE / "drawn.py")
    assert done.returncode == 0, done.stderr
