"""Tables of a warehouse, read and written by the data source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.unit.engine.house import House

VECTORS = "tblproperties ('delta.enableDeletionVectors' = 'true')"
FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


@dataclass(frozen=True)
class Tables:
    """Reads and writes tables by `format("silt")`."""

    house: House

    def options(self, **more: Any) -> dict[str, str]:
        """Returns the options of the warehouse and storage, and further options."""
        cloud = self.house.place.cloud
        storage = {} if cloud is None else {f"storage.{k}": str(v) for k, v in vars(cloud.settings).items() if v}
        further = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in more.items()}
        return {"warehouse": self.house.place.location, **storage, **further}

    def read(self, table: str, **options: Any) -> DataFrame:
        reader = self.house.warehouse.spark.read.format("silt")
        return reader.options(**self.options(**options)).load(f"main.{table}")

    def write(self, rows: DataFrame, table: str, mode: str = "append", **options: Any) -> None:
        rows.write.format("silt").mode(mode).options(**self.options(**options)).save(f"main.{table}")

    def query(self, text: str) -> DataFrame:
        """Returns rows that Spark creates without a table."""
        return self.house.warehouse.spark.sql(text)


def in_order(rows: DataFrame) -> list[Any]:
    return sorted(map(tuple, rows.collect()), key=repr)


def texts(rows: DataFrame) -> list[str]:
    """Returns the rows in a form in which NaN equals itself."""
    return list(map(repr, in_order(rows)))


def raises(code: str, words: str = "") -> Any:
    """Expects Spark's exception for an error with that code in a process of the data source."""
    return pytest.raises(PySparkException, match=rf"(?s)\[{code}\].*{re.escape(words)}")
