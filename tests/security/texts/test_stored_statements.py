"""A statement that a run has left in a warehouse, where another user may have written it, runs no code and reads no
files when another user publishes the run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import ExternalPathError, StoredCodeError, UnsupportedStatementError
from tests.security.texts.test_stored_code import CALL, SECRET, TRUSTING, clear, ran
from tests.unit.engine.house import House, opened

pytestmark = pytest.mark.in_folders("the attacks run processes and write files on this machine")

OWNER = "a statement of the run x"

OF_OTHER_KINDS = (
    "select {call}",
    "set spark.sql.ansi.enabled = false",
    "add jar '{secret}'",
    "drop table main.t",
    "create table main.n as select {call} as a",
    "create view main.n as select 1 as a",
    "create function main.f() returns string return {call}",
    "insert overwrite directory '{secret}.out' using csv select * from main.t",
    "convert to delta parquet.`{secret}`",
    "call system.x()",
    "begin",
)
OF_CODE = (
    "insert into main.t select 1, {call}",
    "insert into main.t values (1, {call})",
    "insert into main.t select transform(id) using 'touch {secret}.out' as (id int) from main.t",
    "insert into main.t select 1, value from jdbc.`{secret}`",
    "insert into main.t replace where name = {call} select 1, 'a'",
    "update main.t set name = {call}",
    "update main.t set name = 'a' where name = {call}",
    "delete from main.t where name = {call}",
    "merge into main.t using (select 1 as id, 'a' as name) s on t.id = s.id when matched then update set name = {call}",
    "merge into main.t using (select {call} as name, 1 as id) s on t.id = s.id when not matched then insert *",
    "merge into main.t using main.t s on t.id = s.id and {call} = 'a' when matched then delete",
    "optimize main.t where name = {call}",
    "insert into delta.`{secret}.out` values (1)",
    "insert into parquet.`{secret}.out` values (1)",
    "delete from delta.`{secret}.out`",
)
OF_FILES = (
    "insert into main.t select 1, value from text.`{secret}`",
    "insert into main.t select 1, value from read_files('{secret}', format => 'text')",
    "delete from main.t where name in (select value from text.`{secret}`)",
    "merge into main.t using text.`{secret}` s on t.name = s.value when not matched then insert values (1, s.value)",
)
OF_ROWS = (
    "insert into main.t values (1, current_date())",
    "insert into t by name select max(id) + 1 as id, 'b' as name from main.t",
    "update main.t set name = upper(name) where id in (select id from main.t)",
    "merge into main.t using (select 2 as id, 'c' as name) s on t.id = s.id when matched then update set * "
    "when not matched then insert *",
    "comment on table main.t is 'left'",
    "alter table main.t set tblproperties ('a' = 'b')",
    "optimize main.t",
    "delete from main.t where id = 0",
    "vacuum main.t",
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "letter.txt.out"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text(SECRET, encoding="utf-8")
    return path


@pytest.fixture
def owned(house: House) -> House:
    house.sql("create table main.t (id int, name string)")
    house.sql("insert into main.t values (0, 'zero'), (2, 'two')")
    return house


@pytest.mark.parametrize("text", [*OF_OTHER_KINDS, *OF_CODE, *OF_FILES])
def test_a_stored_statement_runs_no_code_and_reads_no_files(
    owned: House, secret: Path, marker: Path, text: str
) -> None:
    before = owned.log("t").snapshot().version
    stored = owned.warehouse.for_stored(OWNER)
    with pytest.raises(ExternalPathError if text in OF_FILES else StoredCodeError, match=OWNER):
        stored.execute(text.format(call=CALL, secret=secret))
    assert owned.log("t").snapshot().version == before
    assert [each.name for each in secret.parent.glob("letter.txt*")] == ["letter.txt"]
    assert not ran(owned, marker)


def test_the_expression_of_a_stored_execute_immediate_is_not_evaluated(owned: House, marker: Path) -> None:
    with pytest.raises(UnsupportedStatementError, match="EXECUTE IMMEDIATE"):
        owned.warehouse.for_stored(OWNER).execute(f"execute immediate {CALL}")
    assert not ran(owned, marker)


def test_a_stored_statement_may_change_and_maintain_tables(owned: House) -> None:
    stored = owned.warehouse.for_stored(OWNER)
    for text in OF_ROWS:
        stored.execute(text)
    assert [row[0] for row in owned.rows("select id from main.t order by id")] == [1, 2, 3]
    assert owned.log("t").snapshot().metadata.description == "left"


def test_the_session_itself_keeps_its_permissions(owned: House) -> None:
    owned.warehouse.for_stored(OWNER)
    owned.sql(f"insert into main.t select 5, {CALL}")
    clear(owned)
    assert owned.rows("select count(*) from main.t") == [(3,)]


def test_a_setting_allows_all_statements(owned: House) -> None:
    trusting = opened(owned.warehouse.spark, owned.place, TRUSTING)
    trusting.warehouse.for_stored(OWNER).execute(f"insert into main.t select 6, {CALL}")
    clear(owned)
    assert owned.rows("select id from main.t where id = 6") == [(6,)]
