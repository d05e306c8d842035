"""A random table of another writer: its columns, its rows in files, and the options of the files."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.engine.foreign.kinds import ARROW, DELTA_RS, DUCKDB, POLARS, REFUSED, SCALARS, Kind, nested

_LOCAL_TIME = re.compile(r"timestamp\[\w+\]")
_OF_32_BITS = re.compile(r"int32|date32|time32")
WRITERS = (ARROW, POLARS, DUCKDB, DELTA_RS)
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
        fields = [each.with_type(pa.string()) if each.type == pa.string_view() else each for each in rows.schema]
        return rows.cast(pa.schema(fields))  # Arrow cannot filter views

    def only(self, column: str) -> Case:
        """Returns the same table with only that column and the ids."""
        files = tuple(each.select(["id", column]) for each in self.files)
        return replace(self, kinds={column: self.kinds[column]}, files=files)

    def __str__(self) -> str:
        kinds = {name: kind.name for name, kind in self.kinds.items()}
        return f"seed {self.seed}: {self.writer} {self.options} {self.properties} {kinds}"

    def write(self, folder: Path) -> None:
        """Writes the files; delta-rs writes a log too."""
        folder.mkdir(parents=True)
        for at, rows in enumerate(self.files):
            path = str(folder / f"{at}.parquet")
            match self.writer:
                case "pyarrow":
                    pq.write_table(rows, path, **self.options)
                case "polars":
                    pl.from_arrow(rows).write_parquet(path, **self.options)  # type: ignore[union-attr]
                case "duckdb":
                    with duckdb.connect() as connection:
                        connection.register("given", rows)
                        options = "".join(f", {name} {value}" for name, value in self.options.items())
                        connection.execute(f"copy (select * from given) to '{path}' (format parquet{options})")
                case _:
                    self._by_delta_rs(folder)
                    return

    def _by_delta_rs(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as plain:  # delta-rs rejects folders whose names a URL quotes
            for rows in self.files:
                deltalake.write_deltalake(plain, rows, mode="append", **self.options)
            shutil.copytree(plain, folder, dirs_exist_ok=True)


def drawn(seed: int) -> Case:
    """Returns the table of a seed."""
    chance = random.Random(seed)
    writer = chance.choice(WRITERS)
    known = [kind for kind in SCALARS if writer in kind.writers]
    chosen = [chance.choice(known) for _ in range(chance.choice((1, 2, 4)))]
    chosen += [nested(chance, writer) for _ in range(chance.choice((0, 1, 1, 2)))]
    refused = [kind for kind in REFUSED if writer in kind.writers]
    if refused and chance.random() < 0.1:
        chosen.append(chance.choice(refused))
    kinds = {f"c{at}": kind for at, kind in enumerate(chosen)}
    sizes = [chance.choice((1, 5, 20, 60)) for _ in range(chance.choice((1, 1, 2, 3)))]
    files = tuple(_file(chance, kinds, sum(sizes[:at]), size) for at, size in enumerate(sizes))
    options = _options(chance, writer)
    if any(_LOCAL_TIME.search(kind.name) for kind in chosen):
        options.pop("use_deprecated_int96_timestamps", None)  # as INT96 it would be an instant
    if any(_OF_32_BITS.search(str(kind.arrow)) for kind in chosen) and "parquet_version" in options:
        options["parquet_version"] = "v1"  # PyArrow cannot read differences of more than 32 bits in v2 pages
    if any(kind.refused for kind in chosen) and "version" in options:
        options["version"] = "2.6"  # other versions convert nanoseconds to microseconds
    return Case(seed, writer, kinds, files, options, chance.choice(PROPERTIES))


def _file(chance: random.Random, kinds: dict[str, Kind], start: int, size: int) -> pa.Table:
    ids = pa.array(range(start, start + size), pa.int64())
    return pa.table({"id": ids} | {name: kind.column(chance, size) for name, kind in kinds.items()})


def _options(chance: random.Random, writer: str) -> dict[str, Any]:
    def one(**options: Sequence[Any]) -> dict[str, Any]:
        return {name: chance.choice(values) for name, values in options.items()}

    match writer:
        case "pyarrow":
            return one(
                row_group_size=(1, 7, 100), use_dictionary=(True, False), write_statistics=(True, True, False),
                data_page_version=("1.0", "2.0"), version=("1.0", "2.4", "2.6"), write_page_index=(True, False),
                use_deprecated_int96_timestamps=(False, False, False, True), store_decimal_as_integer=(True, False),
                store_schema=(True, False), write_batch_size=(3, 1024),
            )  # fmt: skip
        case "polars":
            return one(
                row_group_size=(1, 7, 100), statistics=("full", True, False), compression=("zstd", "uncompressed")
            )
        case "duckdb":
            return one(row_group_size=(2048,), parquet_version=("v1", "v2"), compression=("snappy", "zstd"))
        case _:
            return {"configuration": {"delta.dataSkippingNumIndexedCols": "-1"}} if chance.random() < 0.5 else {}
