"""Macro API of data tests: a test that has passed on the same input need not run again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    import agate

    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.kernel.log.builds import Build
    from dbt.adapters.silt.engine.reuse import decision, passed_tests
    from dbt.adapters.silt.materializations import reuse
    from dbt.adapters.silt.runs import agate_tables
    from dbt.adapters.silt.runs import response as responses
    from dbt.adapters.silt.runs.response import SiltResponse
else:
    decision = lazy_module("dbt.adapters.silt.engine.reuse.decision")
    passed_tests = lazy_module("dbt.adapters.silt.engine.reuse.passed_tests")
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")
    agate_tables = lazy_module("dbt.adapters.silt.runs.agate_tables")
    responses = lazy_module("dbt.adapters.silt.runs.response")

logger = AdapterLogger("Silt")

_ENDS = ("should_warn", "should_error")
"""The columns of a test's result for warnings and failures."""


@dataclass(frozen=True)
class PassedResult:
    """The result of a test that is not run: the response, and the row that dbt reads."""

    response: SiltResponse
    table: agate.Table


class DataTestMethods(metaclass=AdapterMeta):
    """The part of the adapter that does not run a data test again on the input on which it has passed."""

    config: Any
    connections: SiltConnectionManager

    @available.parse_none
    def test_build(self, test: Mapping[str, Any], query: str) -> Build | None:
        """Returns the description of a data test with `reuse: unchanged`; empty for any other test."""
        context = self.connections.invocation.context
        if context.empty or context.sample or not reuse.is_reusable(test, self.config.credentials.reuse):
            return None
        return reuse.build_of_test(test, query, self.connections.surroundings(), time.time_ns() // 1_000_000)

    @available.parse_none
    def passed_test(self, build: Build, test: Mapping[str, Any], query: str) -> PassedResult | None:
        """Returns the result of a data test that has passed on the same input; empty if the test must run."""
        self.connections.node.context.test, self.connections.node.context.facts = build, None
        invocation = self.connections.invocation
        if invocation.full_refresh or reuse.is_switched_off(invocation.variables):
            return None
        with self.connections.exception_handler(f"look for the last result of {test['name']}"):
            known = self._passed_tests()
            passed = known.find(build.owner)
            found = known.decide(build, passed, query)
        if passed is None or not isinstance(found, decision.Reused):
            self.connections.node.context.built_because = str(found)
            return None
        response = responses.SiltResponse.of_passed_test(passed)
        logger.info(f"{test['name']}: {response}")
        row = agate_tables.one_row({"failures": 0, **dict.fromkeys(_ENDS, False)})
        return PassedResult(response, row)

    @available.parse_none
    def note_test(self, response: SiltResponse, result: agate.Table) -> None:
        """Records a data test that has run and passed, if the whole input is known."""
        context = self.connections.node.context
        facts, context.test = context.facts, None
        if facts is None:
            return
        response.reason = ", ".join(facts.unknown) or context.built_because
        if not _has_passed(result):
            return
        try:
            self._passed_tests().note(passed_tests.PassedTest(facts, self.connections.invocation.run_id))
        except SiltError as error:
            logger.debug(f"The result of the test is not recorded, so the test will run again: {error}")

    def _passed_tests(self) -> passed_tests.PassedTests:
        return passed_tests.PassedTests(self.connections.catalog, self.config.credentials.database)


def _has_passed(result: agate.Table) -> bool:
    """Returns whether the result of a test is a single row without a failure and without a warning."""
    if len(result.rows) != 1:
        return False
    values = dict(zip(map(str.lower, result.column_names), result.rows[0], strict=True))
    return all(values.get(name) is False for name in _ENDS)
