"""Tables that this engine's statements write, one for each feature and each rewrite, for other readers to open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_name
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.unit.engine.house import House

TABLE = "t"
DATABASE_FOLDER = "main"


@dataclass(frozen=True)
class FeatureTable:
    """A table with a feature: the statements on the table `t` that create it, and the traces of the feature in its
    folder.

    Args:
        texts: each occurs in some commit.
        files: patterns of names below the table's folder; each matches a file.
        prepare: creates the inputs of the statements, given the warehouse's folder.
    """

    name: str
    statements: tuple[str, ...]
    texts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    prepare: Callable[[Path], None] | None = None

    def build(self, house: House) -> Path:
        """Creates the table; returns its folder."""
        if self.prepare is not None:
            self.prepare(house.root)
        for statement in self.statements:
            house.sql(statement.replace("{root}", str(house.root)))
        folder = house.root / DATABASE_FOLDER / TABLE
        log = "".join(path.read_text() for path in sorted((folder / LOG_FOLDER).glob("*.json")))
        assert [text for text in self.texts if text not in log] == []
        assert [pattern for pattern in self.files if not any(folder.glob(pattern))] == []
        return folder


def parquet_folder(root: Path) -> None:
    """Creates a partitioned folder of Parquet files, as other programs write it."""
    for day, ids in (("2024-01-01", [1, 2]), ("2024-01-02", [3])):
        folder = root / DATABASE_FOLDER / TABLE / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{n}" for n in ids]}), folder / "a.parquet"
        )


def table_with_void(root: Path) -> None:
    """Creates a table with a column without a type, as other engines create them."""
    log = root / DATABASE_FOLDER / TABLE / LOG_FOLDER
    log.mkdir(parents=True)
    schema = StructType((StructField("id", PrimitiveType("integer")), StructField("nothing", PrimitiveType("void"))))
    actions = (Protocol(1, 2), Metadata("7c4ab2a5-27b5-4a9e-8a1c-0f4f6a8a6c11", schema.to_json()))
    (log / commit_name(0)).write_bytes(serialize(actions))


def _with(*properties: str) -> str:
    return (
        "tblproperties ("
        + ", ".join(f"'{name}' = '{value}'" for name, value in (p.split("=") for p in properties))
        + ")"
    )


_CDF, _DV = "delta.enableChangeDataFeed=true", "delta.enableDeletionVectors=true"
_BY_NAME = "delta.columnMapping.mode=name"
_ROWS = "insert into t select id, concat('n', id), id * 10 from range(20)"
_COLUMNS = "(id bigint, name string, size bigint)"
_MERGE = (
    "merge into t using (select id, 'm' as name, 0L as size from range(15, 25)) s on t.id = s.id "
    "when matched and s.id = 16 then delete when matched then update set * when not matched then insert *"
)
_FEW_CHANGES = (_ROWS, _MERGE)
_CHANGES = (_ROWS, "delete from t where id % 5 = 0", "update t set size = -size where id % 7 = 1", _MERGE)


def _changed(
    name: str, *properties: str, more: str = "", texts: tuple[str, ...] = (), files: tuple[str, ...] = ()
) -> FeatureTable:
    create = f"create table t {_COLUMNS} {more} {_with(*properties)}"
    return FeatureTable(name, (create, *_CHANGES), texts, files)


FEATURE_TABLES = (
    FeatureTable("plain", (f"create table t {_COLUMNS}", *_CHANGES), ('"operation":"MERGE"',)),
    FeatureTable(
        "types",
        (
            "create table t as select id, cast(id as byte) b, cast(id as short) s, cast(id as int) i, "
            "cast(id as float) f, "
            "cast(id as double) d, cast(id as decimal(38, 10)) n, id > 1 as yes, cast(id as string) text, "
            "cast(cast(id as string) as binary) bytes, date'1500-02-28' + cast(id as int) as day, "
            "timestamp'1969-12-31 23:59:59.999999Z' + make_interval(0, 0, 0, cast(id as int)) as at, "
            "array(id, null) as list, map('k', id) as pairs, "
            "named_struct('x', id, 'y', array(named_struct('z', id))) as deep "
            "from range(3)",
            "insert into t (id) values (9)",
        ),
    ),
    FeatureTable(
        "partitioned",
        (
            "create table t (id int, text string, day date, at timestamp, n decimal(5, 2), yes boolean) "
            "partitioned by (text, day, at, n, yes)",
            "insert into t values "
            "(1, 'a/b=c%d e', date'2024-02-29', timestamp'2024-01-01 12:00:00.000001Z', 1.50, true), "
            "(2, 'é:[x]*?#', date'0001-01-01', timestamp'1969-12-31 23:59:59Z', -0.05, false), "
            "(3, null, null, null, null, null), (4, '''\"', date'9999-12-31', null, 0, null)",
            "insert into t values "
            "(5, 'a/b=c%d e', date'2024-02-29', timestamp'2024-01-01 12:00:00.000001Z', 1.50, true)",
            "update t set id = id + 10 where text = 'a/b=c%d e'",
        ),
        ('"partitionColumns":["text",',),
    ),
    FeatureTable(
        "check constraint",
        (f"create table t {_COLUMNS}", "alter table t add constraint small check (size < 1000)", *_FEW_CHANGES),
        ("delta.constraints.small",),
    ),
    FeatureTable(
        "not null",
        ("create table t (id bigint not null, name string, size bigint)", *_FEW_CHANGES),
        (r"\"nullable\":false",),
    ),
    FeatureTable(
        "default columns",
        (
            "create table t (id bigint, name string default 'none', size bigint)",
            "insert into t (id) values (1), (2)",
            *_FEW_CHANGES,
        ),
        ("CURRENT_DEFAULT", "allowColumnDefaults"),
    ),
    FeatureTable(
        "generated columns",
        (
            "create table t (id bigint, name string, size bigint, twice bigint generated always as (size * 2))",
            "insert into t (id, name, size) select id, concat('n', id), id from range(9)",
            "update t set size = 7 where id = 1",
        ),
        ("delta.generationExpression",),
    ),
    FeatureTable(
        "append only", (f"create table t {_COLUMNS} {_with('delta.appendOnly=true')}", _ROWS), ("delta.appendOnly",)
    ),
    FeatureTable(
        "column mapping",
        (
            "create table t (id bigint, `a b,c;{}()=` string, gone int, part string) partitioned by (part) "
            + _with(_BY_NAME),
            "insert into t values (1, 'x', 1, 'p q'), (2, 'y', 2, 'p/q')",
            "alter table t rename column `a b,c;{}()=` to name",
            "alter table t drop column gone",
            "alter table t add column gone string",
            "alter table t rename column part to kind",
            "insert into t (id, name, kind, gone) values (3, 'z', 'r', 'back')",
            "delete from t where id = 1",
        ),
        ("delta.columnMapping.physicalName",),
    ),
    _changed("deletion vectors", _DV, texts=('"deletionVector":{"storageType"',), files=("*.bin",)),
    _changed("deletion vectors and column mapping", _DV, _BY_NAME, texts=('"deletionVector":{"storageType"',)),
    FeatureTable(
        "deletion vectors in partitions",
        (
            f"create table t (id bigint, kind string) partitioned by (kind) {_with(_DV)}",
            "insert into t select id, if(id % 2 = 0, 'a b', null) from range(20)",
            "delete from t where id in (2, 3)",
        ),
        ('"deletionVector":{"storageType"',),
    ),
    _changed("change data feed", _CDF, texts=('"cdc":{',), files=("_change_data/**/*.parquet",)),
    _changed("change data feed and deletion vectors", _CDF, _DV, texts=('"cdc":{', '"deletionVector":{"storageType"')),
    _changed("in-commit timestamps", "delta.enableInCommitTimestamps=true", texts=('"inCommitTimestamp":',)),
    _changed("classic checkpoint", "delta.checkpointInterval=2", files=(f"{LOG_FOLDER}/*.checkpoint.parquet",)),
    _changed(
        "V2 checkpoint",
        "delta.checkpointPolicy=v2",
        "delta.checkpointInterval=2",
        texts=('"v2Checkpoint"',),
        files=(f"{LOG_FOLDER}/*.checkpoint.*-*.*", f"{LOG_FOLDER}/_last_checkpoint"),
    ),
    _changed(
        "statistics as structs alone",
        "delta.checkpoint.writeStatsAsStruct=true",
        "delta.checkpoint.writeStatsAsJson=false",
        "delta.checkpointInterval=2",
        more="partitioned by (name)",
        files=(f"{LOG_FOLDER}/*.checkpoint.parquet",),
    ),
    _changed("row tracking", "delta.enableRowTracking=true", texts=('"rowTracking"', '"baseRowId":')),
    FeatureTable(
        "timestamp without time zone",
        (
            "create table t (id int, at timestamp_ntz)",
            "insert into t values (1, timestamp_ntz'2024-03-10 02:30:00.000001'), (2, null)",
            "insert into t values (3, timestamp_ntz'0001-01-01 00:00:00')",
            "delete from t where at < timestamp_ntz'1000-01-01 00:00:00'",
        ),
        ('"timestampNtz"',),
    ),
    FeatureTable(
        "type widening",
        (
            f"create table t (id int, n decimal(5, 2), f float) {_with('delta.enableTypeWidening=true')}",
            "insert into t values (1, 1.25, 0.5), (2, 2.5, 1.5)",
            "alter table t alter column id type bigint",
            "alter table t alter column n type decimal(12, 4)",
            "alter table t alter column f type double",
            "insert into t values (5000000000, 12345678.1234, 0.1)",
            "delete from t where id = 2",
        ),
        ("delta.typeChanges", '"typeWidening"'),
    ),
    FeatureTable(
        "void column",
        ("insert into t values (1, null)", "insert into t (id) values (2)", "update t set id = 3 where id = 2"),
        (r"\"type\":\"void\"",),
        prepare=table_with_void,
    ),
    FeatureTable(
        "variant",
        ("create table t as select id, parse_json(concat('{\"a\":', id, '}')) as v from range(3)",),
        ('"variantType"',),
    ),
    FeatureTable("optimized", (f"create table t {_COLUMNS}", _ROWS, _ROWS, "optimize t"), ('"operation":"OPTIMIZE"',)),
    FeatureTable(
        "optimized with deletion vectors",
        (f"create table t {_COLUMNS} {_with(_DV)}", *_FEW_CHANGES, "optimize t"),
        ('"operation":"OPTIMIZE"', '"deletionVector":{"storageType"'),
    ),
    FeatureTable(
        "Z-ordered",
        (f"create table t {_COLUMNS}", *_FEW_CHANGES, "optimize t zorder by (size, name)"),
        ('"operation":"OPTIMIZE"', "zOrderBy"),
    ),
    FeatureTable(
        "restored",
        (f"create table t {_COLUMNS} {_with(_DV)}", *_CHANGES, "restore table t to version as of 2"),
        ('"operation":"RESTORE"',),
    ),
    FeatureTable(
        "cloned",
        (
            f"create table source {_COLUMNS} {_with(_DV)}",
            *(each.replace(" t ", " source ").replace("t.id", "source.id") for each in _FEW_CHANGES),
            "create table t deep clone source",
            "insert into t values (99, 'own', 0)",
        ),
        ('"operation":"CLONE"',),
    ),
    FeatureTable(
        "shallow clone",
        (
            f"create table source {_COLUMNS}",
            _ROWS.replace("into t", "into source"),
            "create table t shallow clone source",
            "delete from t where id = 3",
        ),
        ('"operation":"CLONE"',),
    ),
    FeatureTable(
        "converted",
        (
            "convert to delta parquet.`{root}/main/t` partitioned by (day date)",
            "insert into t (id, name, day) values (4, 'n4', date'2024-01-03')",
            "update t set name = 'changed' where id = 1",
        ),
        ('"operation":"CONVERT"',),
        prepare=parquet_folder,
    ),
    FeatureTable(
        "vacuumed",
        (
            f"create table t {_COLUMNS}",
            *_FEW_CHANGES,
            "set silt.retentionDurationCheck.enabled = false",
            "vacuum t retain 0 hours",
        ),
        ('"operation":"VACUUM END"',),
    ),
    FeatureTable(
        "replaced",
        (
            f"create table t {_COLUMNS}",
            _ROWS,
            "create or replace table t as select id as key, date'2024-01-01' as day from range(3)",
        ),
        ('"operation":"CREATE OR REPLACE TABLE AS SELECT"',),
    ),
)
"""A table for each writer feature, and for each statement that rewrites a whole table."""
