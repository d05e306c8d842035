"""Reads the `commitInfo` of a commit without its other actions.

It is the first line of every commit of this engine, so that only that line is read.
"""

from __future__ import annotations

from typing import Final

from dbt.adapters.silt.engine.kernel.log.commit_file import corrupt_commit
from dbt.adapters.silt.engine.kernel.log.log_segment import missing_version
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, parse

_PIECE: Final = 64 << 10
_DOUBLED: Final = 6
"""How often the size of a piece is doubled."""


def read_info(store: Store, version: int, file: FileStatus, table: str) -> CommitInfo:
    """The `commitInfo` of a commit; empty where it has none.

    Raises:
        MissingLogVersionError: the commit disappeared since it was listed.
        CorruptLogError: it cannot be read.
        StorageError: the storage failed.
    """
    try:
        first = _first_line(store, file)
        infos = [action for action in parse(first) if isinstance(action, CommitInfo)]
        if not infos:  # other engines write it at any line, or not at all
            lines = [line for line in store.read(file.path).split(b"\n") if b'"commitInfo"' in line]
            infos = [action for action in parse(b"\n".join(lines)) if isinstance(action, CommitInfo)]
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise corrupt_commit(version, f"it cannot be read ({error})", table) from error
    return infos[0] if infos else CommitInfo()


def _first_line(store: Store, file: FileStatus) -> bytes:
    if file.size <= _PIECE:
        return store.read(file.path).partition(b"\n")[0]
    pieces: list[bytes] = []
    with store.open_input(file.path) as source:
        while not (pieces and b"\n" in pieces[-1]) and (piece := source.read(_PIECE << min(len(pieces), _DOUBLED))):
            pieces.append(piece)
            if sum(map(len, pieces)) > DOCUMENT_BYTES:
                raise ValueError(f"its first line has more than {DOCUMENT_BYTES} bytes")
    return b"".join(pieces).partition(b"\n")[0]
