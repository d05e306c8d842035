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
from functools import lru_cache, reduce
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, StorageError
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store, joined

_PATTERN: Final = re.compile(r"[*?\[{]")
_TOKENS: Final = re.compile(r"\\.|\*+|\{[^{}]*\}|\{.*\}|\[[^\]]+\]|.", re.DOTALL)
_SLASH: Final = "/"
_ONE, _WITHIN, _ACROSS = "one character of a name", "characters of a name", "characters and slashes"
_LOOPS: Final = {_WITHIN, _ACROSS}
_LONGEST: Final = 4_096
_MOST_STATES: Final = 10_000
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
        lead back to their own folder, a pipe or another file whose content has no size, or a path of more than 4,096
        characters.
    """
    if len(path) > _LONGEST:
        return None
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
    named = _Named(path[len(folder) :].strip("/"))
    store = open_store(folder or "/")
    root = store.local_path("") if store.is_local else None
    if root is not None:
        return _Followed(root, named).files()
    above, _, name = folder.rpartition("/")
    file = None if pattern else open_store(above or "/").status(name)
    found = store.files_below("") if file is None else [file]
    return (_content(each) for each in found if file is not None or named.has_file(each.path))


class _Named:
    """The files and folders below a folder that a pattern of Hadoop names; they may match more, never less.

    A number has a bit for each token of the pattern that may come next. All bits advance together, so the time is
    proportional to the length of a path, whatever the pattern is.
    """

    def __init__(self, pattern: str) -> None:
        tokens = _simplified([_kind(each) for each in _TOKENS.findall(pattern)])
        self._end = len(tokens)
        tokens += [_SLASH, _ACROSS] if tokens else [_ACROSS]
        self._tokens: dict[str, int] = {}
        for at, token in enumerate(tokens):
            self._tokens[token] = self._tokens.get(token, 0) | 1 << at
        self._next = lru_cache(_MOST_STATES)(self._after)

    def has_file(self, path: str) -> bool:
        return bool(self._read(path) >> self._end)

    def has_folder(self, path: str) -> bool:
        """Returns whether a folder may contain such files."""
        return not path or bool(self._read(path + _SLASH))

    def _read(self, path: str) -> int:
        return reduce(self._next, path, self._with_empty(1))

    def _after(self, states: int, character: str) -> int:
        is_in_name = character != _SLASH
        one = self._of(character) | is_in_name * self._of(_ONE)
        many = self._of(_ACROSS) | is_in_name * self._of(_WITHIN)
        return self._with_empty((states & one) << 1 | states & many)

    def _with_empty(self, states: int) -> int:
        """Adds the states behind tokens that match no characters, too."""
        return states | (states & (self._of(_WITHIN) | self._of(_ACROSS))) << 1

    def _of(self, token: str) -> int:
        return self._tokens.get(token, 0)


def _kind(token: str) -> str:
    if token.startswith("\\"):
        return token[-1]
    if token.startswith("*"):
        return _WITHIN
    if token == "?" or (len(token) > 1 and token.startswith("[")):
        return _ONE
    if len(token) > 1:
        return _ACROSS if _SLASH in token else _WITHIN
    return token


def _simplified(tokens: list[str]) -> list[str]:
    """Joins tokens for any number of characters, and slashes, that follow one another; removes slashes at the ends."""
    found: list[str] = []
    for token in tokens:
        last = found[-1] if found else _SLASH
        if {token, last} <= _LOOPS:
            found[-1] = _ACROSS if _ACROSS in (token, last) else _WITHIN
        elif not token == last == _SLASH:
            found.append(token)
    return found[:-1] if found[-1:] == [_SLASH] else found


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
        if not (self.named.has_folder if is_folder else self.named.has_file)(path):
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
        is_endless = real in above and self.named.has_file(path)
        if is_endless or len(above) > _DEEPEST or self.linked > _MOST_LINKED:
            raise _UnknownFiles
