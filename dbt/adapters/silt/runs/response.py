"""SiltResponse: the result of a statement for dbt, and its line in the journal.

dbt drops the adapter response of a node that fails after its commit, and of every microbatch model. The facts are kept
in the journal's line, the line in dbt's log, and the commit's own commitInfo (see `commit_facts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.silt.engine.kernel.printable import number_of, short_id
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.records.journal import JournalEntry

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.audits.audit import AuditResult
    from dbt.adapters.silt.engine.builds.decision import Cloned, Reused
    from dbt.adapters.silt.engine.builds.passed_tests import PassedTest
    from dbt.adapters.silt.engine.commands.target import Outcome
    from dbt.adapters.silt.records.commit_facts import CommitFacts
    from dbt.adapters.silt.records.units import Unit

_MAKES_TABLE: Final = ("CREATE", "REPLACE")
_REUSE: Final = "REUSE"
_AUDIT: Final = "AUDIT"


@dataclass
class SiltResponse(AdapterResponse):
    """The result of a statement, as in `run_results.json`.

    Attributes:
        run_id, app_id, txn_version: the statement's unit of work, if any.
        table, table_version, operation: the commit's table, version and operation.
        counts: the rows, files and attempts, each a member of its own in `run_results.json`.
        skipped: whether an earlier commit had done this unit of work; `table_version` is then that commit's.
        reused: whether the node was not built because its table already holds what the build would write;
            `table_version` and `run_id` then name the commit that built it.
        changed_since: the changes after which a skipped write that led to a failure should be repeated, but cannot be.
        reason: why a node or a test that may be reused was reused, built or run; or why `changed_keys` replaced all
            rows.
        note: the effect of a maintenance statement as a line, for `dbt run-operation`.
        audits: the verdicts of the tests that have judged the rows before their commit, each with its name, status and
            number of failures, and the table of its failing rows, if they are stored.
        quarantined: the number of rows that went to the quarantine table instead.
        audited: whether this is the verdict of a test that has judged the rows before their commit, and was not run
            again.
    """

    run_id: str | None = None
    app_id: str | None = None
    txn_version: int | None = None
    table: str | None = None
    table_version: int | None = None
    operation: str | None = None
    counts: WriteCounts = field(default_factory=WriteCounts)
    skipped: bool | None = None
    reused: bool | None = None
    changed_since: str | None = None
    reason: str | None = None
    note: str | None = None
    audits: list[dict[str, Any]] | None = None
    quarantined: int | None = None
    audited: bool | None = None

    def __post_serialize__(self, data: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
        """Makes each count a member of its own; omits unknown counts if dbt omits unknown values."""
        omits_unknown = None not in data.values()
        counts = data.pop("counts").items()
        return data | {name: count for name, count in counts if count is not None or not omits_unknown}

    @classmethod
    def of_reuse(cls, decision: Reused, note: str = "") -> SiltResponse:
        """Creates the response of a node that is reused; `note` follows in the message."""
        return cls(
            _message=f"reused: {decision}{note}",
            code=_REUSE,
            run_id=decision.run_id,
            table=decision.table,
            table_version=decision.version,
            operation=_REUSE,
            skipped=True,
            reused=True,
            reason=str(decision),
        )

    def note_clone(self, decision: Cloned, note: str) -> None:
        """Describes the clone of another target's table; `note` follows in the message."""
        self.reason = str(decision)
        self._message = f"cloned: {self.reason}{note}"

    @classmethod
    def of_passed_test(cls, passed: PassedTest) -> SiltResponse:
        """Creates the response of a data test that is not run because it has passed on the same input."""
        return cls._of_known(str(passed), passed.run_id)

    @classmethod
    def of_view(cls, last: PassedTest) -> SiltResponse:
        """Creates the response of a view that is not created again, because nothing that determines it has changed."""
        run = f" (run {short_id(last.run_id)})" if last.run_id else ""
        return cls._of_known(f"unchanged since it was created{run}", last.run_id)

    @classmethod
    def _of_known(cls, reason: str, run_id: str | None) -> SiltResponse:
        return cls(
            _message=f"reused: {reason}",
            code=_REUSE,
            run_id=run_id,
            operation=_REUSE,
            skipped=True,
            reused=True,
            reason=reason,
        )

    @classmethod
    def of_audited_test(cls, result: AuditResult, write: SiltResponse) -> SiltResponse:
        """Creates the response of a data test that has judged a write before its commit, and is not run again."""
        return cls(
            _message=f"judged before the commit of {write.table}@v{write.table_version}",
            code=_AUDIT,
            run_id=write.run_id,
            table=write.table,
            table_version=write.table_version,
            operation=_AUDIT,
            quarantined=result.quarantined or None,
            audited=True,
        )

    def add_audits(self, outcome: Outcome) -> None:
        """Adds the verdicts of the tests that have judged the rows before their commit."""
        if outcome.audits:
            self.audits = list(map(_verdict, outcome.audits))
            self._message = f"{self._message}; {_audited(outcome.audits)}"
        if outcome.quarantined:
            self.quarantined = outcome.quarantined
            self._message = f"{self._message}; {number_of(outcome.quarantined, 'row')} quarantined"

    def add_reason(self, reason: str | None) -> None:
        """Adds the reason why a node that may be reused was built."""
        if reason is not None:
            self.reason = reason
            self._message = f"{self._message}; built: {reason}"

    @classmethod
    def of(cls, outcome: Outcome | None, unit: Unit | None) -> SiltResponse:
        """Creates the response of a statement; `outcome` is None if it changes no table."""
        if outcome is None:
            return cls("OK", code="OK")
        return cls(
            _message=_skip_message(outcome, unit) if outcome.skipped else _message(outcome),
            reason=outcome.rebuilt,
            code=outcome.operation,
            rows_affected=outcome.rows_affected,
            run_id=unit.run_id if unit else None,
            app_id=unit.app_id if unit else None,
            txn_version=unit.version if unit else None,
            table=outcome.table,
            table_version=outcome.version,
            operation=outcome.operation,
            counts=outcome.counts,
            skipped=outcome.skipped,
        )


def journal_entry(response: SiltResponse, facts: CommitFacts) -> JournalEntry:
    """Returns the line of a commit, or of a skipped unit of work, which has no counts because it did nothing."""
    assert response.table is not None
    who = ("invocation_id", "target", "run_id", "node_id", "batch_id", "app_id")
    return JournalEntry(
        time=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        table=response.table,
        skipped=bool(response.skipped),
        reason=response.reason,
        audits=response.audits,
        txn_version=response.txn_version,
        table_version=response.table_version,
        operation=response.operation,
        counts=WriteCounts() if response.skipped else response.counts,
        **{name: getattr(facts, name) for name in who},
    )


def _verdict(result: AuditResult) -> dict[str, Any]:
    stored = {} if result.stored_in is None else {"stored_in": result.stored_in}
    return {"name": result.name, "status": result.status, "failures": result.failures, **stored}


def _audited(results: Sequence[AuditResult]) -> str:
    """Returns the verdicts of audits as a clause, such as "audits: 2 passed, 1 warned"."""
    counts: Counter[str] = Counter(each.status for each in results)
    verbs = {"pass": "passed", "warn": "warned", "fail": "failed"}
    return "audits: " + ", ".join(f"{counts[each]:,} {verb}" for each, verb in verbs.items() if counts[each])


def _message(outcome: Outcome) -> str:
    """Returns a message such as "v12: 4,120 inserted, 310 updated in 3 files"."""
    files = f" in {number_of(outcome.files_added, 'file')}" if outcome.files_added else ""
    version = "" if outcome.version is None else f"v{outcome.version}: "
    rebuilt = "" if outcome.rebuilt is None else f"; all rows replaced: {outcome.rebuilt}"
    return f"{version}{_changed_rows(outcome)}{files}{rebuilt}"


def _changed_rows(outcome: Outcome) -> str:
    """Returns the changed rows; for a table created without rows, the number of rows that it had before."""
    if outcome.unchanged:
        return "the same rows as before"
    if outcome.rows_affected is None:
        return outcome.operation.lower()
    verbs = ("inserted", "updated", "deleted")
    rows = [f"{count:,} {verb}" for count, verb in zip(outcome.rows, verbs, strict=True) if count]
    if rows:
        return ", ".join(rows)
    if outcome.operation.startswith(_MAKES_TABLE) and outcome.attempts:
        return "0 rows" if outcome.rows_before is None else f"0 rows, {outcome.rows_before:,} before"
    is_unknown = outcome.rows_deleted is None and outcome.files_removed
    return f"{number_of(outcome.files_removed, 'file')} removed" if is_unknown else "no row changed"


def _skip_message(outcome: Outcome, unit: Unit | None) -> str:
    who = f"run {short_id(unit.run_id)} has done it" if unit else "it is done already"
    version = "" if outcome.version is None else f"@v{outcome.version}"
    since = (
        "" if outcome.emptied_at is None else f"; all rows were deleted from the table since, by v{outcome.emptied_at}"
    )
    return f"skipped, nothing written: {who}, as {outcome.table}{version}{since}"
