"""Chooses the data tests that judge the rows of a node before their commit (`audit: before_commit`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure, Scope, Severity
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.materializations.reuse import has_hooks_after, is_built_in_batches
from dbt.adapters.silt.runs.logical_run.recorded_end import with_upstream

BEFORE_COMMIT: Final = "before_commit"
"""The value of `audit` for tests before the commit."""

VARIABLE: Final = "silt_audit"
"""The dbt variable that switches audits off."""

_OFF: Final = (None, False, "", "never")
_WARNINGS: Final = ("accept", "refuse")
_TABLES: Final = ("model", "seed", "snapshot")
_WITHOUT_ROWS: Final = ("view", "ephemeral")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "scope": tuple(each.value for each in Scope),
    "on_failure": tuple(each.value for each in OnFailure),
    "audit_warnings": _WARNINGS,
}
"""The configs with words as values -> the words; the first is the default."""


def is_audited(config: Mapping[str, Any], default: str | None) -> bool:
    """Returns whether the rows of a node with this config are judged before their commit.

    Args:
        default: the profile's `audit`.

    Raises:
        CompilationError: if `audit` has a value that means nothing here.
    """
    value = config.get("audit", default)
    if value not in (*_OFF, BEFORE_COMMIT):
        raise CompilationError(f"`audit` cannot be {value!r}: it is `{BEFORE_COMMIT}` or `never`")
    return bool(value == BEFORE_COMMIT)


def problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the problems of the configs of audits, as clauses."""
    for name, words in _CHOICES.items():
        if config.get(name, words[0]) not in words:
            yield f"`{name}` cannot be {config[name]!r}: it is {', '.join(words[:-1])} or {words[-1]}"
    try:
        _limit(config)
    except InvalidArgumentError as error:
        yield f"{error.problem}: {error.action}"


def audits_of(config: Mapping[str, Any], audits: tuple[Audit, ...], run_id: str, node: str, table: str) -> Audits:
    """Returns the audits of a node's own write.

    Args:
        config: the node's configs, without problems.
        run_id, node: the run and the node, for quarantined rows.
        table: the SQL name of the node's table.
    """
    word = {name: str(config.get(name, words[0])) for name, words in _CHOICES.items()}
    return Audits(
        audits,
        scope=Scope(word["scope"]),
        on_failure=OnFailure(word["on_failure"]),
        refuse_warnings=word["audit_warnings"] == "refuse",
        max_quarantined=_limit(config),
        run_id=run_id,
        node=node,
        table=table,
    )


def audit_of(test: Any, query: str, stored_in: str | None = None) -> Audit:
    """Returns a data test, whose compiled query is given, as an audit.

    Args:
        stored_in: SQL name of the table for its failing rows, if they are stored.
    """
    config = test.config
    return Audit(
        str(test.name),
        query,
        fail_calc=str(config.fail_calc),
        severity=Severity(str(config.severity).lower()),
        warn_if=str(config.warn_if),
        error_if=str(config.error_if),
        limit=config.limit,
        stored_in=stored_in,
    )


@dataclass(frozen=True)
class NodeTests:
    """The data tests of a node that writes a table.

    Args:
        nodes: the nodes of dbt's manifest, by their unique ids.
        unique_id: the unique id of the node.
        selected: the unique ids of the nodes that the command builds.
        exists: whether the table or view of a node exists.
    """

    nodes: Mapping[str, Any]
    unique_id: str
    selected: Collection[str]
    exists: Callable[[Any], bool]

    def before_commit(self) -> list[Any]:
        """Returns the tests for the rows of the node.

        A generic test belongs to its attached node, a singular test to each node in its SQL. A test with another table
        is left for later if the command may build that table after the node, if the table is built from the node, or if
        it does not exist yet.
        """
        return [each for each in self._of_node() if not self._reads_later_table(each)]

    @cached_property
    def _before(self) -> frozenset[str]:
        return self._ancestors(self.unique_id)

    def _of_node(self) -> Iterator[Any]:
        for each in self.nodes.values():
            if each.resource_type != "test" or self.unique_id not in each.depends_on.nodes:
                continue
            if getattr(each, "attached_node", None) in (None, self.unique_id):
                yield each

    def _reads_later_table(self, test: Any) -> bool:
        before = self._before
        left = [*test.depends_on.nodes]
        while left:
            name = left.pop()
            if name in before or name == self.unique_id or name not in self.nodes:
                continue
            if self._is_later(name):
                return True
            left.extend(self._parents(name))
        return False

    def _is_later(self, name: str) -> bool:
        node = self.nodes[name]
        kind = str(node.config.materialized)
        if kind == "ephemeral":
            return False
        if name in self.selected or not self.exists(node):
            return True
        return kind not in _WITHOUT_ROWS and self.unique_id in self._ancestors(name)

    def _ancestors(self, name: str) -> frozenset[str]:
        return with_upstream(self._parents(name), self._parents)

    def _parents(self, name: str) -> Sequence[str]:
        node = self.nodes.get(name)  # sources have no parents, and are not among the nodes
        return () if node is None else getattr(node.depends_on, "nodes", ())


def is_verdict_on_table(audits: Audits, model: Mapping[str, Any]) -> bool:
    """Returns whether the verdicts on a node's own write are valid for its table after the node: not for the new rows
    alone, before hooks, or before the next batch.
    """
    return audits.scope is Scope.STATE and not has_hooks_after(model) and not is_built_in_batches(model)


def writes_table(model: Mapping[str, Any]) -> bool:
    """Returns whether a node writes rows into its own table."""
    return model["resource_type"] in _TABLES and model["config"].get("materialized") not in (*_WITHOUT_ROWS, "external")


def _limit(config: Mapping[str, Any]) -> Limit:
    return Limit.of(config.get("max_quarantined", "1 %"))
