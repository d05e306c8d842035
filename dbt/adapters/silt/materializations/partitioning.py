"""Reads `partition_by` and `cluster_by` in the forms that other adapters accept: names, mappings, and transforms.

A table is partitioned by columns alone. Any other part does not partition the table. It only affects rows if the
strategy replaces partitions (`insert_overwrite`): there it becomes an expression, or is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.materializations.incremental.config_columns import without_quotes

_NAME = r"""(?:\w+|`(?:[^`]|``)+`|"(?:[^"]|"")+")"""
_NAMES = re.compile(rf"\s*{_NAME}(\s*,\s*{_NAME})+\s*")
_PATH = re.compile(rf"{_NAME}(\.{_NAME})*")
_PATHS = re.compile(rf"\s*{_PATH.pattern}(\s*,\s*{_PATH.pattern})*\s*")
_CLUSTERING = ("liquid_clustered_by", "cluster_by")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_PERIODS = {f"{part}{end}": part for part in ("year", "month", "day", "hour") for end in ("", "s")}
_PERIODS |= {"date": "day", "date_hour": "hour"}
_BUCKETS = ("bucket", "truncate")


@dataclass(frozen=True)
class Partitioning:
    """The content of a config `partition_by`.

    Attributes:
        columns: the columns that the table is partitioned by.
        keys: columns and expressions whose values identify the partitions that `insert_overwrite` replaces.
        left_out: the parts that are not partitions of the table, as written.
        without_key: the parts of `left_out` without an expression.
    """

    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    without_key: tuple[str, ...] = ()

    def replaced_by(self) -> tuple[str, ...]:
        """Returns the keys of `insert_overwrite`.

        Raises:
            CompilationError: if a part has no expression, so that the wrong rows would be replaced.
        """
        if self.without_key:
            raise CompilationError(
                f"`insert_overwrite` cannot determine the partitions of `partition_by: {', '.join(self.without_key)}`: "
                "name columns, or expressions of Spark SQL over columns"
            )
        return self.keys


def partitioning(config: Any) -> Partitioning:
    """Reads the config in any of its forms; never fails."""
    parts = [_part(each) for each in _items(config)]
    return Partitioning(
        columns=tuple(part.column for part in parts if part.column is not None),
        keys=tuple(part.key for part in parts if part.key is not None),
        left_out=tuple(part.written for part in parts if part.column is None),
        without_key=tuple(part.written for part in parts if part.key is None),
    )


@dataclass(frozen=True)
class Clustering:
    """The content of the configs `liquid_clustered_by` and `cluster_by`.

    Attributes:
        name: the config; empty without either.
        columns: the paths of the columns that the table is clustered by, as SQL spells them.
        left_out: the reason why some of the config is left out, or empty.
    """

    name: str = ""
    columns: tuple[str, ...] = ()
    left_out: str = ""


def clustering(config: Mapping[str, Any]) -> Clustering:
    """Reads the columns that a node's table is clustered by; never fails.

    Args:
        config: the configs of the node.
    """
    name = next((each for each in _CLUSTERING if config.get(each) is not None), "")
    given = config.get(name) if name else None
    written = [str(item).strip() for each in _listed(given) for item in _paths(each)]
    columns = tuple(_spelled(each) for each in written if _PATH.fullmatch(each))
    others = [each for each in written if not _PATH.fullmatch(each)]
    if columns and partitioning(config.get("partition_by")).columns:
        return Clustering(name, (), "a table with `partition_by` is not clustered")
    return Clustering(name, columns, f"`{', '.join(others)}` is not a column" if others else "")


def _listed(given: Any) -> Iterable[Any]:
    return given if isinstance(given, list | tuple) else [given] if given else []


def _paths(item: Any) -> list[str]:
    text = str(item)
    if text.strip().lower() in ("", "none"):
        return []
    return text.split(",") if _PATHS.fullmatch(text) else [text]


def _spelled(path: str) -> str:
    return ".".join(quote(without_quotes(part)) for part in re.findall(_NAME, path))


@dataclass(frozen=True)
class _Part:
    """A part of the config: its text, and its column and key, if any."""

    written: str
    column: str | None = None
    key: str | None = None


def _items(config: Any) -> Iterable[Any]:
    if isinstance(config, str):
        # dbt-spark copies the string into its statement: several names work there.
        return config.split(",") if _NAMES.fullmatch(config) else [config] if config.strip() else []
    if isinstance(config, list | tuple):
        return [item for each in config for item in (_items(each) if isinstance(each, str) else [each])]
    return [config] if config else []


def _part(item: Any) -> _Part:
    if isinstance(item, Mapping):
        return _mapping(item)
    written = str(item).strip()
    call = _CALL.fullmatch(written)
    if call is None:
        name = without_quotes(written)
        return _Part(written, name, name)
    function, argument = call[1].lower(), call[2].strip()
    if function in _PERIODS and re.fullmatch(_NAME, argument):
        return _Part(written, key=_period(_PERIODS[function], without_quotes(argument)))
    return _Part(written, key=None if function in _BUCKETS else written)


def _mapping(item: Mapping[str, Any]) -> _Part:
    """Reads BigQuery's form: `field`, `data_type` (default: date), and `granularity` (default: day) or `range`."""
    written = ", ".join(f"{name}: {value}" for name, value in item.items())
    column = without_quotes(str(item.get("field") or "").strip())
    kind = str(item.get("data_type") or "date").lower()
    part = str(item.get("granularity") or "day").lower()
    if not column or item.get("time_ingestion_partitioning"):
        return _Part(written)
    if kind == "date" and part == "day":
        return _Part(written, column, column)
    if kind in ("date", "timestamp", "datetime") and part in _PERIODS:
        return _Part(written, key=_period(_PERIODS[part], column))
    return _Part(written, key=_range_key(column, item.get("range")))


def _period(part: str, column: str) -> str:
    return f"date_trunc('{part}', {quote(column)})"


def _range_key(column: str, given: Any) -> str | None:
    """Returns SQL for the number of a value's range: -1 outside of all ranges, null for null."""
    try:
        start, end, step = (int(given[name]) for name in ("start", "end", "interval"))
    except (TypeError, KeyError, ValueError):
        return None
    name = quote(column)
    return f"if({name} >= {start} and {name} < {end}, floor(({name} - {start}) / {step}), {name} * 0 - 1)"
