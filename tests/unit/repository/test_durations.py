"""The tests are divided into shards that take about equally long."""

from __future__ import annotations

import pytest

from tests.durations import shard, shards

SECONDS = {"a": 9.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 3.0, "f": 0.0}


def test_each_scope_is_in_one_shard_and_the_shards_are_of_a_length() -> None:
    parts = shards(SECONDS, 3)
    assert sorted(scope for part in parts for scope in part) == sorted(SECONDS)
    assert [sum(SECONDS[scope] for scope in part) for part in parts] == [9.0, 8.0, 7.0]
    assert shards(dict(reversed(SECONDS.items())), 3) == parts


def test_the_number_of_a_shard_is_one_that_exists() -> None:
    assert shard("2/4") == (2, 4)
    for text in ("0/4", "5/4", "4", "a/b"):
        with pytest.raises(ValueError):
            shard(text)
