"""Converts the statistics columns of a checkpoint (`stats_parsed`) to the JSON strings of `add.stats`.

Works on whole columns; only values that need JSON escapes, which Arrow does not support, are converted in Python.
"""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

# The unit to read INT96 timestamps in: their Parquet type does not distinguish `timestamp` and `timestamp_ntz`, but no
# writer stores the latter in this unit. The specification requires statistics in milliseconds, rounded down.
INT96_UNIT: Final = "ms"

# PyArrow before 23 reads an INT96 timestamp before 1970 as a timestamp centuries later.
READS_INT96: Final = int(pa.__version__.partition(".")[0]) >= 23

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def stats_texts(parsed: pa.Array) -> pa.Array:
    """Converts each row's statistics to a JSON string.

    Args:
        parsed: structs such as `{numRecords, minValues: {...}, maxValues: {...}, nullCount: {...}}`. A timestamp in
            milliseconds without a zone is a UTC timestamp that was stored as INT96 (see `INT96_UNIT`), and is omitted
            if PyArrow cannot read INT96.

    Returns:
        Strings, null for null rows. Null members are omitted, as in `add.stats`.
    """
    return _document(parsed)


def _document(structs: pa.Array) -> pa.Array:
    members = [_member(field.name, child) for field, child in zip(structs.type, structs.flatten(), strict=True)]
    # Each string begins with a comma, so that missing members add nothing; the first comma is removed.
    texts = [pc.fill_null(_between(",", member, ""), "") for member in members]
    joined = pc.binary_join_element_wise(*texts, "", "") if texts else pa.repeat(pa.scalar(""), len(structs))
    document = _between("{", pc.utf8_slice_codeunits(joined, start=1), "}")
    return pc.if_else(pc.is_valid(structs), document, pa.scalar(None, pa.string()))


def _member(name: str, values: pa.Array) -> pa.Array:
    return _between(json.dumps(name, ensure_ascii=False) + ":", _literal(values), "")


def _literal(values: pa.Array) -> pa.Array:
    kind = values.type
    if pt.is_struct(kind):
        return _document(values)
    if pt.is_null(kind):
        return values.cast(pa.string())
    if pt.is_floating(kind):
        return _float_literal(values)
    if pt.is_timestamp(kind):
        return _timestamp_literal(values)
    if pt.is_date(kind):
        return _between('"', values.cast(pa.string()), '"')
    if pt.is_string(kind) or pt.is_large_string(kind):
        return _string_literal(values.cast(pa.string()))
    if pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_boolean(kind):
        return values.cast(pa.string())
    # The specification has no minimum or maximum for other types: a missing statistic keeps the file.
    return pa.nulls(len(values), pa.string())


def _float_literal(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    special = pc.invert(pc.is_finite(values))
    names = pc.case_when(
        pc.make_struct(pc.is_nan(values), pc.greater(values, pa.scalar(0.0, values.type))),
        pa.scalar('"NaN"'),
        pa.scalar('"Infinity"'),
        pa.scalar('"-Infinity"'),
    )
    return pc.if_else(pc.is_valid(values), pc.if_else(special, names, texts), pa.scalar(None, pa.string()))


def _timestamp_literal(values: pa.Array) -> pa.Array:
    of_int96 = values.type.tz is None and values.type.unit == INT96_UNIT
    if of_int96 and not READS_INT96:
        return pa.nulls(len(values), pa.string())
    zone = "Z" if values.type.tz is not None or of_int96 else ""
    wall_clock = values.cast(pa.timestamp(values.type.unit)).cast(pa.string())
    return _between('"', pc.replace_substring(wall_clock, " ", "T", max_replacements=1), f'{zone}"')


def _string_literal(values: pa.Array) -> pa.Array:
    quoted = _between('"', values, '"')
    unsafe = pc.fill_null(pc.match_substring_regex(values, _NEEDS_ESCAPE), False)
    if not pc.any(unsafe).as_py():
        return quoted
    escaped = [json.dumps(value, ensure_ascii=False) for value in values.filter(unsafe).to_pylist()]
    return pc.replace_with_mask(quoted, unsafe, pa.array(escaped, pa.string()))


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")
