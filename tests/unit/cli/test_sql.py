"""`silt sql` without Spark: answers of the log and of Arrow, their output and files, and refused input."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.cli.shell import output, spark_process
from dbt.adapters.silt.cli.shell.output import Change, Result, RowsFound, StatementFailedError, drawn, summary
from dbt.adapters.silt.cli.shell.spark_process import SparkProcess
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.near_names import some_of
from dbt.adapters.silt.kept_spark.inherited_environment import umask
from tests.unit.cli.house import House, rows

Silt = Callable[..., str]
AsJson = Callable[..., Any]


@pytest.fixture
def orders(house: House) -> House:
    """A table of 15 rows in two files, the second of which has prices."""
    log = house.create("main.orders", rows(0, 10))
    house.append(log, [{**row, "price": Decimal("1.50")} for row in rows(10, 5)])
    return house


@pytest.fixture(autouse=True)
def to_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that would be passed to Spark, which does not run."""
    sent: list[str] = []

    def run(self: SparkProcess, text: str, most: int | None = None, may_commit: bool = True) -> Result:
        sent.append(text)
        if "broken" in text:
            raise StatementFailedError("[SILT_SYNTAX] it is broken. Correct the statement.")
        return Change("DELETE silt.main.orders@v2: 1 deleted", {"operation": "DELETE"})

    monkeypatch.setattr(SparkProcess, "run", run)
    yield sent


def project(folder: Path, conf: str, fields: Mapping[str, Any] | None = None) -> Path:
    """A dbt project whose profile has a setting of Spark, and other fields."""
    target = {"type": "silt", "warehouse": "warehouse", "spark_conf": dict([conf.split(": ")]), **(fields or {})}
    (folder / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    (folder / "profiles.yml").write_text(json.dumps({"shop": {"target": "dev", "outputs": {"dev": target}}}))
    return folder


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, spark_process.STARTS),
        ({"keep_alive": "15 minutes"}, spark_process.STAYS),
        ({"keep_alive": False}, spark_process.STARTS),
        ({"keep_alive": "off"}, spark_process.STARTS),
        ({"remote": "sc://elsewhere"}, spark_process.CONNECTS),
    ],
)
def test_the_notice_states_whether_spark_is_started_or_already_running(
    fields: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def run(self: SparkProcess, *_: Any, **__: Any) -> Result:
        told.append(self.notice)
        return Change("done", {})

    monkeypatch.setattr(SparkProcess, "run", run)
    folder = str(project(tmp_path, "spark.ui.enabled: 'false'", fields))
    (tmp_path / "warehouse" / "main").mkdir(parents=True)
    main(["sql", "select 1 + 1", "--project-dir", folder, "--profiles-dir", folder])
    assert told == [said]


def failing(house: House, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(house.folder)])


def test_counts_and_extremes_are_answered_from_the_log(orders: House, as_json: AsJson, to_spark: list[str]) -> None:
    text = "select count(*), min(id), MAX(Id) as most, max(price), min(sold) from main.orders"
    assert as_json("sql", text) == [
        {
            "count(1)": 15,
            "min(id)": 0,
            "most": 14,
            "max(price)": "1.50",
            "min(sold)": "2024-01-01 00:00:00.000000Z",
        }
    ]
    assert as_json("sql", "select count(*) n from orders where id >= 10") == [{"n": 5}]
    assert not to_spark


def test_filtered_rows_are_read_by_arrow(orders: House, as_json: AsJson, to_spark: list[str]) -> None:
    text = "select o.ID, name as who, price from silt.main.orders o where o.id in (3, 12) or name like 'name 14%'"
    assert sorted(as_json("sql", text), key=lambda row: row["ID"]) == [
        {"ID": 3, "who": "name 3", "price": None},
        {"ID": 12, "who": "name 12", "price": "1.50"},
        {"ID": 14, "who": "name 14", "price": "1.50"},
    ]
    assert as_json("sql", "select count(*) from orders where price = 1.5 and id < 12") == [{"count(1)": 2}]
    assert len(as_json("sql", "select * from orders limit 4")) == 4
    assert as_json("sql", "select id from orders limit 0") == []
    assert [row["id"] for row in as_json("sql", "select id from orders version as of 0")] == list(range(10))
    assert not to_spark


@pytest.mark.parametrize(
    "text",
    [
        "select id + 1 from orders",
        "select distinct id from orders",
        "select id from orders order by id",
        "select id from orders limit 3 offset 1",
        "select id from orders where id + 1 = 2",
        "select id from orders where sold > '2024-01-01 00:00:00'",
        "select id, id from orders",
        "select id, id as x, x from orders",
        "select sum(id) from orders",
        "select count(id) from orders",
        "select count(2) from orders",
        "select count(*), id from orders",
        "select /*+ repartition(3) */ id from orders",
        "select id from orders tablesample (3 rows)",
        "select id from orders union all select id from orders",
        "select id from orders o join orders p using (id)",
        "with orders as (select 1 as id) select id from orders",
        "select id from orders timestamp as of '2024-01-01'",
        "select current_date from orders",
        "select _metadata from orders",
        "select id from orders where current_path = 'a'",
        "select id from big",
        "select 1.0",
        "show tables",
        "select * from information_schema.tables",
        "delete from orders where id = 1",
        "explain extended select id from orders",
    ],
)
def test_queries_with_possibly_different_results_are_passed_to_spark(
    orders: House, silt: Silt, to_spark: list[str], text: str
) -> None:
    orders.catalog.put_view(View(orders.name("main.big"), "select * from main.orders where id > 10"))
    silt("sql", text)
    assert to_spark == [text]


@pytest.mark.parametrize(
    "text",
    [
        "set spark.sql.session.timeZone = UTC",
        "use other",
        "create temporary view orders as select 1 as id",
        "declare variable x int",
        "create function f() returns int return 1",
        "execute immediate 'use other'",
    ],
)
def test_after_a_statement_that_changes_the_session_all_statements_are_passed_to_spark(
    orders: House, silt: Silt, to_spark: list[str], text: str
) -> None:
    silt("sql", f"select id from orders; {text}; select id from orders; select count(*) from orders")
    assert to_spark == [text, "select id from orders", "select count(*) from orders"]


def test_after_a_change_of_rows_the_log_still_answers(orders: House, silt: Silt, to_spark: list[str]) -> None:
    printed = silt("sql", "delete from orders where id = 1; select count(*) as n from orders")
    assert printed == "DELETE silt.main.orders@v2: 1 deleted\n\n n\n15\n"
    assert len(to_spark) == 1


def test_statements_are_split_as_spark_splits_them(orders: House, as_json: AsJson) -> None:
    text = "select id from orders where name = 'a;b' -- no; end\n; /* ; */ select count(*) as n from orders;"
    assert as_json("sql", text) == [[], [{"n": 15}]]


def test_statements_are_read_from_a_file_or_from_standard_input(
    orders: House, as_json: AsJson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "count.sql"
    file.write_text("select count(*) as n\nfrom orders;\n")
    assert as_json("sql", "-f", str(file)) == [{"n": 15}]
    monkeypatch.setattr(sys, "stdin", io.StringIO("select count(*) as n from orders"))
    assert as_json("sql") == [{"n": 15}]


def test_shell_commands_work_in_a_pipe_too(
    orders: House, silt: Silt, as_json: AsJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\\d\n"))
    assert silt("sql").split() == ["schema", "name", "kind", "main", "orders", "table"]
    typed = "\\d orders;\nselect count(*) as n from orders /*\n\\d\n*/;\nhelp\nquit\nselect 1/0"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    columns, counted, said = as_json("sql")
    assert [each["column"] for each in columns] == ["id", "name", "price", "sold"]
    assert counted == [{"n": 15}]
    assert any("Ctrl-D" in line for line in said["help"])
    assert silt("sql", "\\d orders").startswith("column")
    silt("sql", "\\x", code=2)


def test_all_rows_are_printed_and_aligned_in_a_pipe(house: House, silt: Silt) -> None:
    house.create("main.many", rows(0, 250))
    assert (
        silt("sql", "select id, name, price from many where id < 2")
        == "id  name    price\n 0  name 0   null\n 1  name 1   null\n"
    )
    assert len(silt("sql", "select * from many").splitlines()) == 251


def test_a_terminal_shows_the_first_rows_and_the_number_of_omitted_rows() -> None:
    found = pa.table({"n": list(range(150)), "text": ["x"] * 150})
    assert len(list(drawn(found, 80))) == 102
    assert summary(3, 10_000) == "(3 rows)"
    assert summary(1, 10_000) == "(1 row)"
    assert summary(150, 10_000).startswith("(the first 100 rows; 50 are left out: ")
    assert summary(10_000, 10_000).startswith("(the first 100 rows; more than 9,900 are left out: ")


def test_control_characters_in_the_data_are_escaped() -> None:
    found = pa.table({"a\x1b[2J": ["red\x1b[31m\nx\u202e", "注文"], "n": [None, 1]})
    heading, rule, first, second = drawn(found, 80)
    assert heading.split() == ["a\\x1b[2J", "n"]
    assert first == "red\\x1b[31m\\nx\\u202e  null"
    assert len(rule) == len(first)
    assert len(second) + 2 == len(first)  # each of its two characters is two columns wide
    shown = output.json_text([RowsFound(found)])
    assert "\x1b" not in shown and "\u202e" not in shown
    assert json.loads(shown)[0]["n"] is None


def test_rows_wider_than_the_terminal_are_shown_one_by_one() -> None:
    found = pa.table({"name": ["a" * 30], "other": ["b" * 300]})
    assert list(drawn(found, 40)) == ["── row 1", f"name   {'a' * 30}", f"other  {'b' * 199}…"]


def test_csv_output_distinguishes_null_from_an_empty_string(orders: House, silt: Silt, tmp_path: Path) -> None:
    found = pa.table(
        {
            "t": ["", None, 'a "b", c', "x\ny", " z"],
            "f": pa.array([0.1, None, 2, 3, 4], pa.float32()),
            "l": [[1], None, [], [2], [3]],
        }
    )
    assert list(output.csv_lines(found)) == [
        "t,f,l",
        '"",0.1,[1]',
        ",,",
        '"a ""b"", c",2.0,[]',
        '"x\ny",3.0,[2]',
        '" z",4.0,[3]',
    ]
    file = tmp_path / "orders.csv"
    assert silt("sql", "select id, price from orders where id > 8", "--csv", str(file)) == ""
    assert sorted(file.read_bytes().decode().split("\r\n")) == [
        "",
        "10,1.50",
        "11,1.50",
        "12,1.50",
        "13,1.50",
        "14,1.50",
        "9,",
        "id,price",
    ]
    assert silt("sql", "select id from orders where id = 3", "--csv", "-") == "id\n3\n"


def test_a_parquet_file_has_the_types_of_the_table(orders: House, silt: Silt, tmp_path: Path) -> None:
    file = tmp_path / "orders.parquet"
    silt("sql", "select * from orders", "--parquet", str(file))
    found = pq.read_table(file)
    assert found.num_rows == 15
    assert [str(kind) for kind in found.schema.types] == [
        "int64",
        "string",
        "decimal128(12, 2)",
        "timestamp[us, tz=UTC]",
    ]
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0o077 & ~umask() & 0o066


def test_an_output_file_is_written_completely_or_not_at_all(
    orders: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def torn(rows: pa.Table, file: str, **options: Any) -> None:
        Path(file).write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    file = tmp_path / "orders.parquet"
    monkeypatch.setattr(output.pq, "write_table", torn)  # type: ignore[attr-defined]
    assert failing(orders, "select id from orders", "--parquet", str(file)) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["warehouse"]


def test_an_existing_output_file_is_kept_unless_it_may_be_replaced(
    orders: House, silt: Silt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.csv"
    file.write_text("mine")
    assert failing(orders, "select id from orders", "--csv", str(file)) == 2
    assert "already exists" in capsys.readouterr().err
    assert file.read_text() == "mine"
    silt("sql", "select id from orders where id = 1", "--csv", str(file), "--overwrite")
    assert file.read_text().split() == ["id", "1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("select id from ordrs",), "the table or view does not exist. Check the name; similar names are: orders."),
        (
            ("select nam from orders",),
            "the column `nam` does not exist. Check its name; the columns are: name, id, price, sold",
        ),
        (("select id from orders where nam = 'a'",), "the column `nam` does not exist; columns: id, name, price, sold"),
        (("select 'a from orders",), "[SILT_SYNTAX] a string is not closed (line 1, column 8"),
        (("broken",), "silt: [SILT_SYNTAX] it is broken. Correct the statement."),
        (("  -- nothing\n",), "the statement is missing"),
        (("select 1", "-f", "x.sql"), "both statements and a file are given"),
        (("-f", "missing.sql"), "missing.sql cannot be read"),
        (("select 1; select 2", "--parquet", "x.parquet"), "a file holds the rows of one statement, but 2 are given"),
        (("select 1", "--json", "--csv", "-"), "two output formats are given"),
        (("select 1", "--csv", "missing/x.csv"), "is in a folder that does not exist"),
        (("select 1", "--csv", "."), "is a folder"),
        (("delete from orders", "--csv", "x.csv"), "the statement was run, but it has no rows to write"),
        (("select id from orders version as of 7",), "SILT_VERSION_NOT_FOUND"),
        (("explain delete from orders",), "only a query can be explained"),
    ],
)
def test_impossible_requests_are_refused_without_a_traceback(
    orders: House, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert failing(orders, *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("fct_orders", "`main_marts.fct_orders`"),
        ("fct_order", "main_marts.fct_orders."),
        ("main.fct_orders", "`main_marts.fct_orders`"),
        ("main_marts.fct_ordes", "fct_orders."),
    ],
)
def test_a_table_of_another_schema_is_suggested(
    orders: House, capsys: pytest.CaptureFixture[str], name: str, meant: str
) -> None:
    orders.create("main_marts.fct_orders", rows(0, 1))
    assert failing(orders, f"select count(*) from {name}") == 2
    assert meant in capsys.readouterr().err


def test_the_columns_of_a_wide_table_are_listed_up_to_a_limit() -> None:
    assert some_of([f"c{number}" for number in range(30)]).endswith(", c28, c29")
    assert some_of([f"c{number}" for number in range(2_000)]).endswith(", c28, c29 and 1,970 more")


@pytest.mark.parametrize(
    "statement",
    [
        "select id from orders-old",
        "select id from orders order id",
        "select count(*) from orders o group id",
        "select id from orders as",
        "select id from orders o as p",
        "select id from (select /id from orders)",
        "explain select id from (select /id from orders)",
    ],
)
def test_misplaced_clauses_are_left_to_sparks_error_message(orders: House, to_spark: list[str], statement: str) -> None:
    main(["sql", statement, "--warehouse", str(orders.folder)])
    assert to_spark == [statement]


def test_a_byte_order_mark_is_not_part_of_a_script(orders: House, as_json: AsJson, tmp_path: Path) -> None:
    file = tmp_path / "counts.sql"
    file.write_text("select count(*) as n from orders;", encoding="utf-8-sig")
    assert as_json("sql", "-f", str(file)) == [{"n": 15}]


def test_results_before_a_failure_are_shown(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(orders, "select count(*) as n from orders; broken; select 1", "--json") == 2
    assert json.loads(capsys.readouterr().out) == [{"n": 15}]


def test_in_a_transaction_all_statements_go_to_spark(orders: House, silt: Silt, to_spark: list[str]) -> None:
    silt("sql", "begin; delete from orders; select count(*) from orders; commit")
    assert to_spark == ["begin", "delete from orders", "select count(*) from orders", "commit"]


def test_statements_that_end_within_a_transaction_fail(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    open_at_the_end = "begin; delete from orders"
    assert main(["sql", "--warehouse", str(orders.folder), open_at_the_end]) == 2
    assert "the statements end within a transaction, which changed nothing" in capsys.readouterr().err
    for ended in ("begin; delete from orders; rollback", "start transaction; commit work"):
        assert main(["sql", "--warehouse", str(orders.folder), ended]) == 0


def test_a_damaged_table_has_its_own_exit_code(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (orders.folder / "main" / "orders").rglob("*.parquet"):
        file.unlink()
    assert failing(orders, "select id from orders") == 1
    assert "SILT_DATA_FILE_MISSING" in capsys.readouterr().err


def test_a_folder_without_a_project_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sql", "select 1"]) == 2
    assert "there is neither a dbt project nor a warehouse in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("conf", "is_quick"),
    [
        ("spark.sql.shuffle.partitions: 4", True),
        ("spark.executor.memory: 1g", True),
        ("spark.sql.legacy.x: true", False),
    ],
)
def test_with_a_setting_that_may_change_results_all_queries_are_passed_to_spark(
    orders: House, to_spark: list[str], monkeypatch: pytest.MonkeyPatch, conf: str, is_quick: bool
) -> None:
    monkeypatch.chdir(project(orders.folder.parent, conf))
    assert main(["sql", "select count(*) from orders"]) == 0
    assert to_spark == ([] if is_quick else ["select count(*) from orders"])


def test_times_without_a_zone_are_in_the_profiles_time_zone(
    orders: House, to_spark: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project(orders.folder.parent, "spark.sql.session.timeZone: America/New_York"))
    assert main(["sql", "select id from orders where sold = '2023-12-31 19:00:02'", "--csv", "-"]) == 0
    assert capsys.readouterr().out == "id\n2\n"
    assert not to_spark


def test_neither_spark_nor_numpy_is_loaded(orders: House) -> None:
    code = (
        "import sys; from dbt.adapters.silt.cli.main import main; main(); "
        "print([name for name in ('numpy', 'pandas', 'pyspark', 'agate', 'dbt.config') if sys.modules.get(name)])"
    )
    arguments = ["sql", "select * from main.orders where id = 3", "--warehouse", str(orders.folder)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
