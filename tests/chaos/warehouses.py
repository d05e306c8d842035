"""The warehouse of a workplace: in a folder, or in an object store behind a proxy that kills processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from tests.chaos.request_steps import RequestSteps
from tests.chaos.steps import ANNOUNCED, REQUESTED, Step
from tests.cloud.proxy import Proxy
from tests.cloud.servers import ObjectServer

_DATABASE = "silt"


@dataclass(frozen=True)
class Kept:
    """A table: its log, and the options with which another engine opens it.

    Attributes:
        name: of the table, with its schema.
        options: of delta-rs.
    """

    name: str
    log: DeltaLog
    url: str
    options: Mapping[str, str] = field(default_factory=dict)


class Warehouse(Protocol):
    """The warehouse that a workplace's project builds."""

    @property
    def url(self) -> str: ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a build."""

    @property
    def requests(self) -> RequestSteps | None:
        """The listener for steps that the process does not announce."""

    def storage(self) -> dict[str, Any]:
        """The profile's `storage`."""

    def catalog(self) -> Catalog:
        """Opens its relations."""

    def tables(self) -> Iterator[Kept]:
        """Returns the tables, sorted by name."""

    def remove(self) -> None:
        """Deletes the warehouse."""


@dataclass(frozen=True)
class Folder:
    """A warehouse in a folder of this machine."""

    root: Path
    steps: tuple[Step, ...] = ANNOUNCED
    requests: None = None

    @property
    def url(self) -> str:
        return str(self.root)

    def storage(self) -> dict[str, Any]:
        return {}

    def catalog(self) -> Catalog:
        return open_databases({_DATABASE: self.url}, Storages()).catalog

    def tables(self) -> Iterator[Kept]:
        for each in sorted(self.root.glob("*/*/_delta_log")):
            name = f"{each.parent.parent.name}.{each.parent.name}"
            yield Kept(name, DeltaLog(LocalStore(each.parent), name), str(each.parent))

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class Prefix:
    """A warehouse in an object store, which dbt accesses through the proxy and the checks directly."""

    server: ObjectServer
    name: str
    requests: RequestSteps = field(default_factory=RequestSteps)
    steps: tuple[Step, ...] = REQUESTED

    @property
    def url(self) -> str:
        return f"{self.server.base}/{self.name}"

    @cached_property
    def proxy(self) -> Proxy:
        return Proxy(self.server, self.requests)

    def storage(self) -> dict[str, Any]:
        given = {name: value for name, value in asdict(self.server.settings).items() if value}
        return {**given, "endpoint": self.proxy.endpoint}

    def catalog(self) -> Catalog:
        return open_databases({_DATABASE: self.url}, Storages(self.server.settings)).catalog

    def tables(self) -> Iterator[Kept]:
        catalog = self.catalog()
        for table in catalog.all_tables():
            log = catalog.table(table)
            assert isinstance(log.store, ObjectStore)
            yield Kept(f"{table.schema}.{table.identifier}", log, log.store.root, self.server.delta_rs)

    def remove(self) -> None:
        self.proxy.close()
        open_store(self.url, self.server.settings).delete_folder("")
