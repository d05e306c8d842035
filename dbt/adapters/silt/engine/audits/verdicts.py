"""The verdicts of audits, with the meaning of dbt's tests: their SQL and their results."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult, Audits, OnFailure, Severity
from dbt.adapters.silt.engine.kernel.errors import AuditFailedError, InvalidStatementError


class Verdict(NamedTuple):
    """The verdict of an audit, as its query returns it.

    Attributes:
        failures: the value of `fail_calc`; None if it is null.
    """

    failures: str | None
    should_warn: bool | None
    should_error: bool | None


_COMPARISON: Final = re.compile(r"\s*(!=|<>|==?|>=?|<=?)\s*([0-9]{1,18})\s*")
_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    **dict.fromkeys(("!=", "<>"), operator.ne),
    **dict.fromkeys(("=", "=="), operator.eq),
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def verdict_sql(audit: Audit) -> str:
    """Returns the query of an audit's verdict: a row with `failures`, `should_warn` and `should_error`."""
    return _compared(audit, f"select {audit.fail_calc} as failures from (\n{failing_sql(audit)}\n) dbt_internal_test")


def failing_sql(audit: Audit) -> str:
    """Returns the query of the failing rows that an audit looks at."""
    return audit.query if audit.limit is None else f"{audit.query}\nlimit {audit.limit}"


def verdict_of(audit: Audit, count: int) -> Verdict | str:
    """Returns the verdict of an audit that counts rows, of which so many fail, or the query of it."""
    least = count if audit.limit is None else min(count, audit.limit)
    warns, fails = (_compared_with(least, each) for each in (audit.warn_if, audit.error_if))
    if warns is None or fails is None:
        return _compared(audit, f"select {least}L as failures")
    return Verdict(str(least), warns, fails)


def _compared_with(count: int, condition: str) -> bool | None:
    """Returns the value of a comparison with a number; None for another condition."""
    found = _COMPARISON.fullmatch(condition)
    return None if found is None else _OPERATORS[found[1]](count, int(found[2]))


def _compared(audit: Audit, failures: str) -> str:
    return (
        f"select cast(failures as string) as failures, cast((failures {audit.warn_if}) as boolean) as should_warn, "
        f"cast((failures {audit.error_if}) as boolean) as should_error from ({failures})"
    )


def result_of(audit: Audit, verdict: Verdict) -> AuditResult:
    """Returns the result for a verdict, with dbt's words.

    Raises:
        InvalidStatementError: if the number of failures is not a whole number.
    """
    count = _whole(audit, verdict.failures)
    got = f"Got {count} result{'' if count == 1 else 's'}, configured to"
    if audit.severity is Severity.ERROR and verdict.should_error:
        return AuditResult(audit.name, "fail", count, f"{got} fail if {audit.error_if}")
    if verdict.should_warn:
        return AuditResult(audit.name, "warn", count, f"{got} warn if {audit.warn_if}")
    return AuditResult(audit.name, "pass")


def _whole(audit: Audit, failures: str | None) -> int:
    try:
        value = None if failures is None else Decimal(failures)
    except InvalidOperation:
        value = None
    if value is None or not value.is_finite() or value != int(value):
        found = "null" if failures is None else failures
        raise not_evaluated(audit.name, f"{audit.fail_calc} is {found}, which is not a whole number", None)
    return int(value)


def not_evaluated(name: str, problem: str, table: str | None) -> InvalidStatementError:
    """Returns the error for an audit that has no verdict."""
    return InvalidStatementError(
        f"the audit `{name}` cannot be evaluated: {problem}",
        remedy="Nothing was written: correct the audit's query, or leave the audit out",
        table=table,
    )


def check(audits: Audits, results: Sequence[AuditResult], table: str) -> None:
    """Checks that the commit whose audits have these results may be made.

    Raises:
        AuditFailedError: if an audit refuses it.
    """
    refused = () if audits.on_failure is OnFailure.WARN else tuple(refusing(audits, results))
    if refused:
        raise failed(table, refused, results)


def refusing(audits: Audits, results: Iterable[AuditResult]) -> Iterable[AuditResult]:
    """Yields the results that are failures: with `refuse_warnings`, warnings too."""
    bad = ("fail", "warn") if audits.refuse_warnings else ("fail",)
    return (each for each in results if each.status in bad)


def failed(table: str, refused: Sequence[AuditResult], results: Sequence[AuditResult]) -> AuditFailedError:
    """Returns the error for audits that refuse a commit."""
    said = "; ".join(f"`{each.name}` ({each.message}{_stored(each)})" for each in refused)
    words = "the audit fails" if len(refused) == 1 else f"{len(refused)} audits fail"
    return AuditFailedError(f"{words}: {said}", table=table, details={"results": tuple(results)})


def _stored(result: AuditResult) -> str:
    return "" if result.stored_in is None else f"; its failing rows are in {result.stored_in}"


def too_many(audits: Audits, counts: tuple[int, int], table: str, results: Sequence[AuditResult]) -> AuditFailedError:
    """Returns the error for a commit of which more rows would be quarantined than may be.

    Args:
        counts: the number of rows to quarantine, and the number of rows that the statement would write.
    """
    bad, written = counts
    stored = "".join(
        f"; the rows that fail `{each.name}` are in {each.stored_in}" for each in results if each.stored_in
    )
    return AuditFailedError(
        f"{bad:,} of {written:,} rows fail audits, and at most {audits.max_quarantined} may be quarantined{stored}",
        remedy="Nothing was written: correct the source, or raise `max_quarantined` if so many bad rows are expected",
        table=table,
        details={"results": tuple(results)},
    )


def is_refused_by_a_row(audit: Audit, refuse_warnings: bool) -> bool:
    """Returns whether a single failing row refuses a commit, so that the row is quarantined instead."""
    verdict = verdict_of(audit, 1)
    if not isinstance(verdict, Verdict):
        return False
    status = result_of(audit, verdict).status
    return status == "fail" or (refuse_warnings and status == "warn")
