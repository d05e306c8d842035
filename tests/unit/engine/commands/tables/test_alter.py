"""ALTER TABLE on properties, constraints and comments."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.tables.alter import (
    add_constraint,
    drop_constraint,
    set_comment,
    set_properties,
    unset_properties,
)
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    ConcurrentAppendError,
    InvalidPropertyError,
    InvalidStatementError,
    RuleNotAllowedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from tests.unit.engine.commands.spark_tables import PLAIN, Tables


def constrain(tables: Tables, log: DeltaLog, name: str, condition: str) -> Outcome:
    return add_constraint(tables.spark, tables.target(log), name, condition, PLAIN)


# properties


def test_properties_are_set_in_the_protocols_spelling_and_the_users_own_keep_theirs(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    set_properties(tables.target(log), {"DELTA.CheckpointInterval": "5", "My.Owner": "data team"}, PLAIN)
    assert log.snapshot().metadata.configuration == {"delta.checkpointInterval": "5", "My.Owner": "data team"}
    assert log.snapshot().properties.checkpoint_interval == 5
    assert tables.last_commit(log).operation == "SET TBLPROPERTIES"


def test_setting_an_existing_value_commits_nothing(tables: Tables) -> None:
    log = tables.made("select 1L as id", properties={"a": "1"})
    assert set_properties(tables.target(log), {"a": "1"}, PLAIN).version == 0
    assert set_properties(tables.target(log), {"a": "2"}, PLAIN).version == 1


STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def test_columns_with_statistics_must_exist(tables: Tables) -> None:
    log = tables.made("select 1L as id, named_struct('x', 1) as s, array(1) as a, map('k', 1) as m, 2 as `a.b`")
    for names in ("ID", "s", "`s`.X, id", "a", "m,`a.b`"):
        set_properties(tables.target(log), {STATS_COLUMNS: names}, PLAIN)
        assert log.snapshot().metadata.configuration[STATS_COLUMNS] == names
    before = log.snapshot().version
    for missing in ("nope", "id,nope", "s.y", "`s.x`", "a.element", "m.key", "id.x", "a.b"):
        with pytest.raises(ColumnNotFoundError, match=f"`{STATS_COLUMNS}` names .*, which is not a column"):
            set_properties(tables.target(log), {STATS_COLUMNS.upper(): missing}, PLAIN)
        with pytest.raises(ColumnNotFoundError, match="columns: id"):
            tables.made("select 1L as id", properties={STATS_COLUMNS: missing})
    assert log.snapshot().version == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.checkpointInterval", "often"),
        ("delta.noSuchThing", "1"),
        ("delta.constraints.positive", "id > 0"),
        ("delta.feature.appendOnly", "please"),
    ],
)
def test_a_property_that_cannot_be_set_is_refused(tables: Tables, key: str, value: str) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(InvalidPropertyError):
        set_properties(tables.target(log), {key: value}, PLAIN)
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.enableIcebergCompatV2", "true"),
        ("delta.minWriterVersion", "7"),
    ],
)
def test_a_property_that_needs_an_unsupported_feature_is_refused(tables: Tables, key: str, value: str) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(UnsupportedFeatureError):
        set_properties(tables.target(log), {key: value}, PLAIN)
    assert log.snapshot().version == 0


def test_a_feature_is_requested_by_name_and_the_request_is_not_stored(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    set_properties(
        tables.target(log), {"delta.feature.domainMetadata": "supported", "delta.minReaderVersion": "1"}, PLAIN
    )
    assert "domainMetadata" in (log.snapshot().protocol.writer_features or ())
    assert log.snapshot().metadata.configuration == {}


def test_unsetting_a_property_twice_commits_once(tables: Tables) -> None:
    log = tables.made("select 1L as id", properties={"delta.checkpointInterval": "5", "mine": "x"})
    unset_properties(tables.target(log), ["delta.checkpointinterval", "mine"], False, PLAIN)
    assert log.snapshot().metadata.configuration == {}
    with pytest.raises(InvalidPropertyError, match="`mine` is not set"):
        unset_properties(tables.target(log), ["mine"], False, PLAIN)
    assert unset_properties(tables.target(log), ["mine"], True, PLAIN).version == 1


def test_the_comment_of_a_table_is_its_description(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    set_comment(tables.target(log), "it's ours", PLAIN)
    assert log.snapshot().metadata.description == "it's ours"
    set_properties(tables.target(log), {"comment": "by property"}, PLAIN)
    assert log.snapshot().metadata.description == "by property"
    assert log.snapshot().metadata.configuration == {}
    unset_properties(tables.target(log), ["comment"], False, PLAIN)
    assert set_comment(tables.target(log), None, PLAIN).version == 3


# constraints


def test_a_constraint_is_enforced_on_later_rows(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    constrain(tables, log, "Positive", "id >= 0 -- as ever")
    assert dict(log.snapshot().properties.constraints) == {"positive": "id >= 0 -- as ever"}
    assert log.snapshot().protocol.min_writer_version == 3
    with pytest.raises(CheckViolationError):
        tables.append(log, "select -1L")
    assert tables.last_commit(log).operation == "ADD CONSTRAINT"


def test_a_constraint_that_existing_rows_violate_is_refused_with_their_number_and_an_example(tables: Tables) -> None:
    log = tables.made("select if(id = 2, null, id) as id from range(5)")
    with pytest.raises(CheckViolationError, match=r"2 rows break the check constraint `small`, id < 4, for example"):
        constrain(tables, log, "small", "id < 4")
    assert log.snapshot().version == 0


@pytest.mark.parametrize("condition", ["nope > 1", "id +", "id", "id > 1 and"])
def test_an_expression_that_is_not_a_condition_is_refused(tables: Tables, condition: str) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(InvalidStatementError, match="the condition of the constraint `c`"):
        constrain(tables, log, "c", condition)


def test_a_condition_over_several_rows_is_refused(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(RuleNotAllowedError, match="the check constraint `c` contains the function `count`"):
        constrain(tables, log, "c", "count(*) > 1 and")


def test_a_constraints_name_is_unique_in_any_case_and_free_after_its_drop(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    constrain(tables, log, "c", "id > 0")
    with pytest.raises(InvalidStatementError, match="the constraint `C` already exists"):
        constrain(tables, log, "C", "id > 1")
    drop_constraint(tables.target(log), "C", False, PLAIN)
    with pytest.raises(InvalidStatementError, match=r"the constraint `c` does not exist \(constraints: none\)"):
        drop_constraint(tables.target(log), "c", False, PLAIN)
    assert drop_constraint(tables.target(log), "c", True, PLAIN).version == 2
    constrain(tables, log, "c", "id > 0")


def test_adding_a_constraint_conflicts_with_rows_committed_during_its_check(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    target = tables.target(log)
    tables.append(log, "select -1L")
    with pytest.raises(ConcurrentAppendError):
        add_constraint(tables.spark, target, "positive", "id > 0", PLAIN)
