"""A table with columns of each type, and random numbers in each place of its log: in statistics, partition values,
checkpoints and other fields.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.features import needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.schema import (
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.corpus.mutations import Files
from tests.memory_store import MemoryStore
from tests.security.fuzz_in_memory import Copies
from tests.security.logs.numbers import NUMBERS

NAME: Final = RelationName("silt", "main", "hostile")
FOLDER: Final = "main/hostile"
_VALUES: Final[Mapping[str, tuple[Any, Any, str]]] = {
    "byte": (1, PrimitiveType("byte"), "1"),
    "short": (2, PrimitiveType("short"), "2"),
    "integer": (3, PrimitiveType("integer"), "3"),
    "long": (4, PrimitiveType("long"), "4"),
    "float": (1.5, PrimitiveType("float"), "1.5"),
    "double": (2.5, PrimitiveType("double"), "2.5"),
    "price": (1.25, DecimalType(12, 2), "1.25"),
    "wide": (1.5, DecimalType(38, 10), "1.5"),
    "day": ("2024-01-01", PrimitiveType("date"), "date '2024-01-01'"),
    "at": ("2024-01-01T00:00:00.000Z", PrimitiveType("timestamp"), "timestamp '2024-01-01'"),
    "local": ("2024-01-01T00:00:00.000", PrimitiveType("timestamp_ntz"), "timestamp_ntz '2024-01-01'"),
    "text": ("a", PrimitiveType("string"), "'a'"),
}
"""A column of each type: a value in statistics, the type, and a literal."""

FILES: Final = ("a", "b", "c", "d")
MODIFIED_MS: Final = 1_700_000_000_000
_WITH_CHECKPOINT: Final = 0.1
_ARROW: Final = {name: arrow_type(kind) for name, (_, kind, _) in _VALUES.items()}
_NUMBER: Final = re.compile(r"(?<=[:\[, \"])-?\d+(?:\.\d+)?(?=[,}\] \"])")
_LIMITS: Final = (7, 8, 15, 16, 31, 32, 53, 63, 64, 127, 128, 255)
_OTHERS: Final = ("true", "null", '"NaN"', "[1]", "{}", '""', '"1e5"', "-0.0", "1e-7", '"0x10"', '"1_000"', '"\u0661"')


def number(chance: random.Random) -> str:
    """Returns a text that takes the place of a number; it need not be JSON."""
    match chance.randrange(7):
        case 0:
            return chance.choice(NUMBERS)
        case 1:
            return chance.choice(_OTHERS)
        case 2:
            return str(chance.choice((1, -1)) * 2 ** chance.choice(_LIMITS) + chance.choice((-1, 0, 1)))
        case 3:
            return str(chance.choice((1, -1)) * 10 ** chance.randrange(80) + chance.choice((-1, 0, 1)))
    sign, digits = chance.choice(("", "-", "+")), "".join(chance.choices("0123456789", k=chance.choice((1, 5, 20, 60))))
    fraction = chance.choice(("", f".{chance.randrange(10**9)}", "." + "0" * chance.choice((1, 40, 4_000)) + "1", "."))
    exponent = chance.choice((0, 5, 38, 39, 308, 400, 5_000, 10**6, 10**9, 2**31, 10**18, 2**63, 10**30))
    return f"{sign}{digits}{fraction}" + chance.choice(("", f"e{exponent}", f"E-{exponent}", f"e+{exponent}"))


@dataclass(frozen=True)
class Kind:
    """The columns of a table for a type: a column, a member of a struct, and a partition column."""

    name: str

    @property
    def value(self) -> Any:
        """A value in statistics."""
        return _VALUES[self.name][0]

    @property
    def schema(self) -> StructType:
        inner = StructField("x", _VALUES[self.name][1])
        return StructType((inner, replace(inner, name="p"), StructField("s", StructType((inner,)))))

    @property
    def condition(self) -> str:
        """A condition on each of the columns."""
        return " or ".join(f"{column} >= {_VALUES[self.name][2]}" for column in ("x", "p", "s.x"))

    @property
    def statistics(self) -> dict[str, Any]:
        bounds, nulls = ({"x": value, "s": {"x": value}} for value in (self.value, 0))
        return {"numRecords": 3, "minValues": bounds, "maxValues": bounds, "nullCount": nulls}

    @property
    def content(self) -> bytes:
        """A data file, whose values are all null."""
        inner = arrow_type(_VALUES[self.name][1])
        schema = pa.schema([("x", inner), ("s", pa.struct([("x", inner)]))])
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([{"x": None, "s": None}] * 3, schema), sink)
        return sink.getvalue()

    def add(self, name: str) -> AddFile:
        """Returns the action that adds the data file."""
        stats = json.dumps(self.statistics)
        return AddFile(name, {"p": str(self.value)}, len(self.content), MODIFIED_MS, stats=stats)

    def table(self) -> MemoryStore:
        """Returns a warehouse with a table that has a checkpoint and later commits."""
        store = MemoryStore(SystemClock())
        store.make_folder(f"{FOLDER}/{LOG_FOLDER}")
        store.put("main/_schema.json", b"{}")
        properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpointInterval": "1000"}
        metadata = Metadata("a", self.schema.to_json(), ("p",), properties, created_time=1)
        protocol = upgraded(Protocol(1, 2), needed_features(self.schema, properties))
        log = DeltaLog(store.child(FOLDER), str(NAME), SystemClock())
        for name in FILES:
            log.store.put(name, self.content)
        adds = [self.add(name) for name in FILES]
        first: list[Action] = [CommitInfo(1, "WRITE"), protocol, metadata, *adds[:2], SetTransaction("app", 7, 5)]
        log.store.put_if_absent(commit_path(0), serialize(first))
        log.checkpoint(log.snapshot())
        for add in adds[2:]:
            append(log, add)
        return store


KINDS: Final = tuple(map(Kind, _VALUES))


def append(log: DeltaLog, add: AddFile) -> None:
    changes = Changes(Operation("WRITE", metrics={"numOutputRows": "3"}), (add,))
    commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())


@dataclass(frozen=True)
class Logs:
    """A table's log in memory. Each seed gets a damaged copy of it."""

    kind: Kind

    @cached_property
    def original(self) -> MemoryStore:
        """The undamaged warehouse."""
        return self.kind.table()

    @cached_property
    def without_checkpoint(self) -> MemoryStore:
        """The same warehouse, whose log is read from its commits."""
        store = Copies.copy(self.original)
        for name in (self.checkpoint[0], "_last_checkpoint"):
            store.delete(f"{FOLDER}/{LOG_FOLDER}/{name}")
        return store

    def base(self, chance: random.Random, name: str) -> MemoryStore:
        """Returns a copy to be damaged; a log with a checkpoint takes longer to read."""
        has_checkpoint = name.endswith(".parquet") or name.startswith("_") or chance.random() < _WITH_CHECKPOINT
        return Copies.copy(self.original if has_checkpoint else self.without_checkpoint)

    @cached_property
    def files(self) -> Files:
        """The files of the log by name."""
        folder = f"{FOLDER}/{LOG_FOLDER}"
        found = self.original.list_from(folder)
        return {each.name: self.original.read(f"{folder}/{each.name}") for each in found}

    @cached_property
    def checkpoint(self) -> tuple[str, list[dict[str, Any]], pa.Schema]:
        """The name, the rows and the columns of the checkpoint."""
        name = next(name for name in self.files if name.endswith(".parquet"))
        table = pq.read_table(io.BytesIO(self.files[name]))
        return name, table.to_pylist(), table.schema

    def damaged(self, chance: random.Random) -> tuple[str, bytes, str]:
        """Puts a number into a file of the log; returns the file's name, its content, and a description."""
        kind = chance.choice((self._in_statistics, self._in_partition, self._in_checkpoint, self._anywhere))
        return kind(chance)

    def _in_statistics(self, chance: random.Random) -> tuple[str, bytes, str]:
        put, places = number(chance), list(_places(self.kind.statistics))
        place = chance.choice(places)
        name = self._commit(chance)
        text = json.dumps(_with(self.kind.statistics, place, "@")).replace('"@"', put)
        return name, self._with_add(name, "stats", text), f"{put[:60]} as {place} in {name}"

    def _in_partition(self, chance: random.Random) -> tuple[str, bytes, str]:
        put, name = number(chance), self._commit(chance)
        return name, self._with_add(name, "partitionValues", {"p": put}), f"{put[:60]} as the partition in {name}"

    def _in_checkpoint(self, chance: random.Random) -> tuple[str, bytes, str]:
        name, rows, schema = self.checkpoint
        rows = copy.deepcopy(rows)
        places = [place for place in _places(rows) if place[-1] not in ("path", "schemaString")]
        place = chance.choice(places)
        put = _of_arrow(_type_at(schema, place), chance)
        if place[-1] == "stats":
            inner = chance.choice(list(_places(self.kind.statistics)))
            put = json.dumps(_with(self.kind.statistics, inner, "@")).replace('"@"', number(chance))
        try:
            table = pa.Table.from_pylist(_with(rows, place, put), schema)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return self._in_statistics(chance)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        return name, sink.getvalue(), f"{str(put)[:60]} as {place} in {name}"

    def _anywhere(self, chance: random.Random) -> tuple[str, bytes, str]:
        name = chance.choice([name for name in self.files if not name.endswith(".parquet")])
        text, put = self.files[name].decode(), number(chance)
        found = chance.choice([*_NUMBER.finditer(text)])
        return (
            name,
            (text[: found.start()] + put + text[found.end() :]).encode(),
            f"{put[:60]} at {found.start()} in {name}",
        )

    def _commit(self, chance: random.Random) -> str:
        return chance.choice([name for name in self.files if name.endswith(".json") and name[0] == "0"])

    def _with_add(self, name: str, key: str, value: Any) -> bytes:
        lines = [json.loads(line) for line in self.files[name].splitlines()]
        next(line["add"] for line in lines if "add" in line)[key] = value
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value that contains no other."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*above, key))
    else:
        yield above


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Sets the value at a path in place, and returns the whole."""
    holder = value
    for key in place[:-1]:
        holder = holder[key]
    if isinstance(holder, tuple):
        return value
    holder[place[-1]] = new
    return value


def _type_at(schema: pa.Schema, place: tuple[Any, ...]) -> pa.DataType:
    """Returns the type of a value of a checkpoint's rows."""
    found = schema.field(place[1]).type
    for key in place[2:]:
        if pa.types.is_map(found):
            return found.item_type
        found = found.field(key).type if pa.types.is_struct(found) else found.value_type
    return found


def _of_arrow(kind: pa.DataType, chance: random.Random) -> Any:
    """Returns an extreme value of a type."""
    if pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        bits = 32 if pa.types.is_date(kind) else kind.bit_width
        return chance.choice((1, -1)) * 2 ** chance.randrange(bits - 1) - chance.choice((0, 1))
    if pa.types.is_floating(kind):
        return chance.choice((float("nan"), float("inf"), float("-inf"), 1e308, -5e-324, -0.0))
    if pa.types.is_decimal(kind):
        return Decimal(10 ** chance.randrange(kind.precision) - 1).scaleb(-kind.scale)
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    return None if chance.random() < 0.2 else number(chance)
