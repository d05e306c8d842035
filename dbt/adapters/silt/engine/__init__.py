"""The engine below dbt: transactional tables for any PySpark program.

    from dbt.adapters.silt.engine import Warehouse

and their rows as Arrow for programs without Spark:

    from dbt.adapters.silt import engine as silt

    orders = silt.read("main.orders", warehouse="/data/warehouse")

and a data source for `spark.read`, `spark.readStream`, `df.write` and `df.writeStream`:

    silt.DataSource.register(spark)
    spark.read.format("silt").load("/data/warehouse/main/orders")

Its public names are those of `__all__`; each is imported when it is first asked for, so that the kernel and the catalog
can be used without Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.arrow.read import read as read
    from dbt.adapters.silt.engine.arrow.read import read_batches as read_batches
    from dbt.adapters.silt.engine.catalog.names.locations import Location as Location
    from dbt.adapters.silt.engine.commands.target import Outcome as Outcome
    from dbt.adapters.silt.engine.datasource.source import DataSource as DataSource
    from dbt.adapters.silt.engine.kernel.errors import SiltError as SiltError
    from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings as StorageSettings
    from dbt.adapters.silt.engine.warehouse import Result as Result
    from dbt.adapters.silt.engine.warehouse import Warehouse as Warehouse
    from dbt.adapters.silt.engine.warehouse import WarehouseSettings as WarehouseSettings

__all__ = [
    "DataSource",
    "Location",
    "Outcome",
    "Result",
    "SiltError",
    "StorageSettings",
    "Warehouse",
    "WarehouseSettings",
    "read",
    "read_batches",
]

_HOMES = {
    "DataSource": "datasource.source",
    "Location": "catalog.names.locations",
    "Outcome": "commands.target",
    "Result": "warehouse",
    "SiltError": "kernel.errors",
    "StorageSettings": "kernel.storage.settings",
    "Warehouse": "warehouse",
    "WarehouseSettings": "warehouse",
    "read": "arrow.read",
    "read_batches": "arrow.read",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
