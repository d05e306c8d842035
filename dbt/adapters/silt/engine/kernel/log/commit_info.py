"""Reads the `commitInfo` of a commit without its other actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dbt.adapters.silt.engine.kernel.log.commit_file import corrupt_commit
from dbt.adapters.silt.engine.kernel.log.log_segment import missing_version
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, parse

_PIECE: Final = 64 << 10
_DOUBLED: Final = 6
"""The maximum number of times that the size of a piece is doubled."""
LONGEST: Final = 16 << 20
"""The maximum length of a line with a `commitInfo`, in bytes; it may contain a long condition and many names."""


def read_info(store: Store, version: int, file: FileStatus, table: str) -> CommitInfo:
    """Reads the `commitInfo` of a commit, or returns an empty `CommitInfo` if the commit lacks it.

    Raises:
        MissingLogVersionError: if the commit disappeared after the listing.
        CorruptLogError: if the `commitInfo` cannot be read or its line is longer than `LONGEST`.
        StorageError: if the storage failed.
    """
    try:
        infos = _infos([_first_line(store, file)])
        if not infos:
            infos = _infos(line for line in store.read(file.path).split(b"\n") if b'"commitInfo"' in line)
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise corrupt_commit(version, f"it cannot be read ({error})", table) from error
    return infos[0] if infos else CommitInfo()


def _infos(lines: Iterable[bytes]) -> list[CommitInfo]:
    found = []
    for line in lines:
        if len(line) > LONGEST:
            raise ValueError(f"its commitInfo has more than {LONGEST} bytes")
        found += [action for action in parse(line) if isinstance(action, CommitInfo)]
    return found


def _first_line(store: Store, file: FileStatus) -> bytes:
    """Reads the first line; of a line over `LONGEST`, returns its start if it is a `commitInfo`, or else nothing."""
    if file.size <= _PIECE:
        return store.read(file.path).partition(b"\n")[0]
    pieces: list[bytes] = []
    with store.open_input(file.path) as source:
        while not (pieces and b"\n" in pieces[-1]) and (piece := source.read(_PIECE << min(len(pieces), _DOUBLED))):
            pieces.append(piece)
            if sum(map(len, pieces)) > LONGEST:
                break
    line = b"".join(pieces).partition(b"\n")[0]
    return line if len(line) <= LONGEST or b'"commitInfo"' in line[:_PIECE] else b""
