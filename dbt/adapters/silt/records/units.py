"""Names units of work: each is a write of a node in a logical run, which a rerun finds in the table's log.

    silt/<project>/<node>/<run id>[/<batch id>@<window end>]/main[+<number>]
    silt/<project>/<node>/<run id>/clone
    silt/<project>/<node>/<run id>/<target>:<relation>[/<batch>]/<role>/<hash of the statement>/<occurrence>
    silt/<project>/<package>/<run id>/<target>/<on-run-start|on-run-end>/<hash of the statement>/<occurrence>
    silt/<project>/<macro>/<run id>/<target>/run_operation/<hash of the statement>/<occurrence>
    silt/<project>/<node>/<run id>/<target>/client/<hash of the statement>/<occurrence>

If a write has several statements, as with a project's own strategy, all but the last are parts with a number. The role
is `pre_hook` or `post_hook`; `python_model` for other tables that the code of a python model writes; `statement` for
statements that a model's SQL runs during compilation, and for other statements of a project's own materialization;
`client` for the statements of a client of `silt endpoint`, whose node is `endpoint` if its comments name no node.

The name is the `appId` of the `txn` action that the write commits together with its data; its version is 1, or 2 under
`--full-refresh`, plus 2 for each time that it is repeated under the same run id. A clone is not a build: the node
must still be built under the same run id. A statement may write any table, not only the node's own, so its name
contains the node's relation and the profile's target. `--empty` and `--sample` runs have units of their own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.audits.audit import Audits
    from dbt.adapters.silt.engine.kernel.log.builds import Build

FIRST, REFRESHED = 1, 2
"""The versions of a unit without and with `--full-refresh`."""

AGAIN = 2
"""The increment of a unit's version when it is repeated, which preserves whether it is a full refresh."""

_PREFIX = "silt"
_MAIN = "main"
_CLONE = "clone"
_STATEMENT = "statement"
_RUN_OPERATION = "run_operation"
_CLIENT = "client"
ENDPOINT = "endpoint"
"""The project and the node of statements of a client whose comments name none."""

_BATCH_PARTS, _BATCH_STATEMENT_PARTS = 6, 9
_LEAST_PARTS, _NODE_PARTS, _STATEMENT_PARTS = 5, 4, 8
_ON_RUN_HOOK = re.compile(r"operation\.(?P<package>[^.]+)\..*-(?P<role>on-run-start|on-run-end)-\d+")


@dataclass(frozen=True)
class Unit:
    """A write that must be committed exactly once.

    Attributes:
        app_id: the name, as in the module's docstring.
        version: FIRST or REFRESHED, plus AGAIN for each repetition.
        run_id: the logical run.
        checksum: checksum of the node's raw code, or of a seed's file; None for a hook.
        code_hash: hash of the node's compiled code and its configs, except for a hook.
        isolation_level: the node's own level, if configured.
        user_metadata: the node's own note on its commits, if configured.
        build: the build whose facts the commit records, if the node may be reused.
        audits: the tests that judge the rows before their commit, if the node is audited.
    """

    app_id: str
    version: int
    run_id: str
    checksum: str | None = field(default=None, compare=False)
    code_hash: str | None = field(default=None, compare=False)
    isolation_level: str | None = field(default=None, compare=False)
    user_metadata: str | None = field(default=None, compare=False)
    build: Build | None = field(default=None, compare=False)
    audits: Audits | None = field(default=None, compare=False)

    @property
    def txn(self) -> tuple[str, int]:
        return (self.app_id, self.version)

    @property
    def is_full_refresh(self) -> bool:
        return is_full_refresh(self.version)

    @property
    def is_batch(self) -> bool:
        """Whether it is a write of a microbatch."""
        return is_forgotten_on_replace(self.app_id)

    def part(self, number: int) -> Unit:
        """Returns the unit of a statement of this write; the last statement has this unit itself."""
        return replace(self, app_id=f"{self.app_id}+{number}", build=None, audits=None)


@dataclass(frozen=True)
class RunContext:
    """The common properties of all units of a dbt command."""

    project: str
    target: str
    run_id: str
    empty: bool = False
    sample: bool = False

    @property
    def suffix(self) -> str:
        return ("+empty" if self.empty else "") + ("+sample" if self.sample else "")


@dataclass(frozen=True)
class OwnWrite:
    """A node's own write, to be found in the node's table.

    Attributes:
        prefix: prefix of the names of all the node's units in this run.
        role: `main`, with the suffix of the command.
        batch: batch of a microbatch model; None matches with or without a batch.
        version: FIRST or REFRESHED.
    """

    prefix: str
    role: str
    batch: str | None
    version: int

    def among(self, recorded: Mapping[str, int]) -> str | None:
        """Returns the unit's app id if a table has recorded it; `recorded` maps app ids to versions."""
        return next(
            (app_id for app_id, version in recorded.items() if version >= self.version and self._is(app_id)), None
        )

    def _is(self, app_id: str) -> bool:
        if not app_id.startswith(self.prefix):
            return False
        *parts, role = app_id[len(self.prefix) :].split("/")
        return role == self.role and (parts == [self.batch] if self.batch else len(parts) <= 1)


@dataclass(frozen=True)
class StatementScope:
    """Names units of work that are statements, by the hash of their text.

    Attributes:
        own_write: the node's own write, for statements that precede it.
    """

    run_id: str
    prefix: str
    version: int
    own_write: OwnWrite | None = None

    def unit(self, statement: str, occurrence: int) -> Unit:
        return Unit(f"{self.key(statement)}/{occurrence}", self.version, self.run_id)

    def key(self, statement: str) -> str:
        """Returns the common part of the app ids of all occurrences of a statement."""
        return f"{self.prefix}/{text_hash(statement)}"


def main_unit(context: RunContext, model: Mapping[str, Any], full_refresh: bool, checksum: str | None) -> Unit:
    """Returns the unit of a node's own write.

    Args:
        context: context of the command.
        model: the node as macros see it, with its `unique_id` and, for a microbatch, its `batch`.
        full_refresh: whether this node is rebuilt.
        checksum: see Unit.
    """
    batch = _batch_parts(model)
    config = model["config"]
    return Unit(
        _path(context.project, model["unique_id"], context.run_id, *batch, f"{_MAIN}{context.suffix}"),
        _version(full_refresh),
        context.run_id,
        checksum,
        text_hash(json.dumps([model.get("compiled_code"), config], sort_keys=True, default=str)),
        config.get("isolation_level"),
        config.get("user_metadata"),
    )


def clone_unit(context: RunContext, model: Mapping[str, Any], full_refresh: bool) -> Unit:
    """Returns the unit of `dbt clone` of a node, which does not run the node's code."""
    app_id = _path(context.project, model["unique_id"], context.run_id, f"{_CLONE}{context.suffix}")
    return Unit(app_id, _version(full_refresh), context.run_id, user_metadata=model["config"].get("user_metadata"))


def model_hook_scope(
    context: RunContext, model: Mapping[str, Any], role: str, relation: str, full_refresh: bool
) -> StatementScope:
    """Returns the scope of a node's `pre_hook` or `post_hook`, or of other tables that a python model writes."""
    written_to = f"{context.target}:{relation}"
    prefix = _path(context.project, model["unique_id"], context.run_id, written_to, f"{role}{context.suffix}")
    own_write = _own_write(context, model["unique_id"], None, full_refresh) if role == "pre_hook" else None
    return StatementScope(context.run_id, prefix, _version(full_refresh), own_write)


def node_scope(context: RunContext, model: Mapping[str, Any], relation: str, full_refresh: bool) -> StatementScope:
    """Returns the scope of the statements of a node that are neither its own write nor a hook's.

    Args:
        model: the node, with its `unique_id` and, for a microbatch, its `batch`.
    """
    batch = _batch_parts(model)
    parts = (f"{context.target}:{relation}", *batch, f"{_STATEMENT}{context.suffix}")
    prefix = _path(context.project, model["unique_id"], context.run_id, *parts)
    own_write = _own_write(context, model["unique_id"], batch[0] if batch else None, full_refresh)
    return StatementScope(context.run_id, prefix, _version(full_refresh), own_write)


def run_operation_scope(context: RunContext, macro: str) -> StatementScope:
    """Returns the scope of the statements of `dbt run-operation` for a macro."""
    prefix = _path(context.project, macro, context.run_id, context.target, _RUN_OPERATION)
    return StatementScope(context.run_id, prefix, FIRST)


def client_scope(context: RunContext, node: str | None) -> StatementScope:
    """Returns the scope of the statements that a client of the endpoint sends.

    Args:
        node: dbt's unique id of the node that sends them, if a comment names it.
    """
    prefix = _path(context.project, node or ENDPOINT, context.run_id, context.target, _CLIENT)
    return StatementScope(context.run_id, prefix, FIRST)


def on_run_hook_scope(context: RunContext, unique_id: str, full_refresh: bool) -> StatementScope | None:
    """Returns the scope of a hook if the node is an on-run-start or on-run-end hook.

    The name does not contain the hook's number, so adding another hook before it does not change its units.
    """
    found = _ON_RUN_HOOK.fullmatch(unique_id)
    if not found:
        return None
    role = f"{found['role']}{context.suffix}"
    prefix = _path(context.project, found["package"], context.run_id, context.target, role)
    return StatementScope(context.run_id, prefix, _version(full_refresh))


def is_forgotten_on_replace(app_id: str) -> bool:
    """Returns whether it names a unit of a microbatch.

    Replacing the whole table deletes the unit's rows, and a later run writes them again. A node's other units stay
    recorded: repeated, they would add to the rows that replaced theirs.
    """
    parts = app_id.split("/")
    if parts[0] != _PREFIX:
        return False
    if len(parts) == _BATCH_PARTS:
        return "@" in parts[4] and parts[5].startswith(_MAIN)
    return len(parts) == _BATCH_STATEMENT_PARTS and "@" in parts[5] and parts[6].startswith(_STATEMENT)


def is_full_refresh(version: int) -> bool:
    """Returns whether a unit of that version was done under `--full-refresh`."""
    return version % AGAIN == REFRESHED % AGAIN


def is_statement_of(app_id: str, main: Unit) -> bool:
    """Returns whether it names a statement of a hook or of the code of the node of the write `main`, in that run."""
    node = "/".join(main.app_id.split("/")[:_NODE_PARTS])
    return app_id.startswith(f"{node}/") and len(app_id.split("/")) >= _STATEMENT_PARTS


def run_id_of(app_id: str) -> str | None:
    """Returns the logical run of a transaction identifier, if it is a unit of work."""
    parts = app_id.split("/")
    return _part(parts[3]) if len(parts) >= _LEAST_PARTS and parts[0] == _PREFIX else None


def text_hash(statement: str) -> str:
    """Returns a short hash of a statement's rendered text."""
    return hashlib.sha256(statement.strip().encode()).hexdigest()[:16]


def _version(full_refresh: bool) -> int:
    return REFRESHED if full_refresh else FIRST


def _own_write(context: RunContext, node: str, batch: str | None, full_refresh: bool) -> OwnWrite:
    prefix = f"{_path(context.project, node, context.run_id)}/"
    escaped = None if batch is None else _escaped(batch)
    return OwnWrite(prefix, f"{_MAIN}{context.suffix}", escaped, _version(full_refresh))


def _batch_parts(model: Mapping[str, Any]) -> list[str]:
    """Returns the batch's part of an app id; empty if the node is not a microbatch."""
    batch = model.get("batch")
    return [f"{batch['id']}@{_window_end(batch['event_time_end'])}"] if batch else []


def _window_end(end: Any) -> str:
    return end.isoformat() if isinstance(end, datetime) else str(end)


def _path(*parts: str) -> str:
    """Joins the parts with slashes; escapes slashes in parts, so that names are unique."""
    return "/".join([_PREFIX, *map(_escaped, parts)])


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _part(escaped: str) -> str:
    return escaped.replace("%2F", "/").replace("%25", "%")
