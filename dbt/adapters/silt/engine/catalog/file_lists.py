"""Identifies the content of files that belong to no table, without reading them: by their paths, sizes and times."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, StorageError
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store

_PATTERN: Final = re.compile(r"[*?\[{]")
_TOKENS: Final = re.compile(r"\*+|\?|\{[^{}]*\}|\[[^\]]+\]|.", re.DOTALL)


def fingerprint(path: str, open_store: Callable[[str], Store]) -> str | None:
    """Returns a hash of the list of files that a path names: their paths, sizes, and entity tags or times.

    Args:
        path: a file, a folder or a pattern (`/data/*.csv`), or a URL.
        open_store: opens a folder.

    Returns:
        The hash, or None if the storage is unknown here or does not answer.
    """
    try:
        found = sorted(map(_content, _files(path, open_store)))
    except (StorageError, InvalidNameError, OSError):
        return None
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _files(path: str, open_store: Callable[[str], Store]) -> list[FileStatus]:
    pattern = _PATTERN.search(path)
    if pattern is not None:
        folder = path[: pattern.start()].rpartition("/")[0]
        named = re.compile(f"{_expression(path[len(folder) :].strip('/'))}(/.*)?", re.DOTALL)
        return [each for each in open_store(folder or "/").files_below("") if named.fullmatch(each.path)]
    folder, _, name = path.rstrip("/").rpartition("/")
    file = open_store(folder or "/").status(name)
    return open_store(path).files_below("") if file is None else [file]


def _expression(pattern: str) -> str:
    """Returns a regular expression for a pattern of Hadoop; it may match more, never less."""
    return "".join(map(_part, _TOKENS.findall(pattern)))


def _part(token: str) -> str:
    if token.startswith("*"):
        return ".*"
    if token == "?":
        return "."
    if len(token) > 1:
        return ".*" if token.startswith("{") else "."
    return re.escape(token)


def _content(file: FileStatus) -> tuple[str, int, str | int]:
    return file.path, file.size, file.etag or file.modified_ms
