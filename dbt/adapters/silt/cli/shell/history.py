"""Keeps the typed statements in a file of the user's own that other users cannot read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel import owned_folders
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import tokenize

_MOST: Final = 1_000
"""The number of statements that are kept; at twice that number, the file is shortened."""


def history_file() -> Path:
    """Returns the path of the file, in the user's folder for program state."""
    folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(folder).expanduser() / "silt" / "sql_history"


def load(file: Path) -> list[str]:
    """Returns the last statements, the oldest first; empty if the file cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > 2 * _MOST:
            _write(file, lines[-_MOST:], os.O_TRUNC)
    except OSError:  # a shell works without a history
        return []
    return lines[-_MOST:]


def add(file: Path, statement: str) -> None:
    """Adds a statement; does nothing if the file cannot be written."""
    try:
        owned_folders.create(os.fspath(file.parent))
        _write(file, [statement], os.O_APPEND)
    except OSError:  # as in `load`
        return


def as_one_line(statement: str) -> str | None:
    """Returns the statement on a single line, or None if it would then have another meaning."""
    joined = " ".join(line.strip() for line in statement.splitlines())
    try:
        same = [token.text for token in tokenize(joined)] == [token.text for token in tokenize(statement)]
    except StatementSyntaxError:
        return None
    return joined if same else None


def _write(file: Path, lines: list[str], how: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as out:
        os.fchmod(out.fileno(), 0o600)
        out.writelines(f"{line}\n" for line in lines)
