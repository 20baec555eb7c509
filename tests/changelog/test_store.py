"""Where a log lies: a directory, an S3 server, a file system of fsspec."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import spark_path


def test_files_are_complete_or_absent(address: str) -> None:
    """What is written is listed with its size and read, in parts too; what failed on the way leaves no trace."""
    store = open_store(address)
    assert store.files() == {}
    store.prepare()
    store.prepare()
    store.write("one", b"0123456789")
    store.write(".hidden", b"x")
    store.write("one", b"9876543210")
    with pytest.raises(RuntimeError, match="on the way"), store.writing("two") as file:
        file.write(b"half")
        raise RuntimeError("on the way")
    assert store.files() == {"one": 10} and store.files("nothing") == {}
    written = store.modified("one")
    assert abs(written - time.time()) < 600
    with pytest.raises(MissingFileError, match="none"):
        store.modified("none")
    assert store.read("one") == b"9876543210" and store.read("one", last=3) == b"210" and store.read(".hidden") == b"x"
    with store.open("one") as opened:
        opened.seek(4)
        assert opened.read(2) == b"54"
    store.write("empty", b"")
    assert store.read("empty", last=3) == b"" and store.files() == {"one": 10, "empty": 0}
    store.delete("one")
    store.delete("one")
    for missing in ("one", "folder/none"):
        with pytest.raises(MissingFileError, match=missing):
            store.read(missing)


def test_a_store_can_be_pickled(address: str) -> None:
    """Executors open the same address for themselves."""
    store = open_store(address)
    store.prepare()
    store.write("one", b"1")
    assert pickle.loads(pickle.dumps(store)).read("one") == b"1" and pickle.loads(pickle.dumps(store)) == store


def test_folders(address: str) -> None:
    """A file may stand in a folder, which is no file of the log itself."""
    store = open_store(address)
    store.prepare()
    store.write("readers/spark.json", b"{}")
    assert store.files("readers") == {"spark.json": 2} and store.files() == {}


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log stays where it was when the working directory changes; file:// is a path too."""
    monkeypatch.chdir(tmp_path)
    store = open_store("log")
    monkeypatch.chdir("/")
    store.prepare()
    store.write("one", b"1")
    assert (tmp_path / "log" / "one").exists() and open_store(f"file://{tmp_path}/log").read("one") == b"1"


@pytest.mark.slow
def test_credentials_are_never_shown(tmp_path: Path) -> None:
    """Neither in names of a store nor in errors, whatever is wrong with the URI."""
    uris = (
        "s3://user:pass@bucket/log?session_token=pass&region=us-east-1",
        "s3://user:pa/ss@bucket/log",
        "s3://user:1/ss@bucket/log",
        "s3://user:pa#ss@bucket/log",
        "s3://user:pass@bucket/log?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1",
        "nothing://user:pass@bucket/log",
        "memory://user:pass@bucket/log",
    )
    for uri in uris:
        try:
            store = open_store(uri)
            text = f"{store} {store!r} {store.path_of('x')}"
            store.read("x")
        except ChangeLogError as error:
            text = f"{error} {error.__cause__}"
        assert "user" not in text and "ss@" not in text and "pass" not in text
    with pytest.raises(ChangeLogError, match="as a string"):
        open_store(Path("s3://bucket/log"))
    with pytest.raises(ChangeLogError, match="nothing://: neither pyarrow nor fsspec can open it"):
        open_store("nothing://x")


def test_a_container_is_no_credential() -> None:
    """In URLs of Azure it stands where others have a user; Spark needs it."""
    store = open_store("abfss://container@account.dfs.core.windows.net/lake")
    assert str(store) == "abfss://container@account.dfs.core.windows.net/lake"
    assert spark_path(store) == str(store)
    store = open_store("abfss://container:pass@account.dfs.core.windows.net/lake")
    assert "pass" not in f"{store} {store!r} {store.path_of('x')}" and "container@account" in str(store)


def test_a_directory_is_locked_by_one_process(tmp_path: Path) -> None:
    """A second lock is refused until the first is released; other purposes are not in its way."""
    store = open_store(tmp_path)
    with store.lock("capture") as lock:
        lock.check()
        with pytest.raises(ChangeLogError, match="another capture writes into this directory"):
            store.lock("capture")
        store.lock("compaction").release()
    with store.lock("capture"):
        pass


def test_an_exchanged_directory_is_noticed(tmp_path: Path) -> None:
    """The lock is what was locked, not what stands under its name: an unmounted volume shows another directory."""
    store = open_store(tmp_path / "log")
    store.prepare()
    with store.lock("capture") as lock:
        (tmp_path / "log").rename(tmp_path / "away")
        with pytest.raises(ChangeLogError, match="removed or exchanged"):
            lock.check()
        store.prepare()
        with pytest.raises(ChangeLogError, match="removed or exchanged"):
            lock.check()
        (tmp_path / "log" / ".capture.lock").touch()
        with pytest.raises(ChangeLogError, match="removed or exchanged"):
            lock.check()


@pytest.mark.slow
def test_the_last_claim_of_an_object_store_wins(s3_address: str) -> None:
    """The capture that was there before notices it; a lock with a time is refused while it is renewed."""
    store = open_store(s3_address)
    first = store.lock("capture")
    with store.lock("capture") as second:
        second.check()
        with pytest.raises(ChangeLogError, match="has lost the log"):
            first.check()
        first.release()
        second.check()
    with (
        store.lock("compaction", seconds=60),
        pytest.raises(ChangeLogError, match="another compaction is running here"),
    ):
        store.lock("compaction", seconds=60)
    store.lock("compaction", seconds=60)
    store.lock("compaction", seconds=0).check()
    store.write(".compaction.json", b"{")
    with pytest.raises(ChangeLogError, match=r"damaged: .*; remove it"):
        store.lock("compaction", seconds=60)


@pytest.mark.slow
def test_sweep_removes_files_of_killed_writers(tmp_path: Path) -> None:
    """Its unfinished file is removed; one that is being written is not."""
    store = LocalStore(tmp_path)
    code = "import os, sys; from pgoutput_construct.changelog._store.local_store import LocalStore\n" + (
        "with LocalStore(sys.argv[1]).writing('dead') as file: file.write(b'x'); file.flush(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, cwd=Path(__file__).parents[2])
    assert [path.name for path in tmp_path.iterdir()] == [".dead.tmp"]
    with store.writing("alive") as file:
        store.sweep()
        file.write(b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["alive"]


def test_a_file_that_is_completed_while_sweeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was unfinished when the directory was listed, and has its name since, is no error."""
    store, listed = LocalStore(tmp_path), Path.glob

    def complete(directory: Path, pattern: str) -> list[Path]:
        found = list(listed(directory, pattern))
        for path in found:
            path.rename(path.with_name("complete"))
        return found

    (tmp_path / ".complete.tmp").write_bytes(b"1")
    monkeypatch.setattr(Path, "glob", complete)
    store.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["complete"]


def test_errors_have_path_and_remedy(tmp_path: Path) -> None:
    """A file where the directory should be, listed or made into one."""
    (tmp_path / "file").write_text("")
    for call in (lambda: open_store(tmp_path / "file").prepare(), lambda: open_store(tmp_path / "file").files()):
        with pytest.raises(ChangeLogError, match=f"{tmp_path}/file.*check space, network"):
            call()


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Everything is readable and writable for all, unless somebody says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def _modes(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): f"{path.stat().st_mode & 0o7777:o}" for path in directory.rglob("*")}


@pytest.mark.usefixtures("open_umask")
def test_files_are_private(tmp_path: Path) -> None:
    """Also what stood there before with another mode; a directory that exists keeps its own."""
    store = LocalStore(tmp_path / "above" / "log")
    store.prepare()
    (store.directory / ".one.tmp").touch(0o666)
    store.write("one", b"1")
    store.write("a/b/two", b"2")
    with store.lock("capture"), store.lock("maintenance"):
        assert _modes(tmp_path) == {
            **dict.fromkeys(("above", "above/log", "above/log/a", "above/log/a/b"), "700"),
            **dict.fromkeys(
                (f"above/log/{name}" for name in (".capture.lock", ".maintenance.lock", "one", "a/b/two")), "600"
            ),
        }
    own = tmp_path / "own"
    own.mkdir(0o775)
    LocalStore(own).prepare()
    LocalStore(own).write("one", b"1")
    assert f"{own.stat().st_mode & 0o7777:o}" == "775" and _modes(own) == {"one": "600"}
    LocalStore(own, private=False).write("a/table", b"1")
    assert _modes(own) == {"one": "600", "a": "777", "a/table": "666"}


def test_the_file_mode_belongs_to_the_log(tmp_path: Path) -> None:
    """It counts for what is there and for what any process writes later, whatever its umask; directories follow it."""
    store = LocalStore(tmp_path)
    tmp_path.chmod(0o2700)
    store.write("one", b"1")
    store.write("a/two", b"2")
    (tmp_path / "link").symlink_to("nowhere")
    before = os.umask(0o077)
    try:
        store.set_file_mode(0o640)
        LocalStore(tmp_path).write("a/three", b"3")
        LocalStore(tmp_path).write("b/four", b"4")
    finally:
        os.umask(before)
    LocalStore(tmp_path).lock("capture").release()
    (tmp_path / "link").unlink()
    files, folders = (".file-mode", ".capture.lock", "one", "a/two", "a/three", "b/four"), ("a", "b")
    assert _modes(tmp_path) == {**dict.fromkeys(files, "640"), **dict.fromkeys(folders, "2750")}
    assert f"{tmp_path.stat().st_mode & 0o7777:o}" == "2750" and sorted(LocalStore(tmp_path).files()) == ["one"]
    store.set_file_mode(0o600)
    assert _modes(tmp_path) == {**dict.fromkeys(files, "600"), **dict.fromkeys(folders, "2700")}
    for mode in (0o400, 0o755, 0o1600, 0):
        with pytest.raises(ChangeLogError, match="is not a mode for the files of a log"):
            store.set_file_mode(mode)
    (tmp_path / ".file-mode").write_text("rw-r--r--")
    with pytest.raises(ChangeLogError, match=r"\.file-mode: 'rw-r--r--' is not a file mode: write a mode such as 0640"):
        store.write("one", b"1")
    with pytest.raises(ChangeLogError, match=r"objects have no file mode \(0640\)"):
        open_store("memory://log").set_file_mode(0o640)
