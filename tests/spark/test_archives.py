"""What workers keep of the zip files that modules come from."""

import importlib.util
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from pgoutput_construct.spark._execution import cache_archives


@pytest.mark.parametrize("keeps", [True, False])
def test_archives_are_not_read_for_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    """An importer that keeps what it knows does not look for what came into its file, as others do when told to."""
    archive = tmp_path / "modules.zip"
    with ZipFile(archive, "w") as file:
        file.writestr("module_of_archive.py", "")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.util.find_spec("module_of_archive") is not None
    try:
        if keeps:
            cache_archives()
        with ZipFile(archive, "a") as file:
            file.writestr("later_module.py", "")
        importlib.invalidate_caches()
        assert (importlib.util.find_spec("later_module") is None) == keeps
        assert importlib.util.find_spec("module_of_archive") is not None
    finally:
        sys.path_importer_cache.pop(str(archive), None)
