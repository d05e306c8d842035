"""Provides a python model with inputs of a consistent cut, and with a session that finds tables by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, RelationNotFoundError, SchemaNotFoundError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.tokens import identifiers
from dbt.adapters.silt.session.handle import SiltHandle


class ModelSession:
    """The connection's Spark session, extended by the tables of the warehouse.

    `sql`, `table`, `read.table` and `catalog.tableExists` find these tables. A change by `sql` is committed at once, as
    a unit of work that a rerun does not repeat. All other attributes are the session's, and find Spark's tables only.
    """

    def __init__(self, handle: SiltHandle) -> None:
        self._handle = handle

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the Spark session, for checks by `isinstance`."""
        return type(self._handle.session)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle.session, name)

    @property
    def read(self) -> Any:
        return _With(self._handle.session.read, table=self.table)

    @property
    def catalog(self) -> Any:
        return _With(self._handle.session.catalog, tableExists=self._exists)

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Returns the rows of a query; an empty DataFrame for a statement that makes changes.

        Raises:
            DbtRuntimeError: if DataFrames are passed for placeholders.
            SiltError: see the warehouse.
        """
        if kwargs:
            raise DbtRuntimeError(
                f"`session.sql` takes no DataFrames as arguments ({', '.join(kwargs)}): make them views by "
                "`createOrReplaceTempView`, and name the views in the SQL"
            )
        if args:
            return self._handle.warehouse.query(str(sqlQuery), args)
        result, _ = self._handle.runner.run(self._handle.warehouse, str(sqlQuery))
        if result.dataframe is not None:
            return result.dataframe
        return self._handle.session.createDataFrame([], StructType([]))

    def table(self, tableName: Any) -> DataFrame:
        """Returns the rows of a table or view, by its SQL name."""
        return self.sql(f"select * from {tableName}")

    def stop(self) -> None:
        """Refuses, as the other models use the same Spark.

        Raises:
            DbtRuntimeError: always.
        """
        raise DbtRuntimeError("All models share this Spark session, and dbt stops it at the end: do not stop it")

    def _exists(self, tableName: Any, dbName: str | None = None) -> bool:
        try:
            self.table(tableName if dbName is None else f"{quote(dbName)}.{tableName}").columns  # noqa: B018
        except (RelationNotFoundError, SchemaNotFoundError):
            return False
        except InvalidStatementError:
            return self._handle.session.catalog.tableExists(str(tableName), dbName)
        return True


class _With:
    """An object with some methods replaced; passes all other attributes to the wrapped object."""

    def __init__(self, below: Any, **methods: Callable[..., Any]) -> None:
        self._below = below
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)


class Inputs:
    """The tables and views that `dbt.ref` and `dbt.source` return, all as of the time when the first is read.

    Args:
        handle: the connection.
        names: the SQL names of all inputs.
        batch: the rows of a microbatch, which replace the rows of some inputs.
    """

    def __init__(self, handle: SiltHandle, names: Iterable[str], batch: Mapping[str, str]) -> None:
        self._handle = handle
        self._names = list(dict.fromkeys(names))
        self._batch = batch
        self._frames: dict[str, DataFrame] | None = None
        self._given: set[str] = set()

    def frame(self, name: str) -> DataFrame:
        """Returns the rows of an input; each time with new columns, so that it can be joined with itself.

        Raises:
            SiltError: if it does not exist, or cannot be read.
        """
        if self._frames is None:
            # The code may never reach the reference to a missing input, so only its use is an error.
            there = [each for each in self._names if self._is_there(each)]
            frames = self._handle.warehouse.tables([self._batch.get(each, each) for each in there])
            self._frames = dict(zip(there, frames, strict=True))
        frame = self._frames.get(name)
        if frame is None:
            return self._handle.warehouse.table(name)
        if name in self._given:
            return frame.toDF(*frame.columns)
        self._given.add(name)
        return frame

    def _is_there(self, name: str) -> bool:
        parts = identifiers(name)
        catalog = self._handle.warehouse.catalog
        if len(parts) != 3 or parts[0].lower() not in catalog.databases():
            return True  # a table of Spark, or a file
        return catalog.find(RelationName(*parts)) is not None


def by_written_names(function: Callable[..., Any], called: str) -> Callable[..., Any]:
    """Returns `dbt.ref` or `dbt.source`, with an error that explains how to write its names."""

    def call(*names: str, **version: Any) -> Any:
        try:
            return function(*names, **version)
        except KeyError as error:
            raise DbtRuntimeError(
                f"{called} does not know {error}: dbt finds the inputs of a model in its source code, "
                f"so write `{called}(...)` there with literal names"
            ) from error

    return call
