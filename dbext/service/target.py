"""Decide where a release is read: in this database, or in another one that holds nothing but releases."""

from __future__ import annotations

import re

from dbext.database import releases, rights, targets
from dbext.database.session import Session
from dbext.errors import BadArgument, UnknownObject

MAX_NAME_BYTES = 48
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


def publish_to(session: Session, *, target: str | None, release: str | None = None) -> str:
    """Send one release, or every present and future one, to the target of a name; None: let it be read here again."""
    rights.require_admin(session)
    if target is not None and not (_NAME.fullmatch(target) and len(target.encode()) <= MAX_NAME_BYTES):
        raise BadArgument(f"a target's name is an identifier of at most {MAX_NAME_BYTES} bytes, such as warehouse")
    moved = targets.living(session) if release is None else [(releases.by_name(session, release).release_id, release)]
    _require_one_target(session, target, None if release is None else moved[0][0])
    for release_id, name in moved:
        if releases.lock(session, release_id).state == "dropped":
            raise UnknownObject(f"there is no release {name}")
        targets.send(session, release_id, target)
    if release is None:
        targets.set_default(session, target)
    return _said(target, release)


def _require_one_target(session: Session, target: str | None, release_id: int | None) -> None:
    """Refuse a second target: the worker of a database delivers to one."""
    others = [] if target is None else targets.others(session, target, release_id)
    if others and release_id is not None:
        raise BadArgument(
            f'releases of this database go to target "{others[0]}", and a worker delivers to one target',
            hint=f"Name that one, or send all releases to another: SELECT dp_publish_to('{target}');",
        )


def _said(target: str | None, release: str | None) -> str:
    subject = "every release, also those declared from now on," if release is None else f"release {release}"
    if target is None:
        return f"{subject} is read in this database; what a release target holds of it stays there and does not grow"
    return (
        f'{subject} is read at target "{target}" and no longer here; a worker delivers it: dbext worker --release-dsn "host=... dbname=..."'
    )
