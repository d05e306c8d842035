"""The text of a status line."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.status_lines.line import Running, Stages, counted_text

MERGE = Running("orders", "/* dbt */ merge into a using b", started=10.0)


@pytest.mark.parametrize(
    ("stages", "counted", "says"),
    [
        (Stages(), None, "    0:12  orders: merge"),
        (Stages(12, 40, 1_234_567), None, "    0:12  orders: merge, 12 of 40 tasks, 1.2 M rows"),
        (Stages(0, 1200, 999), None, "    0:12  orders: merge, 0 of 1,200 tasks, 999 rows"),
        (Stages(1, 2, 0, 5_400_000_000), None, "    0:12  orders: merge, 1 of 2 tasks, 5.4 GB read"),
        (Stages(1, 2), "31 of 80 files copied", "    0:12  orders: merge, 31 of 80 files copied, 1 of 2 tasks"),
    ],
)
def test_a_line_shows_time_name_and_progress(stages: Stages, counted: str | None, says: str) -> None:
    assert MERGE.line(22.9, stages, counted) == says


@pytest.mark.parametrize(("seconds", "says"), [(59, "0:59"), (600, "10:00"), (3 * 3600 + 61, "3:01:01")])
def test_the_time_is_shown_in_minutes_and_hours(seconds: int, says: str) -> None:
    assert Running("a", "vacuum a", 0).line(seconds, Stages()).split() == [says, "a:", "vacuum"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select 1", "query"),
        ("-- first\nwith a as (select 1) select * from a", "query"),
        ("(select 1)", "query"),
        ("CREATE or replace table a as select 1", "create"),
        ("'not closed", "statement"),
        ("", "python"),
    ],
)
def test_a_statement_is_named_by_its_first_word(text: str, kind: str) -> None:
    assert Running("a", text, 0).line(0, Stages()).endswith(f"a: {kind}")


def test_work_without_a_known_total_is_counted() -> None:
    assert counted_text("folders listed", 1234) == "1,234 folders listed"
    assert counted_text("files deleted", 3, 4000) == "3 of 4,000 files deleted"
