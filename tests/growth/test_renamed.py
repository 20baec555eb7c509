"""Fields that were renamed, and fields that a version no longer has: nothing that was written before fails."""

from pathlib import Path

import pytest

from tests.growth.project import grow

pytestmark = pytest.mark.long  # test_later.py has a renamed field
HERE = Path(__file__).parent


def test_programs_of_today(tmp_path: Path) -> None:
    """Programs that use former names and former places run, and so does the package, which is one of them."""
    done = grow(tmp_path, "renamed").run(HERE / "renamed.py")
    assert done.returncode == 0, done.stderr
