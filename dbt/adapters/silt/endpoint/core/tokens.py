"""The token that every client of the endpoint must know, and how a client's attempt is compared with it."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, KeptSparkError
from dbt.adapters.silt.kept_spark import private_files

VARIABLE: Final = "SILT_ENDPOINT_TOKEN"
"""The environment variable that may contain the token."""

_SHORTEST = 16
_BYTES = 32


@dataclass(frozen=True)
class Token:
    """A secret that clients send as their password.

    Attributes:
        place: where the user finds it: a file that only this user can read, or the variable.
    """

    value: str = field(repr=False)
    place: str

    def matches(self, given: str | None) -> bool:
        """Returns whether a client knows the token; the time that it takes does not tell how much of it is right."""
        return hmac.compare_digest(self.value.encode(), (given or "").encode())

    @classmethod
    def find(cls, file: str | None = None) -> Token:
        """Returns the token of a file, of the environment, or of this user, which is created if it is missing.

        Raises:
            InvalidSettingError: if it is too short, or another user can read its file.
        """
        if file is None and (given := os.environ.get(VARIABLE)):
            return cls._checked(given, f"the environment variable {VARIABLE}")
        try:
            path = _own_file() if file is None else Path(file).absolute()
            found = private_files.read(path)
            if found is None and file is None:
                found = secrets.token_urlsafe(_BYTES).encode()
                private_files.write(path, found + b"\n")
        except KeptSparkError as error:
            raise InvalidSettingError(
                f"the file of the endpoint's token cannot be used: {error.problem}",
                remedy="Make it a file that only you can read (chmod 600), or set XDG_CACHE_HOME to a folder of yours",
            ) from error
        if found is None:
            raise InvalidSettingError(
                f"the file {path} does not exist", remedy="Write the token into it, with chmod 600"
            )
        return cls._checked(found.decode(errors="replace").strip(), str(path))

    @classmethod
    def _checked(cls, value: str, place: str) -> Token:
        if len(value) < _SHORTEST:
            raise InvalidSettingError(
                f"the token in {place} has {len(value)} characters, and needs {_SHORTEST}",
                remedy="Create one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        return cls(value, place)


def _own_file() -> Path:
    return private_files.private_folder(private_files.base_folder().parent / "endpoint") / "token"
