"""The location of a test warehouse: a folder of this machine, or with `--cloud` a prefix of the server's bucket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud.servers import ObjectServer


@dataclass(frozen=True)
class Place:
    """A location for tables.

    Attributes:
        folder: of this machine; with `--cloud` the prefix has the same name.
        cloud: the server of `--cloud`.
        behind: with `--endpoint`, the address of the Spark Connect server behind it.
    """

    folder: Path
    cloud: ObjectServer | None = None
    behind: str | None = None

    @property
    def location(self) -> str:
        """Returns the location as a program and a profile name it."""
        return str(self.folder) if self.cloud is None else self.cloud.url_of(self.folder)

    def beside(self, name: str) -> Place:
        """Returns another location next to this one."""
        return Place(self.folder.parent / name, self.cloud, self.behind)

    def warehouse(self, session: SparkSession, **options: Any) -> Warehouse:
        """Opens a warehouse at this location, in that session."""
        storage: dict[str, Any] = {} if self.cloud is None else {"storage": self.cloud.settings}
        return Warehouse(session, self.location, **storage, **options)

    def store(self, name: str) -> Store:
        """Returns the store of a table of that name; with `--cloud` at an unused prefix."""
        if self.cloud is None:
            return LocalStore(self.folder / name)
        return self.cloud.store(self.cloud.prefix_of(self.folder / name)).never_reused()

    @property
    def options(self) -> dict[str, str] | None:
        """Returns the storage options of delta-rs and Polars."""
        return None if self.cloud is None else dict(self.cloud.delta_rs)

    def delta_rs(self, location: str) -> DeltaTable:
        """Opens a table with delta-rs."""
        return DeltaTable(location, storage_options=self.options)

    def polars(self, location: str) -> polars.LazyFrame:
        """Opens a table with Polars; with pyarrow's reader if folders of partitions are not named as the columns."""
        return polars.scan_delta(location, storage_options=self.options, use_pyarrow=self.cloud is not None)

    @contextmanager
    def copied(self, log: DeltaLog) -> Iterator[DeltaTable]:
        """Returns a copy in a folder with a plain name, for operations that delta-rs cannot do at a quoted name or
        URL.
        """
        with tempfile.TemporaryDirectory() as folder:
            for file in (each for each in log.store.files_below("") if each.size):
                target = Path(folder, file.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(log.store.read(file.path))
            yield DeltaTable(folder)


def data_files(log: DeltaLog) -> set[str]:
    """Returns all files in a table's folder except its log, as paths below it, without a bucket's folder markers."""
    found = (file for file in log.store.files_below("") if log.store.has_folders or file.size)
    return {file.path for file in found if not file.path.startswith(f"{LOG_FOLDER}/")}
