"""Converts errors of the operating system to errors of a store, by their number."""

from __future__ import annotations

import errno
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import NoSpaceError, NotWrittenError, ReadOnlyStorageError, StorageError

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)


def failure(problem: str, error: OSError, is_write: bool) -> StorageError:
    """Returns the error for an operation; a NotWrittenError if the number means that a write was refused.

    Args:
        problem: the operation that failed, without the reason.
    """
    text = f"{problem} failed: {error.strerror or error}"
    if not is_write:
        remedy = "Give the user of this process permission to read it" if error.errno in _NOT_ALLOWED else None
        return StorageError(text, remedy=remedy)
    return refusal(text, error) or StorageError(text)


def refusal(text: str, error: OSError) -> NotWrittenError | None:
    """Returns the error for a refused write, or None if the write may have taken place."""
    if error.errno in _NO_SPACE:
        return NoSpaceError(text)
    return ReadOnlyStorageError(text) if error.errno in _NOT_ALLOWED else None
