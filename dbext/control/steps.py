"""Printing what a set-up does, one line a step, on standard error. Standard library only."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dbext.errors import DbextError

#: Set to keep remarks about what is there already to ourselves.
quiet = False


def step(text: str) -> None:
    """Print one step that does something."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def remark(text: str) -> None:
    """Print what was found, unless we are to be quiet."""
    if not quiet:
        step(text)


def shell_form(command: Sequence[str | Path]) -> str:
    """Return a command as one would type it."""
    return shlex.join(str(part) for part in command)


def run(command: Sequence[str | Path], *, failing: str, hint: str | None = None, stdin: str | None = None) -> None:
    """Print a command and run it, its output on standard error; raise `failing` (with the command as hint) if it fails."""
    step(shell_form(command))
    try:
        subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr, **_input(stdin))
    except (OSError, subprocess.CalledProcessError) as error:
        raise DbextError(failing, detail=str(error), hint=hint or f"Run it yourself to see why: {shell_form(command)}") from error


def _input(text: str | None) -> dict[str, object]:
    return {"stdin": subprocess.DEVNULL} if text is None else {"input": text, "text": True}


def print_error(error: DbextError) -> None:
    """Print an error as message, detail and hint."""
    print(f"error: {error.message}", file=sys.stderr)
    for name, text in (("detail", error.detail), ("hint", error.hint)):
        if text:
            print(f"{name}: {text}", file=sys.stderr)
