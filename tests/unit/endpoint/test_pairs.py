"""Clients of the endpoint use the other capabilities of the package by their statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.endpoint.conftest import ANN

MONDAY = BranchedRun("shop", "dev", "monday")


def rows(session: Session, text: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in session.run(text).rows.to_pylist()]


@pytest.fixture
def shop(session: Session) -> Session:
    session.run("create table orders (id bigint, name string)")
    session.run("insert into orders values (1, 'a'), (2, 'B')")
    return session


def test_a_session_writes_on_the_branch_of_a_run_until_the_run_is_published(sessions: Sessions, shop: Session) -> None:
    runs = shop.catalog.run_branches("silt")
    run, branch = runs.open(MONDAY)
    apart = sessions.open(ANN, {"silt.branch": "monday"})
    apart.run("insert into orders values (3, 'c')")
    assert rows(apart, "select count(*) from orders") == [(3,)]
    assert rows(shop, "select count(*) from orders") == [(2,)]
    apart.run("reset silt.branch")
    runs.publish(run, branch)
    assert rows(shop, "select count(*) from orders") == [(3,)]


def test_a_run_id_on_the_branch_of_a_run_applies_a_statement_once(sessions: Sessions, shop: Session) -> None:
    runs = shop.catalog.run_branches("silt")
    run, branch = runs.open(MONDAY)
    for _ in range(2):
        apart = sessions.open(ANN, {"silt.branch": "monday", "silt.run_id": "monday"})
        apart.run("insert into orders values (3, 'c')")
        sessions.close(apart.id)
    runs.publish(run, branch)
    assert rows(shop, "select id from orders where id = 3") == [(3,)]
    again = sessions.open(ANN, {"silt.run_id": "monday"})
    assert again.run("insert into orders values (3, 'c')").rows.to_pylist()[0]["skipped"]


def test_a_transaction_is_rolled_back_by_rollback(shop: Session) -> None:
    for text in ("begin", "delete from orders", "rollback"):
        shop.run(text)
    assert rows(shop, "select count(*) from orders") == [(2,)]


def test_a_client_reads_silt_changes_and_clones(shop: Session) -> None:
    shop.run("create table copy shallow clone orders")
    shop.run("update orders set name = 'z' where id = 1")
    changed = rows(shop, "select id, _change_type from silt_changes('orders', after => 1) order by _change_type")
    assert changed == [(1, "delete"), (1, "insert")]
    assert rows(shop, "select name from copy where id = 1") == [("a",)]


def test_a_client_replaces_changed_keys_and_differences(shop: Session) -> None:
    shop.run("create table names changed keys (id) as select id, max(name) as name from orders group by id")
    shop.run("insert into orders values (2, 'z')")
    shop.run("insert into names by name replace changed keys (id) select id, max(name) as name from orders group by id")
    assert rows(shop, "select * from names order by id") == [(1, "a"), (2, "z")]
    shop.run("create table kept as select 1 as id, 'a' as name")
    shop.run("create or replace table kept write differences by (id) as select * from names")
    assert rows(shop, "select * from kept order by id") == [(1, "a"), (2, "z")]


def test_a_table_is_reused_in_a_session_that_asks_for_it(shop: Session) -> None:
    shop.run("set silt.reuse = unchanged")
    build = "create or replace table total as select count(*) as n from orders"
    versions = [answer.outcome.version for answer in (shop.run(build), shop.run(build)) if answer.outcome]
    assert versions == [0, 0]


def test_collated_strings_are_compared_by_their_collation(shop: Session) -> None:
    shop.run("create table c (name string collate UTF8_LCASE)")
    shop.run("insert into c values ('Ann')")
    assert rows(shop, "select name from c where name = 'ANN'") == [("Ann",)]


def test_files_are_read_by_read_files_only_if_the_profile_declares_or_allows_them(
    sessions_of: Any, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a\n1\n")
    query = f"select a from read_files('{file}', format => 'csv', header => true)"
    with pytest.raises(errors.ExternalPathError):
        sessions_of().open(ANN).run(query)
    assert rows(sessions_of(external_paths=True).open(ANN), query) == [(1,)]
