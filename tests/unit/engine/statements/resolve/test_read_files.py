"""`read_files` reads files that belong to no table, anywhere in a statement."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.commands.spark.file_formats import check_options
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataRejectedError,
    FilesNotFoundError,
    InvalidArgumentError,
    InvalidStatementError,
    RelationNotFoundError,
    StatementSyntaxError,
    TableDamagedError,
)
from tests.unit.engine.house import House


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A folder with two CSV files and a file of JSON lines."""
    folder = tmp_path / "it's files"
    folder.mkdir()
    (folder / "a.csv").write_text("id,zip,day\n1,00501,2026-03-01\n2,12345,\n")
    (folder / "b.csv").write_text("id,zip,day\n3,54321,2026-03-02\n")
    (folder / "events.jsonl").write_text('{"id": 1, "at": {"x": 1}}\n{"id": 2, "tags": ["a"]}\n')
    return folder


def text_of(path: Path) -> str:
    return str(path).replace("'", "\\'")


def test_hinted_columns_get_their_types_by_name_and_other_types_are_inferred(house: House, orders: Path) -> None:
    call = f"read_files('{text_of(orders)}/*.csv', header => true, schemaHints => 'ZIP varchar(5), id bigint')"
    frame = house.sql(f"select * from {call}")
    assert frame.dtypes == [("id", "bigint"), ("zip", "string"), ("day", "date")]
    assert house.rows(f"select zip, day from {call} as f where f.id <> 3") == [
        ("00501", datetime.date(2026, 3, 1)),
        ("12345", None),
    ]
    inferred = house.sql(f"select zip from read_files('{text_of(orders)}/*.csv', header => true)")
    assert inferred.dtypes == [("zip", "int")]


def test_a_hinted_column_may_be_absent_from_json_and_not_from_csv(house: House, orders: Path) -> None:
    events = f"read_files('{text_of(orders)}/events.jsonl', schemaHints => 'id int, note string')"
    assert house.sql(f"select * from {events}").dtypes == [
        ("at", "struct<x:bigint>"),
        ("id", "int"),
        ("tags", "array<string>"),
        ("note", "string"),
    ]
    with pytest.raises(ColumnNotFoundError, match=r"`note` does not exist in .*they have `id`, `zip`, `day`"):
        house.sql(f"select * from read_files('{text_of(orders)}/a.csv', header => true, schemaHints => 'note string')")


def test_tables_and_views_can_be_created_from_files_and_tables(house: House, orders: Path) -> None:
    files = f"'{text_of(orders)}/*.csv', header => 'true'"
    call = f"read_files({files}, format => 'csv', schema => 'zip string, id int, day date')"
    hinted = f"read_files({files}, schemaHints => 'zip string')"
    house.sql("create table prices as select 1 as id, 9 as price")
    house.sql(f"create table joined as select p.price, f.zip from {hinted} f join prices p using (id)")
    assert house.rows("select * from joined") == [(9, "00501")]
    house.sql(f"create view seen as select id, zip from {hinted}")
    house.sql("create temporary view passing as select max(id) as last from seen")
    assert house.another().rows("select count(*) from seen") == [(3,)]
    (orders / "c.csv").write_text("id,zip,day\n4,1,\n")
    assert house.rows("select last from passing") == [(4,)]
    assert house.rows(f"select count(*) from prices where id in (select id from {hinted})") == [(1,)]
    # The header has the columns in another order; by default, Spark would return values under wrong names.
    with pytest.raises(Exception, match=r"(?i)header|schema"):
        house.rows(f"select zip from {call}")


def test_errors_about_missing_and_unreadable_files_contain_the_call(house: House, orders: Path) -> None:
    place = text_of(orders)
    with pytest.raises(FilesNotFoundError, match=r"no files to read at `.*/none\.csv`.*/\* source raw\.none \*/"):
        house.sql(f"select * from read_files('{place}/none.csv', header => true /* source raw.none */)")
    with pytest.raises(FilesNotFoundError):
        house.sql(f"select * from read_files('{place}/*.parquet')")
    with pytest.raises(InvalidStatementError, match=r"the format .* is not clear from the ending.*Give the `format`"):
        house.sql(f"select * from read_files('{place}')")
    with pytest.raises(InvalidStatementError, match=r"read_files\(.*\) cannot be read \(.*nonsense"):
        house.sql(f"select * from read_files('{place}', format => 'nonsense')")
    with pytest.raises(InvalidStatementError, match=r"cannot be read|not a list of columns"):
        house.sql(f"select * from read_files('{place}/a.csv', schema => 'id int name')")


def test_a_value_of_another_type_raises_an_error_unless_an_option_allows_it(house: House, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id\n1\nx\n")
    call = f"read_files('{tmp_path}/bad.csv', header => true, schemaHints => 'id int'"
    with pytest.raises(DataRejectedError, match=r"the file .*/bad\.csv cannot be read with the declared columns"):
        house.sql(f"create table strict as select * from {call})")
    assert house.rows(f"select * from {call}, mode => 'PERMISSIVE')") == [(1,), (None,)]


def test_quotes_are_doubled_within_quotes(house: House, tmp_path: Path) -> None:
    (tmp_path / "quotes.csv").write_text('id,text\n1,"it\'s a ""q"", so"\n2,"a ""b"" c"\n3,"end\\"\n')
    call = f"read_files('{tmp_path}/quotes.csv', header => true)"
    assert house.rows(f"select * from {call}") == [(1, 'it\'s a "q", so'), (2, 'a "b" c'), (3, "end\\")]


@pytest.mark.parametrize("arguments", ["", "path", "'p', 1", "'p', header = true", "'p', header => 1 + id", "'p', "])
def test_a_call_with_invalid_arguments_is_refused(house: House, arguments: str) -> None:
    with pytest.raises(StatementSyntaxError):
        house.sql(f"select * from read_files({arguments})")


def test_the_information_schema_lists_the_relations_of_the_catalog(house: House) -> None:
    house.sql("create table t (id int)")
    house.sql("create view v as select * from t")
    tables = "select table_schema, table_name, table_type from silt.information_schema.tables"
    assert house.rows(tables) == [("main", "t", "BASE TABLE"), ("main", "v", "VIEW")]
    assert house.rows("select table_name, view_definition from INFORMATION_SCHEMA.Views") == [("v", "select * from t")]
    assert house.rows("select * from information_schema.schemata") == [("silt", "main")]
    with pytest.raises(RelationNotFoundError, match="information_schema has columns, schemata, tables, views"):
        house.sql("select * from information_schema.routines")
    house.sql("create schema information_schema")
    house.sql("create table information_schema.tables as select 'own' as name")
    assert house.rows("select name from information_schema.tables") == [("own",)]


def test_files_without_a_header_take_their_columns_in_order_and_all_of_them(house: House, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("1\ta\n2\tb\n")
    call = f"read_files('{tmp_path}/rows.tsv', sep => '\\t', header => false, schema =>"
    assert house.rows(f"select * from {call} 'id int, name string')") == [(1, "a"), (2, "b")]
    with pytest.raises(Exception, match=r"(?i)malformed"):
        house.rows(f"select * from {call} 'id int')")


@pytest.mark.parametrize(
    ("file", "option", "remedy"),
    [
        ("a.csv", "haeder => true", "Did you mean `header`"),
        ("events.jsonl", "multiLines => true", "Did you mean `multiLine`"),
        ("a.csv", "format => 'text', zzz => 'x'", "The options are wholetext"),
        ("a.csv", "shema => 'id int'", "Did you mean `schema`"),
    ],
)
def test_an_option_that_the_reader_lacks_is_refused(
    house: House, orders: Path, file: str, option: str, remedy: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"reader of \w+ files has no option .*{remedy}"):
        house.sql(f"select * from read_files('{text_of(orders)}/{file}', {option})")


def test_options_of_hadoop_and_of_unknown_formats_are_not_checked(house: House) -> None:
    given = {"csv": ["mode", "locale"], "json": ["prefersdecimal"], "parquet": ["mergeschema", "parquet.page.size"]}
    for file_format, names in given.items():
        check_options(file_format, names)
    check_options("of_another_package", ["anything"])


@pytest.mark.parametrize(
    "statement",
    [
        "select * from parquet.`/missing`",
        "select * from csv.`/missing`",
        "insert into t select * from parquet.`/missing`",
        "create table u as select * from parquet.`/missing`",
        "create view v as select * from parquet.`/missing`",
    ],
)
def test_a_missing_path_in_a_statement_raises_files_not_found_error(house: House, statement: str) -> None:
    house.sql("create table t (x int)")
    with pytest.raises(FilesNotFoundError, match=r"no files to read at `file:/missing`, which the statement names"):
        house.fetched(statement)


def landed(folder: Path, *columns: pa.Array) -> str:
    """Writes a Parquet file for each array, and returns the folder."""
    folder.mkdir()
    for number, column in enumerate(columns):
        pq.write_table(pa.table({"v": column}), folder / f"{number}.parquet")
    return str(folder)


def decimals(precision: int, scale: int, value: str = "1.25") -> pa.Array:
    return pa.array([Decimal(value)], pa.decimal128(precision, scale))


MIDNIGHT = datetime.datetime(2026, 3, 1)
WIDER: dict[str, tuple[pa.Array, pa.Array, str, str, str]] = {
    "precision": (decimals(12, 2), decimals(13, 2), "decimal(12,2)", "decimal(13,2)", "decimal(13,2)"),
    "scale": (decimals(12, 2), decimals(13, 4), "decimal(12,2)", "decimal(13,4)", "decimal(14,4)"),
    "whole numbers": (pa.array([1], pa.int32()), pa.array([2**40]), "int", "bigint", "bigint"),
    "a decimal": (pa.array([1], pa.int32()), decimals(12, 2), "int", "decimal(12,2)", "decimal(12,2)"),
    "times": (pa.array([MIDNIGHT.date()]), pa.array([MIDNIGHT]), "date", "timestamp_ntz", "timestamp_ntz"),
}


@pytest.mark.parametrize("name", WIDER)
@pytest.mark.parametrize("statement", ["select * from {}", "create table n as select * from {}", "insert into t {}"])
def test_files_with_two_types_are_refused_with_the_type_that_reads_both(
    house: House, tmp_path: Path, name: str, statement: str
) -> None:
    first, second, read_as, there, both = WIDER[name]
    house.sql("create table t (v string)")
    path = landed(tmp_path / "landed", first, second)
    call = f"read_files('{path}', format => 'parquet'"
    said = re.escape(f"{path}/1.parquet has `v` as {there}, and it is read as {read_as}")
    query = f"{call})" if "from" in statement else f"select cast(v as string) from {call})"
    with pytest.raises(DataRejectedError, match=rf"{said}.*declare `data_type: {re.escape(both)}`"):
        house.fetched(statement.format(query))
    rows = house.rows(f"select * from {call}, widenTo => '`v` {both}')")
    kind = house.sql(f"select * from {call}, widenTo => '`v` {both}')").dtypes[0][1]
    assert (len(rows), kind) == (2, both)


TWO: dict[str, tuple[Any, str]] = {
    "a number and a text": (pa.array(["x"]), "has `v` as string, and it is read as int"),
    "a struct": (pa.array([{"a": 1}]), "cannot be read"),
}


@pytest.mark.parametrize("name", TWO)
def test_files_with_types_that_no_type_reads_must_be_written_again(house: House, tmp_path: Path, name: str) -> None:
    other, said = TWO[name]
    path = landed(tmp_path / "landed", pa.array([1], pa.int32()), other)
    for query in (f"read_files('{path}', format => 'parquet')", f"parquet.`{path}`"):
        with pytest.raises(DataRejectedError, match=f"(?s)the file .*1.parquet {said}.*write the file"):
            house.fetched(f"select * from {query}")


def test_a_file_that_is_not_parquet_belongs_to_no_table(house: House, tmp_path: Path) -> None:
    path = landed(tmp_path / "landed", pa.array([1]))
    Path(path, "1.parquet").write_bytes(b"this is not a Parquet file")
    with pytest.raises(DataRejectedError, match=r"the file .*1\.parquet cannot be read .*keep it out") as caught:
        house.fetched(f"select * from read_files('{path}', format => 'parquet')")
    assert "table" not in str(caught.value)


def test_a_file_of_a_table_outside_of_the_warehouse_is_damaged(house: House, tmp_path: Path) -> None:
    house.sql(f"create table delta.`{tmp_path}/outside` as select 1 as v")
    [file] = (tmp_path / "outside").rglob("*.parquet")
    pq.write_table(pa.table({"v": ["x"]}), file)
    with pytest.raises(TableDamagedError):
        house.fetched(f"select * from delta.`{tmp_path}/outside`")


def test_a_column_is_only_widened_and_only_if_the_files_have_it(house: House, tmp_path: Path) -> None:
    path = landed(tmp_path / "landed", pa.array([2**40]))
    call = f"read_files('{path}', format => 'parquet', widenTo => 'V int, absent bigint, w string')"
    assert house.sql(f"select * from {call}").dtypes == [("v", "bigint")]
    assert house.rows(f"select * from {call}") == [(2**40,)]
