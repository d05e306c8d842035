"""Python models: run in this process, on the connection's own session; the frame that they return becomes a view."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame

from dbt.adapters.silt.handle import SiltHandle

VIEW_VARIABLE = "__silt_view__"
"""The name under which the code that `macros/` writes says which temporary view its frame goes to."""


def run_python_model(handle: SiltHandle, model: Mapping[str, Any], code: str) -> str:
    """Run a python model's compiled code and register its result.

    The user's `model(dbt, session)` is called with a `dbt` whose `ref` and `source` give Spark DataFrames over pinned
    snapshots. It may return a Spark, pandas, pandas-on-Spark or polars frame, or an Arrow table.

    Args:
        handle: the connection.
        model: the node, for messages.
        code: the code, with dbt's own part behind the user's, and VIEW_VARIABLE set at its end.

    Returns:
        The name of the temporary view that holds the result.

    Raises:
        DbtRuntimeError: the code fails, or returns something else than rows.
    """
    namespace: dict[str, Any] = {"__name__": f"silt_python_model_{re.sub(r'[^0-9a-zA-Z]', '_', str(model['name']))}"}
    name = model.get("unique_id", model["name"])
    try:
        exec(compile(code, str(model.get("original_file_path", name)), "exec"), namespace)
        dbt = namespace["dbtObj"](lambda relation: handle.warehouse.table(relation))
        rows = namespace["model"](dbt, handle.session)
    except Exception as error:
        raise DbtRuntimeError(f"python model {name} failed: {type(error).__name__}: {error}") from error
    view = str(namespace[VIEW_VARIABLE])
    to_frame(handle, rows, name).createOrReplaceTempView(view)
    return view.strip("`")


def to_frame(handle: SiltHandle, rows: Any, name: str) -> DataFrame:
    """The rows that a python model returned, as a Spark DataFrame."""
    if isinstance(rows, DataFrame):  # an embedded session's, or Spark Connect's, which has every name as a column
        return rows
    if hasattr(rows, "to_spark"):  # pandas on Spark
        return rows.to_spark()
    if isinstance(rows, pa.Table):
        return handle.session.createDataFrame(rows)
    if _is_of("polars", rows):
        return handle.session.createDataFrame(rows.to_arrow())
    if _is_of("pandas", rows):
        return handle.session.createDataFrame(rows)
    raise DbtRuntimeError(
        f"python model {name} returned {type(rows).__name__}: it must return a Spark, pandas or polars DataFrame, "
        "or a pyarrow Table"
    )


def _is_of(package: str, value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == package and importlib.util.find_spec(package) is not None
