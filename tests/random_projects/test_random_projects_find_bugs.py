"""A planted bug makes some random project differ from the oracle: a macro that replaces one of the package, or a
function that is replaced.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.audits import verdicts
from dbt.adapters.silt.engine.catalog.branches import command_documents as documents
from dbt.adapters.silt.engine.catalog.names import file_lists
from dbt.adapters.silt.engine.statements.steps.quarantine import Quarantine
from dbt.adapters.silt.materializations.reached_macros import Macros, Reached
from dbt.adapters.silt.runs.logical_run.affected import BranchWork
from dbt.adapters.silt.runs.logical_run.publication import RunPublication
from tests.random_projects.generator import Generator, held_story
from tests.random_projects.history import Player
from tests.random_projects.project import Story
from tests.random_projects.shrink import shrink

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.long]

SEEDS: Final = 40

NULLS_MATCH_NO_NULLS: Final = """
{% macro silt__get_merge_unique_key_match(source_unique_key, target_unique_key) -%}
  {{ return(source_unique_key ~ ' = ' ~ target_unique_key) }}
{%- endmacro %}
"""
PREDICATES_ARE_IGNORED: Final = """
{% macro silt__get_incremental_delete_insert_sql(arg_dict) -%}
  {{ return(silt_replace_equal(arg_dict, silt_list(arg_dict['unique_key']), 'unique_key', [])) }}
{%- endmacro %}
"""
PARTITIONS_ARE_NOT_REPLACED: Final = """
{% macro silt__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {{ return(get_incremental_append_sql(arg_dict)) }}
{%- endmacro %}
"""
TIMES_MAY_BE_EQUAL: Final = """
{% macro snapshot_timestamp_strategy(node, snapshotted_rel, current_rel, model_config, target_exists) %}
  {%- set name = silt_snapshot_names().dbt_updated_at -%}
  {{ return(silt_snapshot_strategy(
    node, config.get('updated_at'), '(' ~ snapshotted_rel ~ '.' ~ name ~ ' <= ' ~ current_rel ~ '.' ~ name ~ ')'
  )) }}
{% endmacro %}
"""

HOOKS_READ_NOTHING: Final = """
{% macro silt_run_post_hooks(hooks, wanted=true) %}{% endmacro %}
"""


def of(strategy: str, seed: int) -> Story:
    """A small story of one strategy."""
    if strategy in ("snapshot", "table"):
        return Generator(seed, steps=3, most=3, kinds=(strategy,)).story()
    return Generator(seed, steps=3, most=3, kinds=("incremental",), strategies=(strategy,)).story()


def reused(seed: int, root: str) -> Story:
    """A small story of tables that are reused."""
    return Generator(seed, steps=4, most=2, kinds=("table",), roots=(root,), reuses=0.9).story()


@pytest.mark.parametrize(
    ("strategy", "macro"),
    [
        ("merge", NULLS_MATCH_NO_NULLS),
        ("delete+insert", PREDICATES_ARE_IGNORED),
        ("insert_overwrite", PARTITIONS_ARE_NOT_REPLACED),
        ("snapshot", TIMES_MAY_BE_EQUAL),
        ("table", HOOKS_READ_NOTHING),
    ],
)
def test_a_planted_bug_is_found(strategy: str, macro: str, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        if difference(of(strategy, seed), macro, tmp_path):
            return
    pytest.fail(f"{SEEDS} seeds do not show the bug")


def test_failures_that_a_later_command_of_the_run_forgets_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = documents.standing  # type: ignore[attr-defined]
    monkeypatch.setattr(documents, "standing", lambda known, *rest: original(list(known)[-1:], *rest))
    for seed in range(SEEDS):
        story = Generator(seed, steps=4, most=3, publishes=True).story()
        if difference(story, "", tmp_path):
            return
    pytest.fail(f"{SEEDS} seeds do not show the bug")


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        pytest.param(RunPublication, "_changed", lambda *_: {}, id="corrected inputs stay as they were"),
        pytest.param(BranchWork, "_is_edited", lambda *_: False, id="corrected code stays as it was"),
    ],
)
def test_a_correction_of_a_held_run_that_is_ignored_is_found(
    owner: Any, name: str, mistake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    for seed in range(SEEDS):
        if difference(held_story(seed, steps=4, most=3), "", tmp_path):
            return
    pytest.fail(f"{SEEDS} seeds do not show the bug")


@pytest.mark.parametrize(
    ("root", "owner", "name", "mistake"),
    [
        pytest.param("file", file_lists, "_contents", lambda *_: iter([("", 1, "1", "")]), id="files never change"),
        pytest.param("seed", Macros, "replacing", lambda _: Reached(), id="macros never change"),
    ],
)
def test_a_planted_bug_of_reuse_is_found(
    root: str, owner: Any, name: str, mistake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    for seed in range(SEEDS):
        if difference(reused(seed, root), "", tmp_path):
            return
    pytest.fail(f"{SEEDS} seeds do not show the bug")


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        pytest.param(verdicts, "refusing", lambda *_: iter(()), id="no audit refuses"),
        pytest.param(Quarantine, "add", lambda *_: None, id="quarantined rows are lost"),
    ],
)
def test_a_planted_bug_of_audits_is_found(
    owner: Any, name: str, mistake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    stories = (Generator(seed, steps=2, most=4, kinds=("table",)).story() for seed in itertools.count())
    audited = (each for each in stories if any(node.quarantined for node in each.nodes))
    assert any(difference(story, "", tmp_path) for story in itertools.islice(audited, SEEDS))


def test_a_failure_shrinks_to_one_model_and_two_runs(tmp_path: Path) -> None:
    stories = (of("insert_overwrite", seed) for seed in range(SEEDS))
    failing = next(story for story in stories if difference(story, PARTITIONS_ARE_NOT_REPLACED, tmp_path))
    small = shrink(failing, lambda story: bool(difference(story, PARTITIONS_ARE_NOT_REPLACED, tmp_path)), 240)
    assert len(small.steps) == 2
    assert len([node for node in small.nodes if node.is_model]) == 1


def difference(story: Story, macro: str, folder: Path) -> str:
    """Returns the differences in an empty warehouse."""
    number = len(list(folder.glob("warehouse-*")))
    return Player(folder / "project", folder / f"warehouse-{number}", story, macro).difference()
