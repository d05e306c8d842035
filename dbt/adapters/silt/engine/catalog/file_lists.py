"""Identifies the content of files that belong to no table, without reading them: by their paths, sizes and times.

A user names these files, and Spark follows symbolic links below the name. So links are followed here, too, unlike in
the folders of tables.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, StorageError
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store, joined

_PATTERN: Final = re.compile(r"[*?\[{]")
_TOKENS: Final = re.compile(r"\\.|\*+|\{[^{}]*\}|\{.*\}|\[[^\]]+\]|.", re.DOTALL)
_SLASH: Final = "/"
_DEEPEST: Final = 100
_MOST_LINKED: Final = 10_000
"""How many folders behind links are listed at most: links may lead to a folder in very many ways."""


def fingerprint(path: str, open_store: Callable[[str], Store]) -> str | None:
    """Returns a hash of the list of files that a path names: their paths, sizes, and entity tags or times.

    Files behind symbolic links are also known by their real paths.

    Args:
        path: a file, a folder or a pattern (`/data/*.csv`), or a URL.
        open_store: opens a folder.

    Returns:
        The hash, or None if the storage is unknown here or does not answer, or if the files cannot be known: links that
        lead back to their own folder, or a pipe or another file whose content has no size.
    """
    try:
        found = sorted(_contents(path, open_store))
    except (_UnknownFiles, StorageError, InvalidNameError, OSError):
        return None
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


class _UnknownFiles(Exception):
    """The content of the files cannot be identified."""


_Content: TypeAlias = tuple[str, int, str | int, str]
"""A file: its path below the folder, its size, its entity tag or time, and its real path if a link leads to it."""


def _contents(path: str, open_store: Callable[[str], Store]) -> Iterator[_Content]:
    pattern = _PATTERN.search(path)
    folder = path[: pattern.start()].rpartition("/")[0] if pattern else path.rstrip("/")
    named = _Named.by(path[len(folder) :].strip("/"))
    store = open_store(folder or "/")
    root = store.local_path("") if store.is_local else None
    if root is not None:
        return _Followed(root, named).files()
    above, _, name = folder.rpartition("/")
    file = None if pattern else open_store(above or "/").status(name)
    found = store.files_below("") if file is None else [file]
    return (_content(each) for each in found if file is not None or named.files.fullmatch(each.path))


@dataclass(frozen=True)
class _Named:
    """The files and folders below a folder that a pattern of Hadoop names; they may match more, never less.

    Attributes:
        files: the paths of the files.
        folders: the paths of folders that may hold such files.
    """

    files: re.Pattern[str]
    folders: re.Pattern[str]

    @classmethod
    def by(cls, pattern: str) -> _Named:
        parts = [each for each in "".join(map(_part, _TOKENS.findall(pattern))).split(_SLASH) if each]
        below = "(/.*)?" if parts else ".*"
        folders = "".join(f"({_SLASH if at else ''}{part}" for at, part in enumerate(parts)) + below + ")?" * len(parts)
        return cls(*(re.compile(each, re.DOTALL) for each in (_SLASH.join(parts) + below, folders)))


def _part(token: str) -> str:
    if token.startswith("*"):
        return r"[^\x2f]*"
    if token.startswith("\\"):
        return re.escape(token[-1])
    if token == "?" or (len(token) > 1 and token.startswith("[")):
        return r"[^\x2f]"
    return ".*" if len(token) > 1 else re.escape(token)


def _content(file: FileStatus) -> _Content:
    return file.path, file.size, file.etag or file.modified_ms, ""


@dataclass
class _Followed:
    """The files of a local file or folder, and of the folders below it, with links followed as Spark follows them."""

    root: str
    named: _Named
    linked: int = 0

    def files(self) -> Iterator[_Content]:
        """Yields the files.

        Raises:
            OSError: if a folder cannot be listed.
            _UnknownFiles: as in `fingerprint`.
        """
        real = os.path.realpath(self.root)
        if real != os.path.abspath(self.root):
            yield "", -1, "", real
        yield from self._below("", real, (), is_linked=False)

    def _below(self, path: str, real: str, above: tuple[str, ...], is_linked: bool) -> Iterator[_Content]:
        """Yields the files at a path; `above` are the real paths of the folders through which it was reached."""
        try:
            found = os.stat(real)
        except FileNotFoundError:
            return  # Spark leaves out a link that leads nowhere, too.
        is_folder = stat.S_ISDIR(found.st_mode)
        if not (self.named.folders if is_folder else self.named.files).fullmatch(path):
            return
        if not is_folder and not stat.S_ISREG(found.st_mode):
            raise _UnknownFiles
        if not is_folder:
            yield path, found.st_size, found.st_mtime_ns, real if is_linked else ""
            return
        self._note_folder(path, real, above, is_linked)
        for name in sorted(os.listdir(real)):
            plain = joined(real, name)
            inner = os.path.realpath(plain)
            yield from self._below(joined(path, name), inner, (*above, real), is_linked or inner != plain)

    def _note_folder(self, path: str, real: str, above: tuple[str, ...], is_linked: bool) -> None:
        """Raises _UnknownFiles if the folders below the path have no end, or too many links lead to them."""
        self.linked += is_linked
        is_endless = real in above and self.named.files.fullmatch(path) is not None
        if is_endless or len(above) > _DEEPEST or self.linked > _MOST_LINKED:
            raise _UnknownFiles
