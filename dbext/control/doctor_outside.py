"""What lies outside the database: versions, the folder of the Python packages, the second session."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg

from dbext import __version__
from dbext.control.doctor_checks import Eyes, Finding
from dbext.control.probe import check_second_session, without_password
from dbext.errors import DbextError

_RUNTIME = "SELECT r.python_path, r.second_session FROM dbext_private.runtime r"
#: Runs in the server: its packages, and every folder above them, must be writable by root and the server's own account alone.
_WALK = """
import json, os, pwd, stat
account, found, folder = os.geteuid(), [], %s
above = os.path.realpath(folder)
places = [os.path.join(above, name) for name in (os.listdir(above) if os.path.isdir(above) else [])]
places += [os.path.join(above, 'dbext', name) for place in places if place.endswith('/dbext') for name in os.listdir(place)]
if not os.path.isdir(folder):
    found.append([folder, 'the server cannot read it'])
while True:
    places.insert(0, above)
    if above == os.path.dirname(above):
        break
    above = os.path.dirname(above)
for place in places:
    try:
        seen = os.stat(place)
    except OSError:
        continue
    sticky = stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX
    if seen.st_uid not in (0, account):
        try:
            owner = pwd.getpwuid(seen.st_uid).pw_name
        except KeyError:
            owner = str(seen.st_uid)
        found.append([place, 'it belongs to ' + owner])
    if seen.st_mode & 0o002 and not sticky:
        found.append([place, 'everybody may write it'])
    elif seen.st_mode & 0o020 and seen.st_gid != 0 and not sticky:
        found.append([place, 'its group may write it'])
return json.dumps(found)
"""
_PYTHON_WHY = "Whoever can write where the server takes its Python code from runs code as the server, and as its superuser."
_VERSION_WHY = "Package and extension must be of one version: every call of another one fails."
_SESSION_WHY = "Without the second session no question is answered and no release is declared."


def outside(administrator: Eyes, dsn: str) -> list[Finding]:
    """Return what is wrong with what lies outside the database: versions, the package folder, the second session."""
    return [*_versions(administrator), *_folder(administrator), *_session(administrator, dsn)]


def _versions(administrator: Eyes) -> Iterator[Finding]:
    with administrator.open() as connection:
        try:
            connection.execute("SELECT count(*) FROM dbext_private.budget_figures()")
        except psycopg.Error as error:
            is_ours = (error.sqlstate or "").startswith("DP05")
            said = error.diag.message_primary if is_ours else f"a call fails with SQLSTATE {error.sqlstate}"
            yield Finding("error", "package", None, f"dbext {__version__}", said or "", _VERSION_WHY, "Run: dbext install", safe=False)


def _folder(administrator: Eyes) -> Iterator[Finding]:
    with administrator.open() as connection:
        (path, _) = connection.execute(_RUNTIME).fetchone()
        connection.execute(f"CREATE FUNCTION pg_temp.walk() RETURNS text LANGUAGE plpython3u AS $walk${_WALK % repr(path)}$walk$")
        (found,) = connection.execute("SELECT pg_temp.walk()").fetchone()
    for place, what in json.loads(found):
        fix = f"Run as root: chown root {place}; chmod go-w {place}"
        yield Finding("error", "python_path", None, place, what, _PYTHON_WHY, fix, safe=False)


def _session(administrator: Eyes, dsn: str) -> Iterator[Finding]:
    with administrator.open() as connection:
        (_, second_session) = connection.execute(_RUNTIME).fetchone()
    try:
        check_second_session(dsn, second_session)
    except DbextError as error:
        said = f"{error.message}{f' ({error.detail})' if error.detail else ''}"
        yield Finding("error", "second_session", None, without_password(second_session), said, _SESSION_WHY, error.hint, safe=False)
