"""Statements of clients that would run code on this machine, or read and write its files, are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.endpoint.conftest import ANN

REFUSED = (errors.StoredCodeError, errors.ExternalPathError, errors.UnsupportedStatementError)

CODE = (
    "add jar '{secret}'",
    "add file '{secret}'",
    "list jars",
    "select java_method('java.lang.System', 'getenv', 'HOME')",
    "select reflect('java.lang.System', 'exit', 1)",
    "select transform(1) using 'cat' as (a)",
    "explain select java_method('java.lang.System', 'getenv', 'HOME')",
    "create temporary function f as 'java.lang.Runtime'",
    "create function f as 'java.lang.Runtime' using jar '{secret}'",
    "create temporary view v as select java_method('java.lang.System', 'getenv', 'HOME') as h",
    "create view v as select java_method('java.lang.System', 'getenv', 'HOME') as h",
    "create or replace function f() returns string return java_method('java.lang.System', 'getenv', 'HOME')",
    "execute immediate 'add jar ''{secret}'''",
    "execute immediate 'select java_method(''java.lang.System'', ''exit'', 1)'",
    "execute immediate java_method('java.lang.System', 'getenv', 'HOME')",
    "execute immediate 'execute immediate ''select 1'''",
    "declare v string default java_method('java.lang.System', 'getenv', 'HOME')",
    "declare variable v = reflect('java.lang.System', 'exit', 1)",
    "set variable v = (select java_method('java.lang.System', 'getenv', 'HOME'))",
    "insert into t select length(java_method('java.lang.System', 'getenv', 'HOME'))",
    "delete from t where id = length(java_method('java.lang.System', 'getenv', 'HOME'))",
    "update t set id = length(java_method('java.lang.System', 'getenv', 'HOME'))",
    "merge into t using (select length(reflect('java.lang.System', 'getenv', 'HOME')) as id) s on t.id = s.id"
    " when not matched then insert *",
    "create table u as select java_method('java.lang.System', 'getenv', 'HOME') as h",
    "cache table c as select java_method('java.lang.System', 'getenv', 'HOME') as h",
    "set spark.sql.catalog.evil = org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "set fs.s3a.endpoint = http://127.0.0.1:1",
    "set spark.sql.execution.pyspark.python = /bin/sh",
    "export table t to '/tmp/t'",
    "call system.any()",
)
FILES = (
    "execute immediate 'select * from text.`{secret}`'",
    "execute immediate (select first(value) from text.`{secret}`)",
    "declare v string default (select first(value) from text.`{secret}`)",
    "set var v = (select first(value) from text.`{secret}`)",
    "select * from csv.`{secret}`",
    "select * from text.`{secret}`",
    "select * from read_files('{secret}', format => 'text')",
    "create view v as select * from text.`{secret}`",
    "create temporary view v as select * from text.`{secret}`",
    "create temporary view v using text options (path '{secret}')",
    "create table u as select * from text.`{secret}`",
    "create table u using csv location '{folder}'",
    "create table `default`.u using csv location '{folder}'",
    "create table u (id int) location '{folder}/u'",
    "create table u deep clone delta.`{folder}`",
    "create table u shallow clone delta.`{folder}`",
    "describe csv.`{secret}`",
    "describe history delta.`{folder}`",
    "insert into t select length(value) from text.`{secret}`",
    "insert into csv.`{folder}` values (1)",
    "insert overwrite directory '{folder}/out' using csv select 1",
    "delete from delta.`{folder}`",
    "optimize delta.`{folder}`",
    "convert to delta parquet.`{folder}`",
    "load data inpath '{secret}' into table t",
    "update t set id = (select max(length(value)) from text.`{secret}`)",
    "delete from t where id in (select length(value) from text.`{secret}`)",
    "merge into t using text.`{secret}` s on t.id = 1 when matched then delete",
    "with x as (select * from text.`{secret}`) select * from x",
    "table text.`{secret}`",
    "from text.`{secret}` select *",
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "secret.txt").write_text("password\n")
    return folder / "secret.txt"


@pytest.mark.parametrize("text", (*CODE, *FILES))
def test_a_hostile_statement_is_refused_and_changes_nothing(session: Session, secret: Path, text: str) -> None:
    session.run("create table t (id bigint)")
    with pytest.raises(errors.SiltError) as raised:
        print(session.run(text.format(secret=secret, folder=secret.parent)).rows.to_pylist())
    assert isinstance(raised.value, REFUSED), raised.value
    assert sorted(each.name for each in secret.parent.iterdir()) == ["secret.txt"]
    assert session.run("select count(*) as n from t").rows.to_pylist() == [{"n": 0}]


def test_a_view_that_a_client_makes_does_not_open_files_to_the_process(session: Session, secret: Path) -> None:
    text = f"select * from text.`{secret}`"
    with pytest.raises(errors.ExternalPathError):
        session.run(f"create view v as {text}")
    with pytest.raises(errors.ExternalPathError):
        session.run(text)


def test_a_profile_may_allow_code_and_files(sessions_of: Callable[..., Sessions], secret: Path) -> None:
    session = sessions_of(stored_code=True, external_paths=True).open(ANN)
    assert session.run(f"select value from text.`{secret}`").rows.to_pylist() == [{"value": "password"}]
    assert session.run("select reflect('java.lang.String', 'valueOf', 1) as x").rows.to_pylist() == [{"x": "1"}]
    session.run("set spark.sql.legacy.anything = 1")


@pytest.mark.parametrize(
    "text",
    [
        "set -v",
        "show databases",
        "show schemas",
        "show tables in main",
        "show functions",
        "select 1",
        "select current_catalog(), current_schema(), version()",
        "describe t",
        "describe extended main.t",
        "show table extended in main like '*'",
        "use main",
        "set spark.sql.shuffle.partitions = 3",
        "set spark.sql.sources.partitionOverwriteMode = DYNAMIC",
        "create temporary view x__dbt_tmp as select 1 as id",
        "explain select * from t",
        "show create table t",
        "analyze table t compute statistics",
        "reset",
    ],
)
def test_what_tools_send_runs(session: Session, text: str) -> None:
    session.run("create table t (id bigint)")
    session.run(text)
