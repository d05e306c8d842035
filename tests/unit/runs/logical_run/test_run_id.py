"""Which run id a dbt command uses."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.materializations import reuse
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.run_id import VARIABLES, LogicalRun, Origin, RunSources, choose_run, run_id_text

KILLED = RunEntry("I1", "R1", "dbt run", "/shop", "2026-03-01T12:00:00+00:00")

MADE = "c73dcb96-4599-45eb-92d9-5453e2ddea2e"


def chosen(**fields: Any) -> LogicalRun:
    return choose_run(RunSources(**{"invocation_id": "I9", "variables": {}, **fields}))


class TestChoice:
    def test_a_variable_takes_precedence_over_all_other_sources(self) -> None:
        given = chosen(variables={"silt_run_id": "V"}, profile_run_id="P", retried=lambda: "R1")
        assert given == LogicalRun("V", Origin.VARIABLE)

    def test_the_id_of_a_retried_run_takes_precedence_over_the_profiles(self) -> None:
        assert chosen(profile_run_id="P", retried=lambda: "R1") == LogicalRun("R1", Origin.RETRY)

    @pytest.mark.parametrize(
        ("given", "run_id"),
        [
            (MADE[:8], MADE),
            (MADE[:20], MADE),
            (MADE, MADE),
            (MADE[:7], MADE[:7]),
            ("2026-03-01", "2026-03-01"),
            ("2026-03-01-evening", "2026-03-01-evening"),
            ("deadbeef", "deadbeef"),
            ("aaaaaaaa", "aaaaaaaa"),
        ],
    )
    def test_the_displayed_beginning_of_an_id_that_dbt_has_made_means_the_id(self, given: str, run_id: str) -> None:
        known = [MADE, "2026-03-01-evening", "aaaaaaaa", f"aaaaaaaa{MADE[8:]}"]
        assert chosen(variables={"silt_run_id": given}, known=known) == LogicalRun(run_id, Origin.VARIABLE)

    def test_a_beginning_of_several_ids_is_refused(self) -> None:
        other = f"{MADE[:-1]}0"
        with pytest.raises(InvalidSettingError, match=f"ids of 2 runs begin with `{MADE[:8]}`.*Type more"):
            chosen(variables={"silt_run_id": MADE[:8]}, known=[MADE, other, MADE])

    @pytest.mark.parametrize("unset", [None, "", "  "])
    def test_an_unset_profile_field_is_ignored(self, unset: str | None) -> None:
        assert chosen(profile_run_id=unset) == LogicalRun("I9", Origin.INVOCATION)

    def test_the_profiles_id_takes_precedence_over_an_unfinished_run(self) -> None:
        assert chosen(profile_run_id="P", unfinished=KILLED) == LogicalRun("P", Origin.PROFILE)

    def test_an_unfinished_run_is_continued(self) -> None:
        assert chosen(unfinished=KILLED) == LogicalRun("R1", Origin.RESUME, KILLED)

    def test_a_run_without_these_sources_uses_its_invocation_id(self) -> None:
        assert chosen() == LogicalRun("I9", Origin.INVOCATION)

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("silt_publsh", "silt_publish"),
            ("silt_run", "silt_run_id"),
            ("silt-run-id", "silt_run_id"),
            ("Silt_Reuse", "silt_reuse"),
        ],
    )
    def test_a_misspelt_variable_is_refused_with_the_right_name(self, written: str, meant: str) -> None:
        with pytest.raises(InvalidSettingError, match=f"`{written}` has no effect.*Did you mean `{meant}`"):
            chosen(variables={written: "x"})

    def test_variables_of_the_project_are_left_alone(self) -> None:
        assert chosen(variables={"run_date": 1, "silt_of_the_river": 2, "publish": 3}).run_id == "I9"

    def test_every_variable_of_this_package_is_known(self) -> None:
        assert reuse.VARIABLE in VARIABLES


class TestRunIdText:
    @pytest.mark.parametrize(
        ("given", "text"),
        [
            (None, ""),
            (" scheduled__2026-01-01T00:00:00+00:00 ", "scheduled__2026-01-01T00:00:00+00:00"),
            ("a/b c+d%2F", "a/b c+d%2F"),
            ("läuft-夜", "läuft-夜"),
            (0, "0"),
            (20260101, "20260101"),
            (date(2026, 1, 1), "2026-01-01"),
            (datetime(2026, 1, 1, tzinfo=timezone.utc), "2026-01-01T00:00:00+00:00"),
            ("x" * 500, "x" * 500),
        ],
    )
    def test_is_the_value_as_a_string(self, given: Any, text: str) -> None:
        assert run_id_text(given, "it") == text

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"a": 1}, "a string or a number"),
            (["a"], "a string or a number"),
            (True, "a string or a number"),
            ("x" * 501, "501 characters"),
            ("a\nb", "invisible characters"),
            ("a\u200bb", "invisible characters"),
        ],
    )
    def test_of_an_invalid_value_is_refused(self, given: Any, problem: str) -> None:
        with pytest.raises(InvalidSettingError, match=problem) as refusal:
            run_id_text(given, "the variable `silt_run_id`")
        assert "the variable `silt_run_id`" in str(refusal.value)
