"""Audits as values: their JSON, their fingerprints and the limit of quarantined rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure, Scope, Severity
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError

POSITIVE = Audit("positive", "select * from main.t where v < 0")


def test_audits_are_the_same_after_a_round_trip_through_json() -> None:
    most = Audit("few", "select 1", "sum(n)", Severity.WARN, "> 1", "> 10", limit=5, stored_in="main.bad")
    audits = Audits((POSITIVE, most), Scope.CHANGES, OnFailure.QUARANTINE, True, Limit(7), "run", "model.a", "main.t")
    assert Audits.from_json(audits.to_json()) == audits
    assert Audits.from_json(Audits((POSITIVE,)).to_json()) == Audits((POSITIVE,))


def test_only_the_audits_with_name_and_query_are_required() -> None:
    text = '{"audits": [{"name": "positive", "query": "select * from main.t where v < 0"}]}'
    assert Audits.from_json(text) == Audits((POSITIVE,))


def test_an_audit_of_dbt_has_its_words_in_capitals() -> None:
    text = '{"audits": [{"name": "a", "query": "q", "severity": "WARN"}], "on_failure": "Warn"}'
    assert Audits.from_json(text) == Audits((Audit("a", "q", severity=Severity.WARN),), on_failure=OnFailure.WARN)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "the audits are not JSON"),
        ("[]", "audits must be a JSON object, not []"),
        ('{"scope": "state"}', "audits must have `audits`"),
        ('{"audits": 1}', "`audits` is not a list"),
        ('{"audits": [1]}', "an audit must be a JSON object, not 1"),
        ('{"audits": [{"name": "a"}]}', "an audit must have `query`"),
        ('{"audits": [{"name": "a", "query": 1}]}', "`query` of an audit cannot be 1"),
        ('{"audits": [{"name": "a", "query": "q", "limit": true}]}', "`limit` of an audit cannot be true"),
        ('{"audits": [{"name": "a", "query": "q", "fail_if": ""}]}', "an audit cannot have `fail_if`"),
        ('{"audits": [{"name": "a", "query": "q", "severity": "eror"}]}', "Did you mean `error`?"),
        ('{"audits": [], "on_failure": "drop"}', "Use one of refuse, warn, quarantine"),
        ('{"audits": [], "scope": 1}', "`scope` of audits cannot be 1"),
        ('{"audits": [], "on_fail": "warn"}', "Did you mean `on_failure`?"),
        ('{"audits": [], "max_quarantined": "few"}', "max_quarantined cannot be 'few'"),
    ],
)
def test_other_json_is_refused(body: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        Audits.from_json(body)
    assert said in str(error.value)


def test_a_fingerprint_changes_with_everything_that_determines_the_verdict() -> None:
    others = [
        replace(POSITIVE, query="select * from main.t where v <= 0"),
        replace(POSITIVE, fail_calc="sum(v)"),
        replace(POSITIVE, severity=Severity.WARN),
        replace(POSITIVE, warn_if="> 1"),
        replace(POSITIVE, error_if="> 1"),
        replace(POSITIVE, limit=1),
    ]
    assert len({each.fingerprint for each in (POSITIVE, *others)}) == 7
    assert replace(POSITIVE, name="other").fingerprint == POSITIVE.fingerprint


@pytest.mark.parametrize(
    ("limit", "quarantined", "allowed"),
    [("1 %", 1, True), ("1%", 2, False), (5, 5, True), ("5", 6, False), ("0", 1, False), ("0.5%", 1, False)],
)
def test_a_limit_is_a_number_of_rows_or_a_percentage_of_the_written_rows(
    limit: object, quarantined: int, allowed: bool
) -> None:
    assert Limit.of(limit).allows(quarantined, 100) is allowed


@pytest.mark.parametrize("value", ["-1", "1.5", "nan", "inf %", True, None, "%"])
def test_a_limit_of_another_form_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="max_quarantined cannot be"):
        Limit.of(value)


def test_the_json_names_the_words_of_the_policies() -> None:
    body = json.loads(Audits((POSITIVE,)).to_json())
    assert (body["scope"], body["on_failure"], body["max_quarantined"]) == ("state", "refuse", "1 %")
