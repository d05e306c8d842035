"""Files that are skipped, and statistics that are not trusted. Property tests check that no file is skipped wrongly."""

from __future__ import annotations

import json
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
)
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

A = Column.of("a")
UTC = timezone.utc


def field(kind: str | DataType, **metadata: Any) -> StructField:
    return StructField("a", PrimitiveType(kind) if isinstance(kind, str) else kind, metadata=metadata)


def stats(low: Any = None, high: Any = None, nulls: int | None = 0, rows: int | None = 10) -> str:
    parts = [f'"numRecords":{rows}'] if rows is not None else []
    for name, value in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
        if value is not None:
            text = str(value) if isinstance(value, Decimal) else json.dumps(value)
            parts.append(f'"{name}":{{"a":{text}}}')
    return "{" + ",".join(parts) + "}"


def table(member: StructField, *files: str | None, trusted: bool = True, copies: int = 1) -> Snapshot:
    tags = TRUSTED if trusted else None
    adds = [AddFile(str(number), {}, 1, 0, stats=text, tags=tags) for number, text in enumerate(files * copies)]
    metadata = Metadata("id", StructType((member,)).to_json())
    return Snapshot("t", 0, 0, metadata, Protocol(), TableFiles(active_files.files_table(adds)), {}, {})


def partitions(kind: str, *values: str | None) -> Snapshot:
    adds = [AddFile(str(number), {"a": value}, 1, 0) for number, value in enumerate(values)]
    metadata = Metadata("id", StructType((field(kind),)).to_json(), ("a",))
    return Snapshot("t", 0, 0, metadata, Protocol(), TableFiles(active_files.files_table(adds)), {}, {})


def kept(snapshot: Snapshot, predicate: Expression) -> list[int]:
    return [int(path) for path in skipping.prune(snapshot, predicate)["path"].to_pylist()]


def test_the_null_count_of_a_file_with_wide_bounds_is_used_only_if_it_is_zero_or_all_rows() -> None:
    texts = (f'{{"tightBounds":false,{stats(1, 3, nulls=nulls)[1:]}' for nulls in (0, 4, 10))
    wide = table(field("long"), *texts)
    assert (kept(wide, IsNull(A)), kept(wide, IsNotNull(A))) == ([1, 2], [0, 1])
    assert skipping.fully_matched(wide, Comparison("<", A, 4)).to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    "nested", [ArrayType(PrimitiveType("long"), True), MapType(PrimitiveType("string"), PrimitiveType("long"), True)]
)
def test_nulls_of_elements_are_not_counted_as_nulls_of_the_column(nested: DataType) -> None:
    for trusted, files in ((False, [0, 1]), (True, [0])):
        counted = table(StructField("a", nested), stats(nulls=0), stats(nulls=10), trusted=trusted)
        assert (kept(counted, IsNotNull(A)), kept(counted, IsNull(A))) == (files, [1])


LOW, MIDDLE, HIGH, NULLS = stats(1, 3), stats(4, 6, nulls=2), stats(7, 9), stats(nulls=10)
NUMBERS = table(field("long"), LOW, MIDDLE, HIGH, NULLS)
SAME = table(field("long"), stats(5, 5), stats(5, 5, nulls=3))


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        (Comparison("=", A, 5), [1]),
        (Comparison("=", A, 10), []),
        (Comparison("<=>", A, 5), [1]),
        (Comparison("<=>", A, None), [1, 3]),
        (Comparison("=", A, None), []),
        (Comparison("!=", A, 5), [0, 1, 2]),
        (Comparison("<", A, 4), [0]),
        (Comparison("<=", A, 4), [0, 1]),
        (Comparison(">", A, 6), [2]),
        (Comparison(">=", A, 6), [1, 2]),
        (In(A, (2, 8, None)), [0, 2]),
        (In(A, (None,)), []),
        (In(A, tuple(range(20, 60))), []),
        (In(A, (*range(20, 60), 8)), [2]),
        (In(A, (*range(20, 60), 8, None)), [2]),
        (IsNull(A), [1, 3]),
        (IsNotNull(A), [0, 1, 2]),
        (Not(Comparison("=", A, 5)), [0, 1, 2]),
        (Not(Comparison("<", A, 7)), [2]),
        (Not(IsNull(A)), [0, 1, 2]),
        (Not(Or((Comparison("<", A, 4), Comparison(">", A, 6)))), [1]),
        (And((Comparison(">", A, 3), Comparison("<", A, 7))), [1]),
        (And((Comparison("=", A, 5), UNKNOWN)), [1]),
        (Or((Comparison("=", A, 5), UNKNOWN)), [0, 1, 2, 3]),
        (Comparison("=", Column.of("no_such"), 1), [0, 1, 2, 3]),
        (Comparison("=", A, "a value of another type"), [0, 1, 2, 3]),
        (Comparison("=", A, 2**70), [0, 1, 2, 3]),
        (In(A, (*range(20, 60), "x")), [0, 1, 2, 3]),
        (StartsWith(A, "x"), [0, 1, 2, 3]),
        (TRUE, [0, 1, 2, 3]),
        (UNKNOWN, [0, 1, 2, 3]),
        (FALSE, []),
        (And((TRUE, FALSE)), []),
    ],
)
def test_files_that_cannot_match_are_skipped(predicate: Expression, files: list[int]) -> None:
    assert kept(NUMBERS, predicate) == files


def test_unequal_skips_files_that_contain_only_that_value() -> None:
    assert kept(SAME, Comparison("!=", A, 5)) == []
    assert kept(SAME, Comparison("!=", A, 6)) == [0, 1]


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        (Comparison("<", A, 4), [True, False, False, False]),
        (Comparison(">", A, 0), [True, False, True, False]),
        (Comparison("<=>", A, None), [False, False, False, True]),
        (IsNull(A), [False, False, False, True]),
        (Not(Comparison(">", A, 3)), [True, False, False, False]),
        (Or((IsNull(A), Comparison(">", A, 3))), [False, False, True, True]),
        (Not(Comparison("<=>", A, 50)), [True, True, True, True]),
        (In(A, tuple(range(-50, 50))), [False, False, False, False]),
        (TRUE, [True] * 4),
        (UNKNOWN, [False] * 4),
    ],
)
def test_files_whose_rows_all_match_are_recognised(predicate: Expression, files: list[bool]) -> None:
    assert skipping.fully_matched(NUMBERS, predicate).to_pylist() == files


def test_only_the_given_files_are_examined() -> None:
    some = NUMBERS.files.slice(1, 2)
    assert skipping.prune(NUMBERS, Comparison(">", A, 0), some)["path"].to_pylist() == ["1", "2"]
    assert skipping.fully_matched(NUMBERS, Comparison(">", A, 6), some).to_pylist() == [False, True]


def test_added_files_are_skipped_by_the_rules_of_a_tables_files() -> None:
    adds = NUMBERS.add_files()
    assert skipping.might_match(adds, NUMBERS.metadata, Comparison("=", A, 5)) == [False, True, False, False]
    assert skipping.might_match([], NUMBERS.metadata, Comparison("=", A, 5)) == []


@pytest.mark.parametrize("copies", [1, 50])
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "not json",
        '{"numRecords":1}',
        '{"numRecords":1,"minValues":null,"maxValues":{},"nullCount":[]}',
        '{"numRecords":1,"minValues":{"a":"1"},"maxValues":{"a":true}}',
        '{"numRecords":1,"minValues":{"a":1.5},"maxValues":{"a":1e400}}',
        '{"numRecords":1,"minValues":{"b":1},"maxValues":{"b":2}}',
    ],
)
def test_invalid_statistics_keep_their_file_and_affect_no_other_file(text: str | None, copies: int) -> None:
    found = kept(table(field("long"), text, LOW, copies=copies), Comparison("=", A, 5))
    assert found == list(range(0, 2 * copies, 2))


@pytest.mark.parametrize("copies", [1, 50])
def test_statistics_over_several_lines_are_read(copies: int) -> None:
    pretty = json.dumps(json.loads(LOW), indent=2)
    assert kept(table(field("long"), pretty, MIDDLE, copies=copies), Comparison("=", A, 2)) == list(
        range(0, 2 * copies, 2)
    )


def test_missing_counts_are_not_zero() -> None:
    files = table(field("long"), stats(1, 3, nulls=None), stats(nulls=5, rows=None))
    assert kept(files, IsNull(A)) == [0, 1]
    assert kept(files, IsNotNull(A)) == [0, 1]
    assert skipping.fully_matched(files, Comparison("<", A, 5)).to_pylist() == [False, False]


def test_a_timestamps_maximum_is_extended_by_one_millisecond() -> None:
    files = table(field("timestamp"), stats("2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.001Z"))
    at = datetime(2024, 1, 1, 0, 0, 0, 1_999, UTC)
    assert kept(files, Comparison("=", A, at)) == [0]
    assert kept(files, Comparison("=", A, at + timedelta(microseconds=1))) == []


@pytest.mark.parametrize(
    ("low", "moment"),
    [
        ("2024-01-01T00:00:00.000-08:00", datetime(2024, 1, 1, 8, tzinfo=UTC)),
        ("2024-01-01T00:00:00.000+05:30", datetime(2023, 12, 31, 18, 30, tzinfo=UTC)),
        ("2024-01-01 00:00:00.000Z", datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_zones_of_timestamps_are_parsed(low: str, moment: datetime) -> None:
    files = table(field("timestamp"), stats(low, low))
    assert kept(files, Comparison("=", A, moment)) == [0]
    assert kept(files, Comparison("<", A, moment)) == []


def test_old_zones_with_seconds_widen_the_bounds_by_a_minute() -> None:
    spelled = [stats(text, text) for text in ("1850-01-01T00:00:00.000-07:52:58", "1850-01-01T00:00:00.000-07:52")]
    moment = datetime(1850, 1, 1, 7, 52, 58, tzinfo=UTC)
    assert kept(table(field("timestamp"), *spelled), Comparison("=", A, moment)) == [0, 1]
    assert kept(table(field("timestamp"), *spelled), Comparison("=", A, moment + timedelta(minutes=3))) == []


def test_a_timestamp_without_zone_may_be_in_any_zone() -> None:
    files = table(field("timestamp"), stats("2024-01-01 12:00:00", "2024-01-01 12:00:00"))
    assert kept(files, Comparison(">", A, datetime(2024, 1, 2, 2, tzinfo=UTC))) == [0]
    assert kept(files, Comparison(">", A, datetime(2024, 1, 3, 2, tzinfo=UTC))) == []


def test_timestamps_with_and_without_zone_are_not_compared() -> None:
    files = table(field("timestamp_ntz"), stats("2024-01-01T00:00:00", "2024-01-01T00:00:00"))
    assert kept(files, Comparison("=", A, datetime(2030, 1, 1))) == []
    assert kept(files, Comparison("=", A, datetime(2030, 1, 1, tzinfo=UTC))) == [0]


def test_a_maximum_of_doubles_is_used_only_if_its_writer_considers_nan() -> None:
    numbers = stats(1.5, 2.5)
    for value in (9.0, float("nan")):
        assert kept(table(field("double"), numbers, trusted=False), Comparison(">=", A, value)) == [0]
        assert kept(table(field("double"), numbers), Comparison(">=", A, value)) == []
    assert kept(table(field("double"), stats(1.5, "NaN")), Comparison("=", A, float("nan"))) == [0]
    assert kept(table(field("double"), stats("NaN", "NaN")), Comparison("=", A, 1.0)) == [0]


@pytest.mark.parametrize("copies", [1, 50])
def test_nan_and_infinity_are_read_as_words(copies: int) -> None:
    files = table(field("double"), stats(1.5, "NaN"), stats("-Infinity", 1.0), stats(3.0, 4.0), copies=copies)
    assert len(kept(files, Comparison("<", A, 0.0))) == copies
    assert len(kept(files, Comparison(">", A, 5.0))) == copies


def test_a_float_is_compared_as_its_exact_32_bit_value() -> None:
    tenth = 0.10000000149011612
    files = table(field("float"), stats(0.1, 0.1))
    assert kept(files, Comparison("=", A, tenth)) == [0]
    assert kept(files, Comparison("=", A, 0.1)) == []


def test_zeros_are_equal_whatever_their_sign() -> None:
    assert kept(table(field("double"), stats(0.0, 1.0)), Comparison("=", A, -0.0)) == [0]
    assert kept(table(field("double"), stats(-1.0, -0.0)), Comparison(">=", A, 0.0)) == [0]


def test_decimals_are_compared_exactly_at_any_scale() -> None:
    big = Decimal("12345678901234567890.10")
    files = table(field(DecimalType(38, 2)), stats(big, big))
    assert kept(files, Comparison("=", A, big)) == [0]
    assert kept(files, Comparison("=", A, big + Decimal("0.01"))) == []
    assert kept(files, Comparison("<", A, big - Decimal("0.001"))) == []


@pytest.mark.parametrize("number", ["1e-999999999", "1e999999999", "1e99999999999999999999", "NaN", "9" * 5000])
@pytest.mark.parametrize("files", [1, 40])
def test_a_bound_that_is_no_decimal_excludes_no_file_however_many_files_have_it(number: str, files: int) -> None:
    absurd = f'{{"numRecords": 1, "minValues": {{"a": {number}}}, "maxValues": {{"a": {number}}}}}'
    found = table(field(DecimalType(38, 2)), stats(1, 2), *[absurd] * files)
    assert kept(found, Comparison("=", A, Decimal(5))) == list(range(1, files + 1))


def test_long_decimals_of_writers_that_may_round_are_not_trusted() -> None:
    rounded = Decimal("12345678901234567000")
    files = table(field(DecimalType(38, 2)), stats(rounded, rounded), stats(1, 2), trusted=False)
    assert kept(files, Comparison("=", A, Decimal("12345678901234567890.10"))) == [0]


def test_a_maximum_that_an_early_writer_truncated_is_extended_beyond_its_marker() -> None:
    files = table(field("string"), stats("a", "a" * 32 + "\ufffd"))
    assert kept(files, Comparison("=", A, "a" * 32 + "\U0001f680")) == [0]


@pytest.mark.parametrize(
    ("prefix", "files"), [("ab", [0]), ("abc", [0]), ("b", [0, 1]), ("c", [1]), ("d", []), ("", [0, 1])]
)
def test_prefix_conditions_are_ranges(prefix: str, files: list[int]) -> None:
    strings = table(field("string"), stats("abc", "b"), stats("bx", "cz"))
    assert kept(strings, StartsWith(A, prefix)) == files


def test_a_prefix_that_both_bounds_have_is_a_prefix_of_every_row() -> None:
    strings = table(field("string"), stats("abc", "abz"), stats("abc", "b"))
    assert skipping.fully_matched(strings, StartsWith(A, "ab")).to_pylist() == [True, False]


def test_columns_with_a_collation_are_not_compared() -> None:
    files = table(field("string", __COLLATIONS={"a": "ICU.UNICODE_CI"}), stats("a", "b", nulls=0))
    assert kept(files, Comparison("=", A, "B")) == [0]
    assert kept(files, IsNull(A)) == []


def changed(old: str, new: str) -> StructField:
    return field(new, **{"delta.typeChanges": [{"fromType": old, "toType": new}]})


def test_statistics_of_a_narrower_type_are_compared_as_the_wider_type() -> None:
    assert kept(table(changed("integer", "long"), stats(1, 5)), Comparison(">", A, 5_000_000_000)) == []
    assert kept(table(changed("integer", "long"), stats(1, 5)), Comparison("=", A, 5)) == [0]
    assert kept(table(changed("integer", "double"), stats(1, 5)), Comparison(">", A, 5.5)) == []
    dates = table(changed("date", "timestamp_ntz"), stats("2024-01-01", "2024-01-03"))
    assert kept(dates, Comparison("=", A, datetime(2024, 1, 3))) == [0]
    assert kept(dates, Comparison(">", A, datetime(2024, 1, 3, 1))) == []
    decimals = table(StructField("a", DecimalType(12, 4), metadata=changed("integer", "double").metadata), stats(1, 5))
    assert kept(decimals, Comparison("=", A, Decimal("5.0000"))) == [0]
    assert kept(decimals, Comparison("=", A, Decimal("5.0001"))) == []


def test_the_digits_of_a_float_mean_the_double_that_it_was_widened_to() -> None:
    inexact = struct.unpack("f", struct.pack("f", 0.1))[0]
    files = table(changed("float", "double"), stats(0.1, 0.1), stats(-0.1, -0.1))
    for value in (0.1, inexact, -0.1, -inexact):
        assert kept(files, Comparison("=", A, value)) == [0 if value > 0 else 1]


def test_statistics_are_found_under_physical_names_and_within_structs() -> None:
    inner = StructField("X", PrimitiveType("long"), metadata={"delta.columnMapping.physicalName": "col-2"})
    outer = StructField("S", StructType((inner,)), metadata={"delta.columnMapping.physicalName": "col-1"})
    text = '{"numRecords":1,"minValues":{"col-1":{"col-2":5}},"maxValues":{"col-1":{"col-2":6}}}'
    assert kept(table(outer, text), Comparison("=", Column.of("s", "x"), 7)) == []
    assert kept(table(outer, text), Comparison("=", Column.of("s", "x"), 6)) == [0]
    assert kept(table(outer, text), IsNull(Column.of("s"))) == [0]
    assert kept(table(outer, text), Comparison("=", Column.of("s", "x", "y"), 7)) == [0]


def test_null_counts_of_types_without_an_order_are_used() -> None:
    files = table(field(ArrayType(PrimitiveType("long"))), stats(nulls=0), stats(nulls=10), stats(nulls=None))
    assert kept(files, IsNull(A)) == [1, 2]
    assert kept(files, IsNotNull(A)) == [0, 2]


@pytest.mark.parametrize(
    ("kind", "texts", "value", "files"),
    [
        ("long", ["7", "8", None, ""], 7, [0]),
        ("date", ["2024-01-01", "2024-01-02", None, ""], date(2024, 1, 2), [1]),
        ("boolean", ["true", "false", None, ""], True, [0]),
        ("double", ["1.0E20", "-Infinity", "NaN", None], 1e20, [0, 2]),
        ("string", ["a", "b", None], "a", [0]),
        (
            "timestamp",
            ["2024-01-01T10:00:00.000000Z", "2024-01-01 10:00:00", "2024-01-05 10:00:00", None],
            datetime(2024, 1, 1, 10, tzinfo=UTC),
            [0, 1],
        ),
        ("timestamp_ntz", ["2024-01-01 10:00:00.5", "2024-01-01 10:00:00"], datetime(2024, 1, 1, 10), [1]),
        ("integer", ["no number", "1"], 5, [0]),
    ],
)
def test_partition_values_are_compared_by_type(
    kind: str, texts: list[str | None], value: Any, files: list[int]
) -> None:
    assert kept(partitions(kind, *texts), Comparison("=", A, value)) == files


@pytest.mark.parametrize(("text", "hours"), [("0001-01-01T00:00:00", 2), ("9999-12-31T23:59:59", -2)])
def test_an_hour_outside_the_years_of_utc_is_compared(text: str, hours: int) -> None:
    moment = datetime.fromisoformat(text).replace(tzinfo=timezone(timedelta(hours=hours)))
    assert kept(partitions("timestamp", "2024-01-01T00:00:00Z"), Comparison(">", A, moment)) == [0] * (hours > 0)


def test_partitions_match_completely_or_not_at_all() -> None:
    parts = partitions("date", "2024-01-01", "2024-01-02", None)
    before = Comparison("<", A, date(2024, 1, 2))
    assert skipping.fully_matched(parts, before).to_pylist() == [True, False, False]
    assert skipping.fully_matched(parts, IsNull(A)).to_pylist() == [False, False, True]


@pytest.mark.parametrize(("kind", "text"), [("long", "1"), ("string", "x")])
def test_an_empty_partition_value_is_null(kind: str, text: str) -> None:
    assert kept(partitions(kind, "", text), IsNull(A)) == [0]
    assert kept(partitions(kind, "", text), IsNotNull(A)) == [1]
    assert kept(partitions("string", "", "x"), Comparison("=", A, "")) == []


def test_a_table_without_files_is_skipped_to_no_files() -> None:
    empty = table(field("long"))
    assert skipping.prune(empty, Comparison("=", A, 1)).num_rows == 0
    assert isinstance(skipping.fully_matched(empty, Comparison("=", A, 1)), pa.BooleanArray)
