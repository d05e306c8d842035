"""A random table of another writer: its columns, its rows in files, and the options of the files."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.files.plain_types import plain_type
from tests.unit.engine.foreign.kinds import ARROW, DELTA_RS, DUCKDB, POLARS, REFUSED, SCALARS, SPARK, Kind
from tests.unit.engine.foreign.legacy import make_legacy
from tests.unit.engine.foreign.nested import around, nested
from tests.unit.engine.foreign.partitions import NAME, PARTITIONING, drawn_values, folder_name

_LOCAL_TIME = re.compile(r"timestamp\[\w+\]")
_OF_32_BITS = re.compile(r"u?int(8|16|32)|date32|time32|date64")
WRITERS = (ARROW, ARROW, POLARS, DUCKDB, DELTA_RS, SPARK)
_VIEWS = (pa.string_view(), pa.binary_view())
_LEGACY = "legacy"
_INT96 = "use_deprecated_int96_timestamps"
_EXACT: Mapping[str, Mapping[str, Any]] = {ARROW: {"version": "2.6", "store_schema": True, _LEGACY: "", _INT96: False}}
"""The options with which a writer keeps the types of refused kinds."""
PROPERTIES = ("", "'delta.enableDeletionVectors' = 'true'", "'delta.enableChangeDataFeed' = 'true'")


@dataclass(frozen=True)
class Case:
    """One table.

    Attributes:
        kinds: by column.
        files: the rows of each file.
        options: of the writer.
        properties: that the table gets when it is created.
    """

    seed: int
    writer: str
    kinds: dict[str, Kind]
    files: tuple[pa.Table, ...]
    options: dict[str, Any]
    properties: str

    @property
    def rows(self) -> pa.Table:
        rows = pa.concat_tables(self.files)
        fields = [each.with_type(plain_type(each.type) if each.type in _VIEWS else each.type) for each in rows.schema]
        return rows.cast(pa.schema(fields))  # Arrow cannot filter views

    @property
    def has_int96(self) -> bool:
        """Whether timestamps have Parquet's deprecated type of 96 bits."""
        return bool(self.options.get(_INT96)) or "INT96" in self.options.values()

    def only(self, column: str) -> Case:
        """Returns the same table with only that column and the ids."""
        kept = [name for name in self.kinds if name in (NAME, column)]
        files = tuple(each.select(["id", *kept]) for each in self.files)
        return replace(self, kinds={name: self.kinds[name] for name in kept}, files=files)

    @property
    def partitioning(self) -> str:
        """Returns the clause of CONVERT; an empty text if the files lie in no folders of partitions."""
        return f"partitioned by ({NAME} {PARTITIONING[self.kinds[NAME].name]})" if NAME in self.kinds else ""

    def __str__(self) -> str:
        kinds = {name: kind.name for name, kind in self.kinds.items()}
        return f"seed {self.seed}: {self.writer} {self.options} {self.properties} {kinds}"

    def write(self, folder: Path, spark: SparkSession) -> None:
        """Writes the files; delta-rs writes a log too."""
        folder.mkdir(parents=True)
        if self.writer == DELTA_RS:
            self._by_delta_rs(folder)
            return
        for at, rows in enumerate(self.files):
            path = folder / f"{at}.parquet"
            if NAME in self.kinds:
                path = folder / folder_name(rows[NAME]) / path.name
                path.parent.mkdir(exist_ok=True)
                rows = rows.drop_columns(NAME)
            match self.writer:
                case "pyarrow":
                    self._by_pyarrow(rows, path)
                case "polars":
                    pl.from_arrow(rows).write_parquet(path, **self.options)  # type: ignore[union-attr]
                case "duckdb":
                    self._by_duckdb(rows, path)
                case _:
                    self._by_spark(rows, path, spark)

    def _by_pyarrow(self, rows: pa.Table, path: Path) -> None:
        options = {name: value for name, value in self.options.items() if name != _LEGACY}
        pq.write_table(rows, path, **options)
        if self.options[_LEGACY]:
            make_legacy(path, self.options[_LEGACY])

    def _by_duckdb(self, rows: pa.Table, path: Path) -> None:
        casts = [f"{kind.cast.format(name)} as {name}" for name, kind in self.kinds.items() if kind.cast]
        replaced = f"replace ({', '.join(casts)})" if casts else ""
        options = "".join(f", {name} {value}" for name, value in self.options.items())
        with duckdb.connect() as connection:
            connection.register("given", rows)
            connection.execute(f"copy (select * {replaced} from given) to '{path}' (format parquet{options})")

    def _by_delta_rs(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as plain:  # delta-rs rejects folders whose names a URL quotes
            for rows in self.files:
                by = [NAME] if NAME in self.kinds else None
                deltalake.write_deltalake(plain, rows, mode="append", partition_by=by, **self.options)
            shutil.copytree(plain, folder, dirs_exist_ok=True)

    def _by_spark(self, rows: pa.Table, path: Path, spark: SparkSession) -> None:
        session = spark.newSession()
        for name, value in self.options.items():
            session.conf.set(name, value)
        with tempfile.TemporaryDirectory() as folder:
            session.createDataFrame(rows).coalesce(1).write.mode("overwrite").parquet(folder)
            (written,) = Path(folder).glob("*.parquet")
            shutil.move(written, path)


def drawn(seed: int) -> Case:
    """Returns the table of a seed."""
    chance = random.Random(seed)
    writer = chance.choice(WRITERS)
    options = _options(chance, writer)
    known = [kind for kind in SCALARS if writer in kind.writers and _suits(kind, options)]
    legacy = bool(options.get(_LEGACY))
    chosen = [chance.choice(known) for _ in range(chance.choice((2, 4, 8)))]
    chosen += [nested(chance, writer, known, required=legacy) for _ in range(chance.choice((0, 1, 2)))]
    refused = [kind for kind in REFUSED if writer in kind.writers]
    if refused and chance.random() < 0.1:
        chosen.append(_refused(chance, writer, chance.choice(refused), known))
        options |= _EXACT.get(writer, {})
    kinds = {f"c{at}": kind for at, kind in enumerate(chosen)}
    sizes = [chance.choice((1, 5, 20, 60)) for _ in range(chance.choice((1, 1, 2, 3)))]
    files = tuple(_file(chance, kinds, sum(sizes[:at]), size) for at, size in enumerate(sizes))
    if chance.random() < 0.25:
        kind, values = drawn_values(chance, writer, len(files))
        kinds[NAME] = kind
        files = tuple(
            rows.append_column(NAME, kind.array([value] * rows.num_rows))
            for rows, value in zip(files, values, strict=True)
        )
    return Case(seed, writer, kinds, files, options, chance.choice(PROPERTIES))


def _refused(chance: random.Random, writer: str, kind: Kind, known: Sequence[Kind]) -> Kind:
    inside = not kind.cast and not isinstance(kind.arrow, pa.BaseExtensionType)
    return around(chance, writer, kind, known) if inside and chance.random() < 0.5 else kind


def _suits(kind: Kind, options: Mapping[str, Any]) -> bool:
    """Returns whether a file with these options has the kind's values as they are given."""
    as_instants = options.get(_INT96) or options.get(_LEGACY) or "spark.sql.parquet.outputTimestampType" in options
    if _LOCAL_TIME.search(kind.name) and as_instants:
        return False
    of_32_bits = kind.arrow.precision < 10 if pt.is_decimal(kind.arrow) else _OF_32_BITS.search(str(kind.arrow))
    # PyArrow cannot read differences of more than 32 bits in v2 pages of DuckDB.
    return options.get("parquet_version") != "v2" or not of_32_bits


def _file(chance: random.Random, kinds: dict[str, Kind], start: int, size: int) -> pa.Table:
    ids = pa.array(range(start, start + size), pa.int64())
    return pa.table({"id": ids} | {name: kind.column(chance, size) for name, kind in kinds.items()})


def _options(chance: random.Random, writer: str) -> dict[str, Any]:
    def one(**options: Sequence[Any]) -> dict[str, Any]:
        return {name: chance.choice(values) for name, values in options.items()}

    match writer:
        case "pyarrow":
            found = one(
                row_group_size=(1, 7, 100), use_dictionary=(True, False), write_statistics=(True, True, False),
                data_page_version=("1.0", "2.0"), version=("1.0", "2.4", "2.6"), write_page_index=(True, False),
                use_deprecated_int96_timestamps=(False, False, False, True), store_decimal_as_integer=(True, False),
                store_schema=(True, False), write_batch_size=(3, 1024), legacy=("UTF8", "ENUM", "", ""),
            )  # fmt: skip
            return found | ({"store_schema": False} if found[_LEGACY] else {})
        case "polars":
            return one(
                row_group_size=(1, 7, 100), statistics=("full", True, False), compression=("zstd", "uncompressed")
            )
        case "duckdb":
            return one(row_group_size=(2048,), parquet_version=("v1", "v2"), compression=("snappy", "zstd"))
        case "delta-rs":
            return {"configuration": {"delta.dataSkippingNumIndexedCols": "-1"}} if chance.random() < 0.5 else {}
        case _:
            return {
                "spark.sql.parquet.writeLegacyFormat": chance.choice(("true", "false")),
                "spark.sql.parquet.outputTimestampType": chance.choice(("TIMESTAMP_MICROS", "INT96")),
                "spark.sql.parquet.compression.codec": chance.choice(("zstd", "none")),
                "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
                "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
            }
