"""Names and texts that Spark would replace by variables of the environment keep their characters everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from tests.unit.engine.house import House

SECRETS = ("${env:PATH}", "${system:java.home}", "${spark:spark.app.id}", "${spark.app.id}")
"""Variables that have a value in each Spark."""


def shown(house: House, query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    frame = house.warehouse.sql(query)
    return list(frame.columns), [tuple(row) for row in frame.collect()]


@pytest.mark.connect
@pytest.mark.parametrize("name", SECRETS)
def test_the_names_of_a_stored_views_columns_stay_as_they_are(house: House, name: str) -> None:
    body = {"format": 1, "kind": "view", "text": "select 1", "columns": [{"name": name}]}
    document = {**body, "currentDatabase": "silt", "currentSchema": "main"}
    (house.root / "main" / "v.view.json").write_text(json.dumps(document), encoding="utf-8")
    assert shown(house, "select * from v") == ([name], [(1,)])
    house.sql("create table made as select * from v")
    assert house.log("made").snapshot().schema.names == (name,)


STATEMENTS: tuple[Callable[[str, str], str], ...] = (
    lambda column, _: f"update t set {column} = {column} + 1 where {column} = 1",
    lambda column, _: f"delete from t where {column} = 9",
    lambda column, _: f"insert into t (id, {column}) values (2, 2)",
    lambda column, _: f"insert into t by name select 3 as id, 3 as {column}",
    lambda column, _: f"insert into t replace using ({column}) values (4, 4)",
    lambda column, _: (
        f"merge into t using (select 5 as id, 5 as {column}) as n on t.{column} = n.{column} when matched"
        f" then update set {column} = n.{column} when not matched then insert (id, {column}) values (n.id, n.{column})"
    ),
    lambda column, _: "merge into t using (select * from t) as n on t.id = n.id when matched then update set *",
    lambda column, _: f"optimize t zorder by ({column})",
    lambda column, text: f"alter table t alter column {column} comment '{text}'",
    lambda column, text: f"alter table t add constraint c check ({column} is not null)",
    lambda column, text: f"create view w as select id, {column} as {column}, '{text}' as text from t",
    lambda column, text: f"select * from (select {column} as a from t) where '{text}' = '{text}'",
    lambda column, text: f"create or replace table t partitioned by ({column}) as select *, '{text}' as text from t",
)


@pytest.mark.connect
@pytest.mark.parametrize("name", [*SECRETS, "${x}"])
def test_no_statement_replaces_a_columns_name_or_a_text(house: House, name: str) -> None:
    house.sql(f"create table t (id int, {quote(name)} int) comment '{name}'")
    house.sql("insert into t values (1, 1)")
    for statement in STATEMENTS:
        house.sql(statement(quote(name), name))
    log = house.log("t").snapshot()
    assert log.schema.names == ("id", name, "text")
    assert {row[2] for row in house.rows("select * from t")} == {name}
    assert shown(house, "select * from w")[0] == ["id", name, "text"]
    assert os.environ["PATH"] not in log.metadata.schema_string


def test_a_variable_outside_of_a_text_is_refused_with_what_to_write_instead(house: House) -> None:
    with pytest.raises(StatementSyntaxError, match=r"are not replaced: in dbt, write"):
        house.rows("select ${x} as a")


def test_a_session_cannot_switch_the_replacement_on(house: House) -> None:
    with pytest.raises(InvalidSettingError, match="values of variables"):
        house.sql("set spark.sql.variable.substitute = true")
    assert house.rows("select '${env:PATH}'") == [("${env:PATH}",)]
    house.sql("reset spark.sql.variable.substitute")
    assert house.rows("select '${env:PATH}'") == [("${env:PATH}",)]
