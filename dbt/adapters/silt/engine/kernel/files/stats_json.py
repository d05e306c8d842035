"""Reads selected statistics from the JSON strings of many files, as columns."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.table.value_order import ValueOrder

Path: TypeAlias = tuple[str, ...]
Statistic: TypeAlias = Path
"""The path of a statistic in the JSON: `("numRecords",)`, `("minValues", "a", "b")` ..."""

NUM_RECORDS: Final[Statistic] = ("numRecords",)
TIGHT_BOUNDS: Final = "tightBounds"
TIGHT: Final[Statistic] = (TIGHT_BOUNDS,)
_COUNT = ValueOrder()

# Up to this many files the strings are read in Python: setting up Arrow's reader would cost more.
_FEW = 32
# The number of strings in a part, which is read by a single thread.
_PART = 16_384
_BLOCK_BYTES = 4 << 20
# NaN and infinities are strings, which Arrow's reader refuses in a column of numbers. Within a string the quotation
# mark would be escaped, so this matches whole values only.
_NO_NUMBER = r':\s*"(?:NaN|[+-]?Infinity|[+-]?INF)"'


def read(texts: pa.Array, requested: Mapping[Statistic, ValueOrder | None]) -> dict[Statistic, pa.Array]:
    """Reads statistics as arrays with an entry per string.

    Args:
        texts: JSON objects as strings, or null.
        requested: the order of each minimum and maximum to read; None for counts.

    Returns:
        Arrays in the orders' `json_form`, or int64 for counts. A statistic that is missing or not of its type is null,
        and so are all statistics of a string that is not JSON.
    """
    orders = {statistic: order or _COUNT for statistic, order in requested.items()}
    if len(texts) <= _PART:
        return _read_part(orders, texts)
    slices = [texts.slice(start, _PART) for start in range(0, len(texts), _PART)]
    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        parts = list(pool.map(functools.partial(_read_part, orders), slices))
    return {statistic: pa.concat_arrays([part[statistic] for part in parts]) for statistic in orders}


def record_count(text: str | None) -> int | None:
    """Returns the number of rows in the statistics of a file, if any."""
    counts = read(pa.array([text], pa.string()), {NUM_RECORDS: None})[NUM_RECORDS]
    count = counts[0].as_py()
    return None if count is None or count < 0 else int(count)


def _read_part(orders: Mapping[Statistic, ValueOrder], texts: pa.Array) -> dict[Statistic, pa.Array]:
    if len(texts) <= _FEW:
        return _read_each(texts, orders)
    lines = pc.fill_null(texts, "{}")
    # Arrow's reader refuses all strings if it refuses any of them.
    with contextlib.suppress(pa.ArrowInvalid):
        return _read_lines(lines, orders)
    try:
        return _read_lines(pc.replace_substring_regex(lines, _NO_NUMBER, ":null"), orders)
    except pa.ArrowInvalid:
        return _read_each(texts, orders)


def widened(text: str) -> str:
    """Sets `tightBounds` to false in the statistics of a file, whose bounds are wide after rows of it were deleted.

    The rest of the string is unchanged, because numbers may have more digits than Python would write.
    """
    document = foreign_json.loads(text)
    if TIGHT_BOUNDS not in document:
        members = text.strip().removesuffix("}").rstrip()
        return f'{members}{"," if document else ""}"{TIGHT_BOUNDS}":false}}'
    if document[TIGHT_BOUNDS] is False:
        return text
    for match in re.finditer(rf'"{TIGHT_BOUNDS}"\s*:\s*(?:true|null)', text):
        changed = f'{text[: match.start()]}"{TIGHT_BOUNDS}":false{text[match.end() :]}'
        # A nested column may have the same name.
        if foreign_json.loads(changed)[TIGHT_BOUNDS] is False:
            return changed
    return text


def _read_lines(lines: pa.Array, orders: Mapping[Statistic, ValueOrder]) -> dict[Statistic, pa.Array]:
    """Reads the statistics of strings of a single line each.

    Raises:
        pa.ArrowInvalid: if a string is not JSON, spans lines, or has a value of another type.
    """
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")
    table = pj.read_json(
        pa.BufferReader(joined[0].as_buffer()),
        read_options=pj.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=pa.schema(_fields(orders)), unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise pa.ArrowInvalid("a text is not one line")
    return {statistic: _column(table, statistic) for statistic in orders}


def _fields(orders: Mapping[Path, ValueOrder]) -> list[pa.Field]:
    """Builds the nested fields with a leaf at each path."""
    below: dict[str, dict[Path, ValueOrder]] = {}
    for path, order in orders.items():
        below.setdefault(path[0], {})[path[1:]] = order
    return [
        pa.field(name, rest[()].json_form if () in rest else pa.struct(_fields(rest))) for name, rest in below.items()
    ]


def _column(table: pa.Table, path: Path) -> pa.Array:
    column = table[path[0]].combine_chunks()
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _read_each(texts: pa.Array, orders: Mapping[Statistic, ValueOrder]) -> dict[Statistic, pa.Array]:
    documents = [_parsed(text) for text in texts.to_pylist()]
    return {
        statistic: pa.array([order.from_json(_at(document, statistic)) for document in documents], order.json_form)
        for statistic, order in orders.items()
    }


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else foreign_json.loads_exactly(text)
    except ValueError:
        return None


def _at(document: Any, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document
