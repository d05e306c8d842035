"""Decides whether a command continues the last run of the same command, which did not finish.

A run that a person stopped (Ctrl-C) has left results, and is continued only if the profile's `resume` says so. A killed
run has left no results; it is also continued on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.silt.engine.kernel.lengths_of_time import length_of_time
from dbt.adapters.silt.records.run_registry import RunEntry

OFF = "off"
"""The value of `resume` that continues nothing, in any case; YAML reads it as false."""

ON_A_TERMINAL = timedelta(hours=12)
"""How long after its start a killed run is continued by the same command typed on a terminal."""


@dataclass(frozen=True)
class ResumeRule:
    """How long after its start a run is continued; None: never.

    Attributes:
        stopped: the limit for a run that was stopped and has left results.
        killed: the limit for a run that was killed, or that an error aborted.
    """

    stopped: timedelta | None = None
    killed: timedelta | None = None

    @classmethod
    def of(cls, field: str | None, is_typed: bool) -> ResumeRule:
        """Creates the rule of a command.

        Args:
            field: the profile's `resume`.
            is_typed: whether a person has typed the command on a terminal.

        Raises:
            ValidationError: if the field is not a length of time.
        """
        given = parse_resume(field)
        if is_off(field) or not is_typed:
            return cls(given, given)
        return cls(given, max(given or ON_A_TERMINAL, ON_A_TERMINAL))

    def limit(self, entry: RunEntry) -> timedelta | None:
        return self.stopped if entry.has_results else self.killed


def resumable(entries: Sequence[RunEntry], own: RunEntry, rule: ResumeRule) -> RunEntry | None:
    """Returns the last run of the same command, if it began within the rule's time, did not finish, and no longer runs.

    Another command, other variables or another target request different work: under the id of the unfinished run, work
    that it has committed would be skipped.

    Args:
        entries: the runs so far.
        own: this command, with any run id.
    """
    newest = last_of_work(entries, own)
    if newest is None or not newest.is_unfinished:
        return None
    limit = rule.limit(newest)
    return newest if limit is not None and own.started - newest.started <= limit else None


def last_of_work(entries: Sequence[RunEntry], own: RunEntry) -> RunEntry | None:
    """Returns the newest other run of the same command line, variables and target."""
    others = [each for each in entries if each.invocation_id != own.invocation_id and each.work == own.work]
    return max(others, key=lambda each: each.started, default=None)


def is_off(field: str | None) -> bool:
    """Returns whether `resume` turns continuation off."""
    return field is not None and field.strip().lower() in (OFF, "no", "false", "never")


def parse_resume(field: str | None) -> timedelta | None:
    """Returns the length of time in `resume`, or None if it is unset or off.

    Raises:
        ValidationError: if it is not a length of time.
    """
    return None if not field or is_off(field) else parse_duration(field, "resume")


def parse_duration(text: str, name: str) -> timedelta:
    """Parses a length of time such as "90 minutes", "2 hours" or "1 day".

    Args:
        name: the name of the profile's field.

    Raises:
        ValidationError: if the text is not a length of time.
    """
    try:
        return length_of_time(str(text))
    except ValueError as error:
        raise ValidationError(
            f"`{name}` must be a length of time such as `2 hours` or `30 minutes`, or `off`, not `{text}`"
        ) from error
