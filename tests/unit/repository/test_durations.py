"""Tests are divided into shards of about equal duration."""

from __future__ import annotations

import pytest

from tests.durations import shard, shards

SECONDS = {"a": 9.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 3.0, "f": 0.0}


def test_each_scope_is_in_one_shard_and_the_shards_have_about_equal_durations() -> None:
    parts = shards(SECONDS, 3)
    assert sorted(scope for part in parts for scope in part) == sorted(SECONDS)
    assert [sum(SECONDS[scope] for scope in part) for part in parts] == [9.0, 8.0, 7.0]
    assert shards(dict(reversed(SECONDS.items())), 3) == parts


def test_a_shard_number_outside_the_range_is_refused() -> None:
    assert shard("2/4") == (2, 4)
    for text in ("0/4", "5/4", "4", "a/b"):
        with pytest.raises(ValueError):
            shard(text)
