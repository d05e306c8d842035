"""A warehouse for tests, and concurrent writers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from dbt.adapters.silt.lazy import lazy_module
from tests.cloud.servers import ObjectServer
from tests.unit.engine.place import Place

if TYPE_CHECKING:
    from tests.unit.engine import at_endpoint
else:  # it needs the packages of the endpoint
    at_endpoint = lazy_module("tests.unit.engine.at_endpoint")


class House:
    """A warehouse with short methods for tests."""

    def __init__(self, warehouse: Warehouse, root: Path, cloud: ObjectServer | None = None) -> None:
        self.warehouse = warehouse
        self.root = root
        self.place = Place(root, cloud)

    def sql(self, text: str, txn: tuple[str, int] | None = None) -> DataFrame:
        return self.warehouse.sql(text, txn)

    def rows(self, text: str) -> list[tuple[object, ...]]:
        """Returns the rows of a query, in a fixed order."""
        return sorted((tuple(row) for row in self.fetched(text)), key=repr)

    def fetched(self, text: str) -> list[Row]:
        """Returns the result of a statement."""
        return self.sql(text).collect()

    def another(self) -> House:
        """Opens the same warehouse in another session, with only the files in common."""
        return opened(self.warehouse.spark, self.place, self.warehouse.settings)

    def in_one_cut(self) -> House:
        """Opens the same warehouse in another session whose queries and writes depend on each other."""
        session = self.warehouse.spark.newSession()
        return House(self.warehouse.for_session(session, one_cut=True), self.root, self.place.cloud)

    def log(self, table: str) -> DeltaLog:
        return self.warehouse.catalog.table(RelationName("silt", "main", table))

    def location(self, table: str) -> str:
        """Returns the location of a table: in an object store it is not derived from the table's name."""
        return self.log(table).store.root

    def delta_rs(self, table: str) -> DeltaTable:
        """Opens the table with another engine."""
        return self.place.delta_rs(self.location(table))


def opened(spark: SparkSession, place: Place, settings: WarehouseSettings | None = None) -> House:
    """Returns a house in a new session."""
    house = House(place.warehouse(spark.newSession(), settings=settings), place.folder, place.cloud)
    return house if place.behind is None or settings is not None else at_endpoint.HouseAtEndpoint(house, place)


def close_endpoints() -> None:
    """Ends the endpoints of `--endpoint`."""
    at_endpoint.close()


def side_by_side(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs tasks concurrently, started together, and raises the first error."""
    ready = threading.Barrier(len(tasks))
    errors: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            ready.wait()
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def other_rows(house: House, table: str, *columns: str) -> list[tuple[object, ...]]:
    """Returns a table's rows as delta-rs reads them, in the order of `House.rows`."""
    found = house.delta_rs(table).to_pyarrow_table()
    chosen = found.select(list(columns)) if columns else found
    return sorted((tuple(row.values()) for row in chosen.to_pylist()), key=repr)
