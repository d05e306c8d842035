"""A python model that returns rows from memory, compared with writing the rows as one Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dbt_work import project
from benchmarks.dbt_work.measured import Compared, in_turn

ROWS = 1_000_000
_MODEL = """
from benchmarks.dbt_work import python_models

def model(dbt, session):
    dbt.config(materialized="table")
    return python_models.given["rows"]
"""
given: dict[str, Any] = {}
"""The rows that the model returns, as `rows`."""


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times the whole command for each kind of frame."""
    rows = int(ROWS * share)
    made = project.make(folder / "python_models", {"models/returned.py": _MODEL})
    frame = _frame(rows)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)

    def run(returned: Any) -> None:
        given["rows"] = returned
        written = project.run(made, "run")["rows_inserted"]
        if written != rows:
            raise RuntimeError(f"{written} rows were written of {rows}")

    ways: dict[str, Callable[[], object]] = {
        "Parquet of pandas": lambda: pq.write_table(pa.Table.from_pandas(frame), folder / "rows.parquet"),
        "dbt run, pandas": partial(run, frame),
        "dbt run, polars": partial(run, pl.from_arrow(arrow)),
        "dbt run, Arrow": partial(run, arrow),
    }
    return [in_turn(f"python model of {rows:,} rows", ways, rounds)]


def _frame(rows: int) -> pd.DataFrame:
    numbers = np.arange(rows)
    return pd.DataFrame(
        {
            "id": numbers,
            "category": (numbers % 1000).astype("int32"),
            "customer": [f"customer {number % 100_000}" for number in range(rows)],
            "amount": ((numbers * 7919) % 1_000_003) / 100,
            "at": pd.to_datetime(1_700_000_000 + numbers, unit="s"),
            "ok": numbers % 3 == 0,
            "note": [None if number % 7 == 0 else "note" for number in range(rows)],
        }
    )
