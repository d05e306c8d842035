"""Audits of the statements of a client of the endpoint."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.audits.audit import Audit, Audits
from dbt.adapters.silt.engine.kernel.errors import AuditFailedError
from tests.unit.endpoint.conftest import ANN


def rows(session: Session) -> list[int]:
    return sorted(each["v"] for each in session.run("select v from numbers").rows.to_pylist())


def test_a_client_of_the_endpoint_sets_audits_for_its_session(sessions: Sessions) -> None:
    one, two = sessions.open(ANN), sessions.open(ANN)
    one.run("create table numbers (v int)")
    audits = Audits((Audit("positive", "select v from numbers where v < 0"),))
    one.run(f"set silt.audits = {json.dumps(audits.to_json())}")
    with pytest.raises(AuditFailedError):
        one.run("insert into numbers values (-1)")
    two.run("insert into numbers values (-2)")
    one.run("delete from numbers")
    one.run("insert into numbers values (3)")
    assert rows(two) == [3]
