"""Units of work: one write of one node in one logical run, named so that a rerun finds it in the table's log.

    silt/<project>/<node>/<run id>[/<batch id>@<window end>]/main[+<number>]
    silt/<project>/<node>/<run id>/clone
    silt/<project>/<node>/<run id>/<target>:<relation>/<role>/<hash of the statement>/<occurrence>
    silt/<project>/<package>/<run id>/<target>/<on-run-start|on-run-end>/<hash of the statement>/<occurrence>

Of a write of several statements, as a project's own strategy may give, all but the last are parts with a number.
The role is `pre_hook` or `post_hook`, or `python_model` for what the code of one writes beside its own table.

The name is the `appId` of the `txn` action that the write commits together with its data; its version is 1, or 2 under
`--full-refresh`. A clone is no build: under the same run id the node is still to be built. A hook writes to any table,
not only to the node's own, so its name holds the node's relation and the profile's target. `--empty` and `--sample`
runs are work of their own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

FIRST, REFRESHED = 1, 2
"""The version of a unit, without and with `--full-refresh`."""

_PREFIX = "silt"
_MAIN = "main"
_CLONE = "clone"
_BATCH_PARTS = 6
_LEAST_PARTS = 5
_ON_RUN_HOOK = re.compile(r"operation\.(?P<package>[^.]+)\..*-(?P<role>on-run-start|on-run-end)-\d+")


@dataclass(frozen=True)
class Unit:
    """A write that must take place once.

    Attributes:
        app_id: the name, as in the module's docstring.
        version: FIRST or REFRESHED.
        run_id: the logical run.
        checksum: of the node's raw code, or of a seed's file; None for a hook.
        isolation_level: the node's own, where it asks for one.
        user_metadata: the node's own note on its commits, where it has one.
    """

    app_id: str
    version: int
    run_id: str
    checksum: str | None = field(default=None, compare=False)
    isolation_level: str | None = field(default=None, compare=False)
    user_metadata: str | None = field(default=None, compare=False)

    @property
    def txn(self) -> tuple[str, int]:
        return (self.app_id, self.version)

    @property
    def is_batch(self) -> bool:
        """Whether it is the write of a microbatch."""
        return goes_with_rows(self.app_id)

    def part(self, number: int) -> Unit:
        """The unit of one of several statements that make up the write, before the last: that one is the whole."""
        return replace(self, app_id=f"{self.app_id}+{number}")


@dataclass(frozen=True)
class RunContext:
    """What all units of one dbt command have in common."""

    project: str
    target: str
    run_id: str
    empty: bool = False
    sample: bool = False

    @property
    def suffix(self) -> str:
        return ("+empty" if self.empty else "") + ("+sample" if self.sample else "")


@dataclass(frozen=True)
class HookScope:
    """The place of the statements that a hook runs; each of them is a unit by its own text."""

    run_id: str
    prefix: str
    version: int

    def unit(self, statement: str, occurrence: int) -> Unit:
        return Unit(f"{self.prefix}/{text_hash(statement)}/{occurrence}", self.version, self.run_id)


def main_unit(context: RunContext, model: Mapping[str, Any], full_refresh: bool, checksum: str | None) -> Unit:
    """The unit of a node's own write.

    Args:
        context: the command's.
        model: the node as macros see it, with its `unique_id` and, for a microbatch, its `batch`.
        full_refresh: whether this node is rebuilt.
        checksum: see Unit.
    """
    batch = model.get("batch")
    places = [f"{batch['id']}@{_window_end(batch['event_time_end'])}"] if batch else []
    app_id = _path(context.project, model["unique_id"], context.run_id, *places, f"{_MAIN}{context.suffix}")
    config = model["config"]
    return Unit(
        app_id,
        _version(full_refresh),
        context.run_id,
        checksum,
        config.get("isolation_level"),
        config.get("user_metadata"),
    )


def clone_unit(context: RunContext, model: Mapping[str, Any], full_refresh: bool) -> Unit:
    """The unit of `dbt clone` of a node, whose own code is not run."""
    app_id = _path(context.project, model["unique_id"], context.run_id, f"{_CLONE}{context.suffix}")
    return Unit(app_id, _version(full_refresh), context.run_id, user_metadata=model["config"].get("user_metadata"))


def model_hook_scope(
    context: RunContext, model: Mapping[str, Any], role: str, relation: str, full_refresh: bool
) -> HookScope:
    """The scope of a node's `pre_hook` or `post_hook`."""
    place = f"{context.target}:{relation}"
    prefix = _path(context.project, model["unique_id"], context.run_id, place, f"{role}{context.suffix}")
    return HookScope(context.run_id, prefix, _version(full_refresh))


def on_run_hook_scope(context: RunContext, unique_id: str, full_refresh: bool) -> HookScope | None:
    """The scope of an on-run-start or on-run-end hook, or None if the node is none.

    The hook's number is no part of it: a hook that is added before another does not make that one new work.
    """
    found = _ON_RUN_HOOK.fullmatch(unique_id)
    if not found:
        return None
    role = f"{found['role']}{context.suffix}"
    prefix = _path(context.project, found["package"], context.run_id, context.target, role)
    return HookScope(context.run_id, prefix, _version(full_refresh))


def goes_with_rows(app_id: str) -> bool:
    """Whether it names a microbatch: replacing the whole table takes its rows away, and a later run writes them again.

    A node's other units stay known: done again, they would add to what replaced their rows.
    """
    parts = app_id.split("/")
    return len(parts) == _BATCH_PARTS and parts[0] == _PREFIX and "@" in parts[4] and parts[5].startswith(_MAIN)


def run_id_of(app_id: str) -> str | None:
    """The logical run that a transaction identifier belongs to; None where it is no unit of work."""
    parts = app_id.split("/")
    return _part(parts[3]) if len(parts) >= _LEAST_PARTS and parts[0] == _PREFIX else None


def text_hash(statement: str) -> str:
    """A short hash of a statement's rendered text."""
    return hashlib.sha256(statement.strip().encode()).hexdigest()[:16]


def _version(full_refresh: bool) -> int:
    return REFRESHED if full_refresh else FIRST


def _window_end(end: Any) -> str:
    return end.isoformat() if isinstance(end, datetime) else str(end)


def _path(*parts: str) -> str:
    """The parts with slashes between them; a slash within a part is escaped, so that two names are never one."""
    return "/".join([_PREFIX, *(part.replace("%", "%25").replace("/", "%2F") for part in parts)])


def _part(escaped: str) -> str:
    return escaped.replace("%2F", "/").replace("%25", "%")
