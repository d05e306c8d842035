"""What a kept Spark writes down about itself, for the commands that look for it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.silt.kept_spark import private_files


@dataclass(frozen=True)
class Record:
    """How to reach a kept Spark, and what it is.

    Attributes:
        port: where it listens, on 127.0.0.1.
        token: what whoever connects has to show; in no log and no message.
        keeper: the id of the process that looks after it.
        java: the id of Spark's own process.
        started: when, in seconds since 1970; for people only.
        spark: the version of Spark.
        package: the version of this package.
        application: its id as a Spark application.
        master: where its tasks run.
        folder: the folder that it works in: the project's.
        machine: which running system it is on, as `surroundings.machine` names it.
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
        """The record in a file; None where there is none that this version of the package understands.

        Raises:
            KeptSparkError: the file is not this user's alone.
        """
        values = read_json(path)
        if values is None or set(values) != {each.name for each in fields(cls)}:
            return None
        return cls(**values)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file of this user's; None where there is no file, or nothing that can be read.

    Raises:
        KeptSparkError: the file is not this user's alone.
    """
    try:
        values = json.loads(private_files.read(path) or b"null")
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
