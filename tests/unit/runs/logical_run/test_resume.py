"""Which unfinished run a command continues: the profile's `resume` and a terminal decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.resume import ResumeRule, parse_duration, resumable

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
TWO_HOURS = ResumeRule.of("2 hours", is_typed=False)


def entry(invocation: str, run: str, minutes_ago: int = 10, **fields: Any) -> RunEntry:
    started = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    return replace(RunEntry(invocation, run, "dbt run", "/shop", started), **fields)


OWN = entry("I9", "", minutes_ago=0)
KILLED = entry("I1", "R1")
STOPPED = entry("I1", "R1", has_results=True)


class TestResume:
    def test_an_unfinished_run_of_the_same_command_is_continued(self) -> None:
        killed = entry("I1", "R1", variables="{day: 2026-01-01, silt_run_id: R1}")
        assert resumable((killed,), replace(OWN, variables="{day: 2026-01-01}"), TWO_HOURS) == killed

    @pytest.mark.parametrize(
        "found",
        [
            entry("I1", "R1", minutes_ago=121),
            entry("I1", "R1", finished=True),
            entry("I1", "R1", running=True),
            entry("I9", "R9"),
            entry("I1", "R1", command="dbt seed"),
            entry("I1", "R1", variables="{day: 2026-01-01}"),
            entry("I1", "R1", target="prod"),
        ],
        ids=["too old", "finished", "running", "itself", "another command", "other variables", "another target"],
    )
    def test_a_run_is_not_continued(self, found: RunEntry) -> None:
        assert resumable((found,), OWN, TWO_HOURS) is None

    def test_only_the_newest_run_of_the_command_counts(self) -> None:
        killed, whole = entry("I1", "R1", minutes_ago=20), entry("I2", "R2", finished=True)
        assert resumable((killed, whole), OWN, TWO_HOURS) is None
        assert resumable((killed, replace(whole, command="dbt seed")), OWN, TWO_HOURS) == killed

    @pytest.mark.parametrize(
        ("field", "is_typed", "continued"),
        [
            (None, False, []),
            (None, True, [KILLED]),
            ("2 hours", False, [KILLED, STOPPED]),
            ("2 hours", True, [KILLED, STOPPED]),
            ("1 minute", False, []),
            ("1 minute", True, [KILLED]),
            ("off", True, []),
            ("OFF", False, []),
        ],
    )
    def test_a_killed_run_is_continued_on_a_terminal_and_other_runs_only_with_resume(
        self, field: str | None, is_typed: bool, continued: list[RunEntry]
    ) -> None:
        rule = ResumeRule.of(field, is_typed)
        assert [each for each in (KILLED, STOPPED) if resumable((each,), OWN, rule) == each] == continued

    def test_an_old_killed_run_is_continued_on_a_terminal_only_with_resume(self) -> None:
        old = entry("I1", "R1", minutes_ago=13 * 60)
        assert resumable((old,), OWN, ResumeRule.of(None, is_typed=True)) is None
        assert resumable((old,), OWN, ResumeRule.of("1 day", is_typed=True)) == old


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("2 hours", timedelta(hours=2)),
        ("1 day", timedelta(days=1)),
        ("90 minutes", timedelta(minutes=90)),
        ("30 Seconds", timedelta(seconds=30)),
    ],
)
def test_durations_are_written_in_words(text: str, length: timedelta) -> None:
    assert parse_duration(text, "resume") == length


def test_an_invalid_duration_is_refused_with_examples_of_valid_durations() -> None:
    with pytest.raises(ValidationError, match="`2 hours` or `30 minutes`, or `off`, not `on`"):
        ResumeRule.of("on", is_typed=True)
