"""Describes a kept Spark in a file, so that commands can find it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.silt.kept_spark import private_files


@dataclass(frozen=True)
class Record:
    """Describes how to reach a kept Spark.

    Attributes:
        port: the port on 127.0.0.1 on which the Spark listens.
        token: the secret that a client must present; it is in no log and no message.
        keeper: the id of the process that watches over the Spark.
        java: the id of the Java process.
        started: the time of the start, in seconds since 1970; for people only.
        spark: the version of Spark.
        package: the version of this package.
        application: the id of the Spark application.
        master: the Spark master.
        folder: the working directory: the project's folder.
        machine: the running system, as `inherited_environment.machine` names it.
    """

    port: int
    token: str = field(repr=False)
    keeper: int
    java: int
    started: float
    spark: str
    package: str
    application: str
    master: str
    folder: str
    machine: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def write(self, path: Path) -> None:
        private_files.write(path, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Reads a record, or returns None if the file is missing or another version of this package wrote it.

        Raises:
            KeptSparkError: if another user can read or write the file.
        """
        values = read_json(path)
        if values is None or set(values) != {each.name for each in fields(cls)}:
            return None
        return cls(**values)


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads the JSON object in a file of this user, or returns None if the file is missing or holds no object.

    Raises:
        KeptSparkError: if another user can read or write the file.
    """
    try:
        values = json.loads(private_files.read(path) or b"null")
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
