"""Audits next to collations, enforced keys and object stores."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits
from dbt.adapters.silt.engine.kernel.errors import AuditFailedError, KeyViolationError
from tests.unit.engine.house import House


def audit(house: House, query: str) -> None:
    """Sets an audit for the statements of the house."""
    house.sql(f"set silt.audits = {json.dumps(Audits((Audit('named', query),)).to_json())}")


def test_a_condition_on_a_column_with_a_collation_is_judged_by_the_collation(house: House) -> None:
    house.sql("create table t (name string collate utf8_lcase)")
    audit(house, "select * from t where name = 'ANN'")
    house.sql("insert into t values ('bob')")
    with pytest.raises(AuditFailedError):
        house.sql("insert into t values ('ann')")
    assert house.rows("select * from t") == [("bob",)]


def test_an_enforced_key_refuses_rows_that_the_audits_accept(house: House) -> None:
    house.sql("create table t (id bigint, v int, primary key (id) enforced)")
    audit(house, "select * from t where v < 0")
    house.sql("insert into t values (1, 1)")
    with pytest.raises(KeyViolationError):
        house.sql("insert into t values (1, 2)")
    with pytest.raises(AuditFailedError):
        house.sql("insert into t values (2, -1)")
    assert house.rows("select * from t") == [(1, 1)]


def test_a_refused_commit_leaves_no_file_in_a_bucket(house: House) -> None:
    house.sql("create table t (v int)")
    audit(house, "select * from t where v < 0")
    store = house.log("t").store
    before = [each.path for each in store.files_below("")]
    with pytest.raises(AuditFailedError):
        house.sql("insert into t values (-1), (1)")
    assert [each.path for each in store.files_below("")] == before
