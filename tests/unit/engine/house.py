"""A warehouse as tests use it, and writers that run side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.cloud.servers import ObjectServer


class House:
    """A warehouse and what tests ask of it."""

    def __init__(self, warehouse: Warehouse, root: Path, cloud: ObjectServer | None = None) -> None:
        self.warehouse = warehouse
        self.root = root
        self.cloud = cloud

    def sql(self, text: str, txn: tuple[str, int] | None = None) -> DataFrame:
        return self.warehouse.sql(text, txn)

    def rows(self, text: str) -> list[tuple[object, ...]]:
        """The rows of a query, in an order of their own."""
        return sorted((tuple(row) for row in self.sql(text).collect()), key=repr)

    def another(self) -> House:
        """The same warehouse as another session sees it, with nothing shared but the files."""
        return opened(self.warehouse.spark, self.root, self.warehouse.settings, self.cloud)


def opened(
    spark: SparkSession, root: Path, settings: WarehouseSettings | None = None, cloud: ObjectServer | None = None
) -> House:
    """A house in a session of its own.

    Args:
        root: its folder; one in the bucket of a server that keeps its objects as files is that prefix of the bucket.
    """
    if cloud is None:
        return House(Warehouse(spark.newSession(), str(root), settings=settings), root)
    warehouse = Warehouse(spark.newSession(), cloud.url_of(root), settings=settings, storage=cloud.settings)
    return House(warehouse, root, cloud)


def side_by_side(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs tasks at once, begun together, and raises the first error."""
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
    """A table's rows as delta-rs reads them, in the order of `House.rows`."""
    found = DeltaTable(str(house.root / "main" / table)).to_pyarrow_table()
    chosen = found.select(list(columns)) if columns else found
    return sorted((tuple(row.values()) for row in chosen.to_pylist()), key=repr)
