"""dbt's query comment, apart from the statement, and tags of Spark's jobs."""

from __future__ import annotations

import pytest
from dbt.adapters.base.query_headers import _QueryComment

from dbt.adapters.silt.runs.query_comments import job_tags, without_comment


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("sql", ["select 1", "select 1;", "begin select 1; end;", "-- nothing"])
@pytest.mark.parametrize("comment", ["dbt", "  spaces \n and lines ", "opens /* another", '{"app": "dbt"}'])
def test_the_comment_that_dbt_adds_is_taken_away_again(sql: str, comment: str, append: bool) -> None:
    header = _QueryComment(None)
    header.set(comment, append)
    assert without_comment(header.add(sql), comment) == (sql.rstrip(";") if append else sql)


@pytest.mark.parametrize("comment", [None, "", "another"])
def test_a_comment_of_the_users_own_stays(comment: str | None) -> None:
    assert without_comment("/* mine */\nselect 1", comment) == "/* mine */\nselect 1"


def test_tags_of_jobs_hold_no_comma_no_line_break_and_are_not_empty() -> None:
    texts = ('{"app": "dbt",\n "node": "a"}', "", None, "daily", ",", " ", "daily")
    assert job_tags(texts) == ('{"app": "dbt"; "node": "a"}', "daily", ";")
