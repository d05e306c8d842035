"""Random Arrow columns of every type that Parquet supports, and their values in one plain form.

A value is an int (64 bits without a sign: a Decimal), a Decimal, a str, bytes or a bool; a date is its days and a
timestamp its microseconds since 1970; a float is a `Number`; a list, a struct and a map are tuples. This also compares
values outside of the range of Python's dates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

Draw: TypeAlias = Callable[[random.Random], Any]

EVERY = ARROW, POLARS, DUCKDB, DELTA_RS, SPARK = "pyarrow", "polars", "duckdb", "delta-rs", "spark"
OF_FILES = (ARROW, POLARS, DUCKDB)
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}

TEXTS = [
    "", "a", "A", "a\0b", "it's", 'say "x"', "back\\slash\\", "100%", "a_b", "a%b_", " lead", "trail ", "a\nb\tc", "--",
    "e\u0301", "é", "\u2028", "\x7f" * 40, "\uffff", "\uffff" * 30, "\ue000", "\ufffd", "\U0010ffff" * 9, "\U00010000",
    "\U0001f600" * 20, "日" * 22, "語" * 22 + "x", "z" * 31, "z" * 32, "z" * 33, "z" * 64, "z" * 70, "ÿ" * 64,
    "q" * 5000, "/*", "NaN", "null", "1", "true", "2024-01-01",
]  # fmt: skip
BYTES = [b"", b"\0", b"a", b"\x80", b"\xff" * 70, bytes(range(256)), b"\xff\xfe", b"z" * 65, b"q" * 5000]
DAYS = [0, -1, 1, 19_000, 2_932_896, -719_162, -141_428, -141_427, -141_426]
DAYS_BEYOND = [2_932_897, -719_163, 100_000_000]
MOMENTS = [
    0, -1, 1, 999, 1_000, 1_001, -62_135_596_800_000_000, 253_402_300_799_999_999, -12_219_292_800_000_000,
    -2_208_988_800_000_001, 1_700_000_000_123_456, 1_700_000_000_123_999, 1_700_000_000_124_000,
]  # fmt: skip
MOMENTS_BEYOND = [253_402_300_800_000_000, -62_135_596_800_000_001, 9_000_000_000_000_000_000]


@dataclass(frozen=True, order=True)
class Number:
    """A floating-point number with SQL's order: NaN is above all other numbers, and the zeros are equal."""

    is_nan: bool
    value: float


def number(value: float) -> Number:
    return Number(math.isnan(value), 0.0 if math.isnan(value) else value)


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Attributes:
        draw: returns a value for `array`, not null.
        writers: the writers that store it without change.
        refused: whether tables may not have such columns.
        cast: the expression by which DuckDB converts the column, in braces, to a type that Arrow lacks.
    """

    name: str
    arrow: pa.DataType
    draw: Draw
    writers: Sequence[str] = EVERY
    refused: bool = False
    cast: str = ""

    def array(self, values: Sequence[Any]) -> pa.Array:
        if pt.is_date32(self.arrow):
            return pa.array(values, pa.int32()).cast(self.arrow)
        if pt.is_timestamp(self.arrow):
            return pa.array(values, pa.int64()).cast(self.arrow)
        if pt.is_dictionary(self.arrow):
            return pa.array(values, self.arrow.value_type).dictionary_encode().cast(self.arrow)
        if pt.is_date64(self.arrow):
            return pa.array([None if each is None else each * 86_400_000 for each in values], pa.int64()).cast(
                self.arrow
            )
        if isinstance(self.arrow, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(self.arrow, pa.array(values, self.arrow.storage_type))
        return pa.array(values, self.arrow)

    def column(self, chance: random.Random, length: int, required: bool = False) -> pa.Array:
        """Returns a column with repeated values, and nulls unless it is required."""
        nulls = 0.0 if required else chance.choice((0.0, 0.2, 0.2, 1.0 if chance.random() < 0.2 else 0.5))
        pool = [self.draw(chance) for _ in range(chance.choice((1, 3, 12)))]
        return self.array([None if chance.random() < nulls else chance.choice(pool) for _ in range(length)])


def whole(bits: int, signed: bool) -> Draw:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    middle = [0, 1, -1 if signed else high // 2, high // 2 + 1 if not signed else 5]
    return lambda chance: chance.choice([low, high, *middle, chance.randint(low, high), chance.randint(0, 100)])


def decimals(precision: int, scale: int) -> Draw:
    most, context = 10**precision - 1, Context(prec=80)

    def scaled(unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-scale, context)

    return lambda chance: scaled(
        chance.choice(
            [most, -most, 0, 1, -1, chance.randint(-most, most), chance.randint(-min(most, 999), min(most, 999))]
        )
    )


def doubles(width: int) -> Draw:
    least, most = (5e-324, 1.7976931348623157e308) if width == 64 else (1.401298464324817e-45, 3.4028234663852886e38)
    fixed = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, least, -least, most, -most, 1.5, 100.0, 0.1]
    return lambda chance: chance.choice([*fixed, chance.uniform(-1e6, 1e6)])


def texts(chance: random.Random) -> str:
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    letters = "ab\x7f\x80ÿ日\ue000\uffff\U00010000\U0010ffff"
    return "".join(chance.choices(letters, k=chance.choice((1, 3, 31, 33, 70))))


def some_of(values: Sequence[Any]) -> Draw:
    return lambda chance: chance.choice(values)


def instants(unit: str, beyond: bool) -> Draw:
    parts = MICROSECONDS[unit]
    values = [value // parts for value in [*MOMENTS, *(MOMENTS_BEYOND if beyond else [])]]
    return lambda chance: chance.choice([*values, chance.randint(0, 2_000_000_000_000_000) // parts])


def _integers() -> list[Kind]:
    signed = [Kind(f"int{bits}", getattr(pa, f"int{bits}")(), whole(bits, True)) for bits in (8, 16, 32, 64)]
    unsigned = [
        Kind(f"u{kind.name}", getattr(pa, f"u{kind.name}")(), whole(kind.arrow.bit_width, False)) for kind in signed
    ]
    return [*signed, *(replace(kind, writers=OF_FILES) for kind in unsigned)]


def _scalars() -> list[Kind]:
    kinds = _integers()
    for make, precisions in (
        (pa.decimal32, [(9, 2), (1, 1)]), (pa.decimal64, [(18, 4), (10, 0)]),
        (pa.decimal128, [(9, 0), (18, 18), (19, 0), (20, 5), (38, 0), (38, 10), (38, 38), (5, 2)]),
        (pa.decimal256, [(38, 2)]),
    ):  # fmt: skip
        writers = EVERY if make is pa.decimal128 else (ARROW,)
        kinds += [Kind(f"{make.__name__}({p},{s})", make(p, s), decimals(p, s), writers) for p, s in precisions]
    kinds += [Kind("float", pa.float32(), doubles(32)), Kind("double", pa.float64(), doubles(64))] * 2
    kinds += [Kind(f"{kind}", kind, texts) for kind in (pa.string(), pa.large_string(), pa.string())]
    kinds += [
        Kind("string_view", pa.string_view(), texts, (ARROW, POLARS)),
        Kind("bool", pa.bool_(), some_of([True, False])),
        Kind("binary", pa.binary(), some_of(BYTES)),
        Kind("large_binary", pa.large_binary(), some_of(BYTES)),
        Kind("fixed binary", pa.binary(4), some_of([b"\0\0\0\0", b"\xff\xff\xff\xff", b"abcd"]), (ARROW, DUCKDB)),
        Kind("json", pa.json_(), some_of(['{"a": 1}', "[]", "null", '"日"']), (ARROW,)),
        Kind("dictionary of strings", pa.dictionary(pa.int32(), pa.string()), texts, (ARROW, POLARS, DUCKDB)),
        Kind("dictionary of ints", pa.dictionary(pa.int32(), pa.int64()), whole(64, True), (ARROW,)),
        Kind("binary_view", pa.binary_view(), some_of(BYTES), (ARROW, POLARS)),
        Kind("bool8", pa.bool8(), some_of([0, 1]), (ARROW,)),
        Kind(
            "enum",
            pa.string(),
            some_of(["b", "a", "", "日" * 30]),
            (DUCKDB,),
            cast=f"{{}}::enum('b', 'a', '', '{'日' * 30}')",
        ),
        Kind("json of DuckDB", pa.string(), some_of(['{"a":1}', "[]", "null", '"日"']), (DUCKDB,), cast="{}::json"),
        Kind("date64", pa.date64(), some_of(DAYS), (ARROW,)),
        Kind("date", pa.date32(), some_of([*DAYS, *DAYS_BEYOND]), (ARROW,)),
        Kind("date of years 0 to 10000", pa.date32(), some_of([*DAYS, *DAYS_BEYOND[:2]]), (DELTA_RS,)),
        Kind("date of years 1 to 9999", pa.date32(), some_of(DAYS)),
        Kind("timestamp[ms, UTC]", pa.timestamp("ms", "UTC"), instants("ms", False)),
        Kind("timestamp[ms]", pa.timestamp("ms"), instants("ms", False), (ARROW, POLARS, DUCKDB)),
        Kind("timestamp[s]", pa.timestamp("s"), instants("s", False), (ARROW, DUCKDB)),
        Kind("timestamp[s, UTC]", pa.timestamp("s", "UTC"), instants("s", False), (ARROW,)),
    ]
    for beyond, writers in ((False, EVERY), (True, (ARROW,))):
        kinds.append(Kind(f"timestamp[us, UTC]{beyond}", pa.timestamp("us", "UTC"), instants("us", beyond), writers))
        kinds.append(Kind(f"timestamp[us]{beyond}", pa.timestamp("us"), instants("us", beyond), writers))
    return kinds


SCALARS = _scalars()
REFUSED = [
    Kind("timestamp[ns]", pa.timestamp("ns"), some_of([0, 1000]), OF_FILES, True),
    Kind("timestamp[ns, UTC]", pa.timestamp("ns", "UTC"), some_of([0, 1000]), (ARROW, POLARS), True),
    Kind("time[us]", pa.time64("us"), some_of([0, 5]), OF_FILES, True),
    Kind("time[ms]", pa.time32("ms"), some_of([0, 5]), (ARROW,), True),
    Kind("time[ns]", pa.time64("ns"), some_of([0, 5000]), (ARROW, POLARS), True),
    Kind("time with zone", pa.time64("us"), some_of([0, 5]), (DUCKDB,), True, "{}::timetz"),
    Kind("duration", pa.duration("us"), some_of([0, 5]), OF_FILES, True),
    Kind("interval", pa.int32(), some_of([0, 5]), (DUCKDB,), True, "to_months({})"),
    Kind("variant", pa.int32(), some_of([0, 5]), (DUCKDB,), True, "{}::variant"),
    Kind("half float", pa.float16(), some_of([1.5, 0.0]), (ARROW, POLARS), True),
    Kind("uuid", pa.uuid(), some_of([b"0123456789abcdef"]), (ARROW, DUCKDB), True),
    Kind("null", pa.null(), some_of([None]), (ARROW, POLARS), True),
    Kind("decimal256(50,2)", pa.decimal256(50, 2), decimals(50, 2), (ARROW,), True),
]


def plain(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values in the plain form; None for null."""
    if isinstance(values, pa.ChunkedArray):
        return [value for chunk in values.chunks for value in plain(chunk)]
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(values.storage)
    if pt.is_dictionary(kind):
        return plain(values.dictionary_decode())
    if pt.is_date(kind):
        return list(values.cast(pa.date32()).cast(pa.int32()).to_pylist())
    if pt.is_timestamp(kind):
        times = MICROSECONDS[kind.unit]
        return [None if each is None else each * times for each in values.cast(pa.int64()).to_pylist()]
    if pt.is_floating(kind):
        return [None if each is None else number(each) for each in values.to_pylist()]
    if kind == pa.uint64():
        return [None if each is None else Decimal(each) for each in values.to_pylist()]
    if pt.is_struct(kind):
        members = [plain(each) for each in values.flatten()]
        return [
            row if valid.as_py() else None
            for row, valid in zip(zip(*members, strict=True), values.is_valid(), strict=True)
        ]
    if pt.is_map(kind):
        return [
            None if each is None else tuple(sorted(each))
            for each in _grouped(values, list(zip(*map(plain, (values.keys, values.items)), strict=True)))
        ]
    if pt.is_fixed_size_list(kind):
        return plain(values.cast(pa.list_(kind.value_type)))
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return plain(values.cast(pa.list_(kind.value_type)))
    if pt.is_list(kind) or pt.is_large_list(kind):
        return [None if each is None else tuple(each) for each in _grouped(values, plain(values.values))]
    return list(values.to_pylist())


def _grouped(values: Any, inside: list[Any]) -> list[list[Any] | None]:
    ends = values.offsets.to_pylist()
    return [inside[ends[at] : ends[at + 1]] if values[at].is_valid else None for at in range(len(values))]
