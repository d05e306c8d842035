"""Decides which units of work a rerun under the same run id repeats, although an earlier command has done them.

After a kill, or after a lost answer, a rerun does the remaining work and changes nothing else. After a command that
completed with failures, a person corrects a source or the code and types the same command: the nodes that led to the
failures, and have changed since, are then repeated, if that applies no row twice. Tables have changed since if their
logs say so, other inputs if their fingerprints differ.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.commit_facts import EarlierCommit, find_unit
from dbt.adapters.silt.records.units import AGAIN, REFRESHED, Unit, is_full_refresh, is_statement_of, run_id_of
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.sql import tokens
    from dbt.adapters.silt.engine.sql.query import references
else:
    tokens = lazy_module("dbt.adapters.silt.engine.sql.tokens")
    references = lazy_module("dbt.adapters.silt.engine.sql.query.references")

_BY_KEY: Final = ("merge", "delete+insert")
_BY_CONDITION: Final = ("insert_overwrite", "replace_where", "microbatch", "changed_keys")
_COMPUTED_UPDATES: Final = ("merge_clauses", "merge_update_set_expressions", "not_matched_by_source_action")
_HIDES_ROWS: Final = ("incremental_predicates", "predicates")
"""With a predicate, a repetition may not find an existing row by its key, and would insert its new values again."""


@dataclass(frozen=True)
class Decision:
    """A rerun's decision about a unit of work that its table may already hold.

    Attributes:
        unit: the unit with its commit version; the table holds that version if the unit is not repeated.
        statements_version: the version for hook statements on the same table, if it is not the usual version.
        reasons: why the unit is repeated, for display; empty if it is not.
        hidden: the changes since, if the unit cannot be repeated without applying rows twice.
    """

    unit: Unit
    statements_version: int | None = None
    reasons: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rerun:
    """An earlier command of the same run that completed with failures.

    Attributes:
        upstream: dbt's unique ids of the nodes and tests that failed, and of all nodes that they are built from.
    """

    catalog: Catalog
    upstream: frozenset[str]
    files: Container[str] = ()

    def decide(self, unit: Unit, model: Mapping[str, Any], log: DeltaLog) -> Decision:
        """Decides about a node's own write.

        Args:
            model: the node as macros see it.
            log: the log of the node's table.
        """
        snapshot = log.snapshot()
        recorded = snapshot.transaction_version(unit.app_id) or 0
        usual = usual_decision(unit, recorded)
        if not self.upstream or recorded < usual.unit.version:
            return usual
        earlier = find_unit(log, unit.app_id)
        reasons = () if earlier is None else self._reasons(unit, model, log, earlier)
        if not reasons:
            return usual
        if not is_repeatable(model) or _has_own_statements(unit, model, snapshot):
            return replace(usual, hidden=reasons)
        version = recorded + AGAIN
        return Decision(replace(unit, version=version), version, reasons)

    def _reasons(self, unit: Unit, model: Mapping[str, Any], log: DeltaLog, earlier: EarlierCommit) -> tuple[str, ...]:
        """Returns later changes, if the node is upstream of a failure, or of an input that this run has repeated."""
        text = str(model.get("compiled_code") or "")
        changed = changed_inputs(self.catalog, log.name, earlier.commit.info, text, self.files)
        is_led_to = model["unique_id"] in self.upstream
        if not is_led_to and not any(each.log and _is_done_again(each.log, unit.run_id) for each in changed):
            return ()
        code = ("its code or configs changed",) if _code_changed(unit, model, earlier) else ()
        return (*code, *(each.text for each in changed))


def usual_decision(unit: Unit, recorded: int) -> Decision:
    """Returns the decision without failures: a unit is done once, and a full refresh after the writes it replaces.

    Args:
        recorded: the version under which the table holds the unit, or 0.
    """
    if unit.is_full_refresh and recorded > REFRESHED and not is_full_refresh(recorded):
        unit = replace(unit, version=recorded + 1)
    version = max(unit.version, recorded)
    return Decision(unit, version if version > REFRESHED else None)


def is_repeatable(model: Mapping[str, Any]) -> bool:
    """Returns whether the node's own write leaves the same rows if it is done twice."""
    config = model["config"]
    if _reads_own_table(model):
        return False
    if config.get("materialized") != "incremental":
        return True
    if any(config.get(name) for name in _COMPUTED_UPDATES):
        return False
    strategy = config.get("incremental_strategy") or ("merge" if config.get("unique_key") else "append")
    if strategy in _BY_KEY:
        return bool(config.get("unique_key")) and not any(config.get(name) for name in _HIDES_ROWS)
    return strategy in _BY_CONDITION


def _reads_own_table(model: Mapping[str, Any]) -> bool:
    """Returns whether the node's code reads the table that it writes, or may do so."""
    code, own = str(model.get("compiled_code") or ""), model.get("relation_name")
    if model.get("language") == "python":
        return "dbt.this" in str(model.get("raw_code"))
    if not code or not own:
        return False
    try:
        return any(_names(reference.parts, own) for reference in references.table_references(code))
    except (StatementSyntaxError, UnsupportedStatementError):
        return True


def _names(reference: Sequence[str], relation: str) -> bool:
    """Returns whether a name, which may lack its first parts, can be that of a relation."""
    own = [part.lower() for part in tokens.identifiers(relation)]
    return own[-len(reference) :] == [part.lower() for part in reference]


def _code_changed(unit: Unit, model: Mapping[str, Any], earlier: EarlierCommit) -> bool:
    """Compares the raw code or the seed's file, then the compiled code and the configs.

    An incremental model compiles to different code when it creates its table: then only its raw code is compared.
    """
    facts = earlier.facts
    if None not in (facts.node_checksum, unit.checksum) and facts.node_checksum != unit.checksum:
        return True
    created = (earlier.commit.info.operation or "").startswith("CREATE")
    if facts.code_hash is None or (created and model["config"].get("materialized") == "incremental"):
        return False
    return facts.code_hash != unit.code_hash


def _has_own_statements(unit: Unit, model: Mapping[str, Any], snapshot: Snapshot) -> bool:
    """Returns whether hook statements changed the table in this run, and the node's own write does not replace it."""
    if model["config"].get("materialized") not in ("incremental", "snapshot"):
        return False
    return any(is_statement_of(app_id, unit) for app_id in snapshot.transactions)


def _is_done_again(log: DeltaLog, run_id: str) -> bool:
    transactions = log.snapshot().transactions.items()
    return any(each.version > REFRESHED and run_id_of(app_id) == run_id for app_id, each in transactions)
