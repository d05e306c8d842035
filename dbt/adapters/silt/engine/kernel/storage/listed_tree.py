"""The folders of a store that lists all of its files at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing


class ListedTree:
    """The folders of listed files.

    Args:
        files: all files of the store; empty files are left out, because Hadoop marks folders with them.
    """

    def __init__(self, files: Iterable[FileStatus]) -> None:
        self._files: dict[str, list[FileStatus]] = {"": []}
        self._folders: dict[str, set[str]] = defaultdict(set)
        for file in files:
            if file.size:
                self._add(file)

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        """See `Tree.content`."""
        if folder not in self._files and folder not in self._folders:
            raise ObjectMissing(folder)
        files = sorted(self._files.get(folder, ()), key=lambda file: file.name)
        return files, sorted(self._folders.get(folder, ()))

    def _add(self, file: FileStatus) -> None:
        folder = file.path.rpartition("/")[0]
        self._files.setdefault(folder, []).append(file)
        while folder:
            above, _, name = folder.rpartition("/")
            self._folders[above].add(name)
            folder = above
