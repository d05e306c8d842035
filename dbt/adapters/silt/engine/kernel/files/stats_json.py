"""Reads selected statistics from the JSON strings of many files, counts their rows, and writes bounds as JSON literals.

Source: the Delta specification, sections "Per-file Statistics" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.table.value_order import Decimals, ValueOrder, has_long_exponents

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

_ASCII_MAX_CHARACTER = "\x7f"
_UTF8_MAX_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


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
    if len(texts) <= _FEW or (_has_decimals(orders) and has_long_exponents(texts)):
        return _read_each(texts, orders)
    lines = pc.fill_null(texts, "{}")
    # Arrow's reader refuses all strings if it refuses any of them.
    with contextlib.suppress(pa.ArrowInvalid):
        return _read_lines(lines, orders)
    try:
        return _read_lines(pc.replace_substring_regex(lines, _NO_NUMBER, ":null"), orders)
    except pa.ArrowInvalid:
        return _read_each(texts, orders)


def _has_decimals(orders: Mapping[Statistic, ValueOrder]) -> bool:
    return any(isinstance(order, Decimals) for order in orders.values())


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
        statistic: pa.array([order.from_json(_member(document, statistic)) for document in documents], order.json_form)
        for statistic, order in orders.items()
    }


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else foreign_json.loads_exactly(text)
    except ValueError:
        return None


def _member(document: Any, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def integer_literal(value: int) -> str:
    return str(value)


def float_literal(value: float) -> str:
    """Returns a JSON number, or for NaN and infinities the string that Spark writes."""
    return float_text(value) if math.isfinite(value) else f'"{float_text(value)}"'


def float_text(value: float) -> str:
    """Returns the spelling of a number in a log, outside of JSON."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def decimal_literal(unscaled: int, scale: int) -> str:
    """Returns a JSON number with exactly the type's digits."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return format(Decimal((int(unscaled < 0), digits, -scale)), "f")


def date_literal(days: int) -> str | None:
    """Returns a date from days since 1970-01-01, or None for a year outside 1 to 9999, which has no literal."""
    ordinal = days + _EPOCH_DAY
    if not date.min.toordinal() <= ordinal <= date.max.toordinal():
        return None
    return f'"{date.fromordinal(ordinal).isoformat()}"'


def timestamp_literal(microseconds: int, zoned: bool) -> str | None:
    """Returns a timestamp in UTC, truncated to milliseconds as the specification requires for minimum and maximum.

    A reader therefore adds 1 ms to the maximum. Returns None for a year outside 1 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=microseconds // 1000)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f'"{text}Z"' if zoned else f'"{text}"'


def string_literal(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def truncated_minimum(value: str, prefix_length: int) -> str | None:
    """Returns a lower bound of `value`: its first `prefix_length` UTF-16 units plus the rest of a split character.

    Returns None if the table disables statistics of strings (length 0).
    """
    return value[: _prefix_end(value, prefix_length)] if prefix_length > 0 else None


def truncated_maximum(value: str, prefix_length: int) -> str | None:
    """Returns a string not less, in UTF-8 order, than any string of which `value` is the greatest.

    A longer value is shortened to its prefix, followed by a character above the first removed character: U+007F if that
    suffices, or else U+10FFFF. If U+10FFFF itself would be removed, the prefix extends past it. Returns None if the
    prefix then exceeds twice the prefix length, or if the table disables statistics of strings (length 0).
    """
    if prefix_length <= 0:
        return None
    end = _prefix_end(value, prefix_length)
    while end < len(value) and value[end] == _UTF8_MAX_CHARACTER:
        end += 1
    if utf16_length(value[:end]) > 2 * prefix_length:
        return None
    if end == len(value):
        return value
    return value[:end] + (_ASCII_MAX_CHARACTER if value[end] < _ASCII_MAX_CHARACTER else _UTF8_MAX_CHARACTER)


def _prefix_end(value: str, units: int) -> int:
    """Returns the number of characters in the first `units` UTF-16 units of the value; a split character counts."""
    if len(value) <= units and value.isascii():
        return len(value)
    used = 0
    for position, character in enumerate(value):
        if used >= units:
            return position
        used += utf16_length(character)
    return len(value)


def utf16_length(text: str) -> int:
    """Returns the number of UTF-16 units, by which bounds are shortened: a character beyond U+FFFF has two."""
    return len(text) + sum(character > "\uffff" for character in text)


def row_count(files: pa.Table) -> int | None:
    """Counts the rows of all files without deleted rows.

    Returns None if a file's count is missing or smaller than the number of its deleted rows.

    Args:
        files: rows of `Snapshot.files`.
    """
    left = pc.subtract(num_records(files), pc.fill_null(_cardinalities(files), 0))
    if left.null_count or pc.any(pc.less(left, 0)).as_py():
        return None
    return pc.sum(left).as_py() or 0


def num_records(files: pa.Table) -> pa.Array:
    """Returns the row count of each file, including rows deleted by its deletion vector; null if unknown."""
    stats = files["stats"].combine_chunks() if files.num_rows else pa.array([], pa.string())
    return read(stats, {NUM_RECORDS: None})[NUM_RECORDS]


def deleted_rows(files: pa.Table) -> int:
    """Counts the rows deleted by the deletion vectors of all files."""
    return pc.sum(_cardinalities(files)).as_py() or 0


def _cardinalities(files: pa.Table) -> pa.Array:
    return pc.struct_field(files["deletion_vector"].combine_chunks(), "cardinality")
