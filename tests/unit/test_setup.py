"""Set-up decides from what it finds; here it finds made-up machines."""

from __future__ import annotations

import os
import sys
import time

import pytest

from dbext.control import bootstrap, distribution, environment, packages, postgres, state, tree
from dbext.errors import DbextError, NotPermitted, NotSupported


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose only PostgreSQL installations are those the test makes."""
    monkeypatch.delenv("PG_CONFIG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setattr(postgres, "USUAL_FOLDERS", (f"{tmp_path}/*/bin",))

    def make(major, *, server=True, plpython="libpython3.11.so.1.0", dblink=True):
        root = tmp_path / str(major)
        folders = {name: root / name for name in ("bin", "share", "lib")}
        for folder in (*folders.values(), folders["share"] / "extension"):
            folder.mkdir(parents=True)
        script = f"#!/bin/sh\nprintf 'PostgreSQL {major}.1\\n{folders['bin']}\\n{folders['share']}\\n{folders['lib']}\\n'\n"
        write_program(folders["bin"] / "pg_config", script)
        for name in ("postgres", "initdb") if server else ():
            write_program(folders["bin"] / name, "#!/bin/sh\n")
        if plpython:
            (folders["lib"] / "plpython3.so").write_bytes(b"\x7fELF..\0" + plpython.encode() + b"\0..")
            (folders["share"] / "extension" / "plpython3u.control").touch()
        if dblink:
            (folders["share"] / "extension" / "dblink.control").touch()
        return root

    return make


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_the_highest_usable_major_is_taken(machine):
    machine(15)
    machine(17)
    machine(18, plpython=None)
    assert postgres.usable_installation().major == 17
    assert [one.major for one in postgres.installations()] == [18, 17, 15]


def test_unsupported_majors_do_not_exist(machine):
    machine(13)
    machine(19)
    assert postgres.installations() == []


def test_pg_config_in_the_environment_decides_alone(machine, monkeypatch):
    machine(17)
    monkeypatch.setenv("PG_CONFIG", str(machine(15) / "bin" / "pg_config"))
    assert postgres.usable_installation().major == 15


@pytest.mark.parametrize(
    ("made", "said"), [({}, "no PostgreSQL 14 to 18 server"), ({"major": 16, "plpython": None}, "PostgreSQL 16 is here without plpython3u")]
)
def test_what_is_missing_is_said(machine, made, said):
    if made:
        machine(**made)
    with pytest.raises(NotSupported, match=said) as refusal:
        postgres.usable_installation()
    assert "apt-get install postgresql postgresql-plpython3-NN" in refusal.value.hint


@pytest.mark.parametrize(("candidate", "major"), [(15, "15"), (None, "NN")])
def test_the_distribution_decides_which_server_is_installed(machine, monkeypatch, candidate, major):
    machine(18, plpython=None)
    monkeypatch.setattr(distribution, "default_major", lambda: candidate)
    assert bootstrap.missing_packages(postgres.installations())[:2] == ["postgresql", f"postgresql-plpython3-{major}"]


def test_a_packaged_server_only_gets_what_it_lacks(machine, monkeypatch, tmp_path):
    machine(16, plpython=None)
    monkeypatch.setattr(postgres, "PACKAGED", tmp_path)
    monkeypatch.setattr(environment, "can_make_environments", lambda _: False)
    assert bootstrap.missing_packages(postgres.installations()) == ["postgresql-plpython3-16", "python3-venv"]


@pytest.mark.parametrize(("library", "version"), [("libpython3.11.so.1.0", (3, 11)), ("libpython3.9.so", (3, 9)), ("none", None)])
def test_the_embedded_python_is_read_from_the_library(machine, library, version):
    machine(16, plpython=library)
    assert postgres.usable_installation().python_version == version


def test_a_python_that_is_too_old_or_missing_is_refused(machine):
    machine(16, plpython="libpython3.9.so")
    with pytest.raises(NotSupported, match=r"3\.10 or later"):
        environment.server_python(postgres.usable_installation())


def test_a_python_that_is_missing_is_named(machine):
    machine(16, plpython="libpython3.77.so")
    with pytest.raises(NotSupported) as refusal:
        environment.server_python(postgres.usable_installation())
    assert "apt-get install python3.77 python3.77-venv" in refusal.value.hint


def test_missing_packages_are_installed_and_then_found(machine, monkeypatch):
    installed = []

    def install(names, _why):
        installed.extend(names)
        machine(15)

    monkeypatch.setattr(distribution, "update", lambda: None)
    monkeypatch.setattr(distribution, "default_major", lambda: 15)
    monkeypatch.setattr(distribution, "install_packages", install)
    assert bootstrap.ensure_server().major == 15
    assert installed[:2] == ["postgresql", "postgresql-plpython3-15"]


def test_without_rights_the_command_is_printed(monkeypatch):
    monkeypatch.setattr(distribution, "privilege", lambda: None)
    monkeypatch.setattr(distribution.shutil, "which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(NotSupported) as refusal:
        distribution.install_packages(["postgresql"], "no server")
    assert "apt-get update && apt-get install -y postgresql" in refusal.value.hint


def test_without_apt_the_packages_are_named(monkeypatch):
    monkeypatch.setattr(distribution.shutil, "which", lambda _: None)
    with pytest.raises(NotSupported) as refusal:
        distribution.install_packages(["postgresql"], "no server")
    assert "postgresql" in refusal.value.hint


def test_installing_starts_no_server_of_its_own(monkeypatch):
    commands = []
    distribution.update.cache_clear()
    monkeypatch.setattr(distribution, "privilege", lambda: ["sudo", "-n"])
    monkeypatch.setattr(distribution.shutil, "which", lambda _: "/usr/bin/apt-get")
    monkeypatch.setattr(distribution, "run", lambda command, **options: commands.append((command[2:], options.get("stdin"))))
    distribution.install_packages(["postgresql"], "no server")
    programs = [command[0] for command, _ in commands]
    assert programs == ["mkdir", "tee", "env", "env", "rm"]
    assert commands[1][1] == "create_main_cluster = false\n"
    assert "DEBIAN_FRONTEND=noninteractive" in commands[3][0]


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_state_folder_that_others_may_write_is_refused(tmp_path, monkeypatch, mode):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("DBEXT_HOME", str(folder))
    with pytest.raises(NotPermitted):
        state.state_folder()


def test_a_state_folder_behind_a_link_is_refused(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "link"))
    with pytest.raises(NotPermitted):
        state.state_folder()


def test_the_state_folder_is_readable_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "state"))
    before = os.umask(0o077)
    try:
        assert state.state_folder().stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)


def test_cleaning_removes_only_what_was_made(tmp_path, monkeypatch):
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "state"))
    folder = state.state_folder()
    (folder / "venv-1").mkdir()
    (folder / "precious").touch()
    assert bootstrap.clean() == 0
    assert [path.name for path in folder.iterdir()] == ["precious"]


def test_nothing_is_cleaned_under_a_running_server(tmp_path, monkeypatch):
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "state"))
    folder = state.state_folder()
    (folder / f"cluster-{os.getpid()}-demo-x").mkdir()
    (folder / "venv-1").mkdir()
    with pytest.raises(NotPermitted, match="still runs"):
        bootstrap.clean()
    assert (folder / "venv-1").exists()


def test_a_relocated_tree_links_all_but_our_own_files(machine, tmp_path):
    root = machine(16)
    (root / "share" / "extension" / "dbext.control").touch()
    (root / "share" / "timezonesets").mkdir()
    moved = tree.relocate(postgres.usable_installation(), tmp_path / "tree")
    assert (moved.bindir / "postgres").is_file()
    assert not (moved.bindir / "postgres").is_symlink()
    assert (moved.sharedir / "timezonesets").is_symlink()
    assert {path.name for path in moved.extension_folder.iterdir()} == {"plpython3u.control", "dblink.control"}
    assert not moved.extension_folder.is_symlink()


def test_the_server_folder_follows_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "state"))
    package = tmp_path / "dbext"
    package.mkdir()
    (package / "__init__.py").write_text("x = 1\n")
    (package / "notes.txt").write_text("not copied")
    monkeypatch.setattr(packages, "package_folder", lambda: package)
    first = packages.server_folder(tmp_path)
    assert packages.server_folder(tmp_path) == first
    assert sorted(path.name for path in (first / "dbext").iterdir()) == ["__init__.py", "__pycache__"]
    (package / "__init__.py").write_text("x = 2\n")
    assert packages.server_folder(tmp_path) != first
    assert first.exists()


def test_only_the_newest_folders_and_those_in_use_are_kept(tmp_path):
    for age in range(5):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (time.time() - age, time.time() - age))
    packages.keep_newest(tmp_path.iterdir(), 2, in_use={tmp_path / "3"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "3"]


def test_set_up_reports_a_failing_step(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("DBEXT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PG_CONFIG", "/nowhere/pg_config")
    assert bootstrap.main(["--", "-c", "pass"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "error: no PostgreSQL 14 to 18 server was found" in said.err
    assert "hint: On Debian or Ubuntu: apt-get install" in said.err


def test_a_command_that_fails_says_how_to_see_why(capfd):
    with pytest.raises(DbextError) as failure:
        environment.run([sys.executable, "-c", "raise SystemExit(3)"], failing="it did not work")
    assert failure.value.message == "it did not work"
    assert sys.executable in failure.value.hint
    assert capfd.readouterr().err.startswith("==> ")
