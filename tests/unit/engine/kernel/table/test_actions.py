"""The JSON of actions: written, read back, and damaged."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    parse,
    serialize,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.integers(0, 2**63 - 1)
SIZE = st.integers(0, 2**53 - 1)
MAPS = st.dictionaries(TEXT, TEXT, max_size=3)
VALUES = st.dictionaries(TEXT, st.one_of(st.none(), TEXT), max_size=3)
NAMES = st.one_of(st.none(), st.lists(TEXT, max_size=3).map(tuple))


def optional(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), strategy)


VECTORS = st.builds(DeletionVector, TEXT, TEXT, NUMBER, NUMBER, optional(NUMBER))
ROW_IDS = {"base_row_id": optional(NUMBER), "default_row_commit_version": optional(NUMBER)}
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Protocol, NUMBER, NUMBER, NAMES, NAMES),
    st.builds(
        Metadata,
        id=TEXT,
        schema_string=TEXT,
        partition_columns=st.lists(TEXT, max_size=3).map(tuple),
        configuration=MAPS,
        name=optional(TEXT),
        description=optional(TEXT),
        created_time=optional(NUMBER),
        format_options=MAPS,
    ),
    st.builds(
        AddFile,
        TEXT,
        VALUES,
        SIZE,
        NUMBER,
        st.booleans(),
        optional(TEXT),
        optional(MAPS),
        optional(VECTORS),
        **ROW_IDS,
    ),
    st.builds(
        RemoveFile,
        TEXT,
        optional(NUMBER),
        st.booleans(),
        optional(st.booleans()),
        optional(VALUES),
        optional(NUMBER),
        optional(MAPS),
        optional(VECTORS),
        **ROW_IDS,
    ),
    st.builds(AddCDCFile, TEXT, VALUES, SIZE, tags=optional(MAPS)),
    st.builds(SetTransaction, TEXT, st.integers(-1, 2**63 - 1), optional(NUMBER)),
    st.builds(DomainMetadata, TEXT, TEXT, st.booleans()),
    st.builds(
        CommitInfo,
        timestamp=optional(NUMBER),
        operation=optional(TEXT),
        operation_parameters=st.dictionaries(TEXT, st.one_of(TEXT, NUMBER, st.booleans(), st.lists(TEXT)), max_size=3),
        read_version=optional(NUMBER),
        is_blind_append=optional(st.booleans()),
        operation_metrics=optional(MAPS),
        txn_id=optional(TEXT),
        extra=st.dictionaries(TEXT.map(lambda name: f"silt.{name}"), TEXT, max_size=2),
    ),
)


@given(st.lists(ACTIONS, max_size=5))
def test_serialized_actions_are_parsed_back(actions: list[Action]) -> None:
    assert parse(serialize(actions)) == actions


@given(st.lists(ACTIONS, min_size=1, max_size=5))
def test_every_line_is_one_object_with_one_action(actions: list[Action]) -> None:
    lines = serialize(actions).decode().split("\n")
    assert lines.pop() == ""
    assert [list(json.loads(line)) for line in lines] == [[action.key] for action in actions]


def test_absent_fields_are_omitted_and_null_partition_values_are_kept() -> None:
    (line,) = serialize([AddFile("a", {"p": None}, 1, 2)]).decode().splitlines()
    assert line == '{"add":{"path":"a","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true}}'


def test_explicit_nulls_unknown_fields_and_unknown_actions_are_ignored() -> None:
    text = (
        b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true,'
        b'"tags":null,"stats":null,"baseRowId":null,"shape":"round"}}\n\n{"hologram":{"x":1}}\n{"txn":null}\r\n'
    )
    assert parse(text) == [AddFile("a", {}, 1, 2)]


def test_a_fraction_is_read_exactly() -> None:
    (info,) = parse(b'{"commitInfo":{"operationParameters":{"ratio":0.1}}}')
    assert isinstance(info, CommitInfo)
    assert info.operation_parameters == {"ratio": Decimal("0.1")}


@pytest.mark.parametrize(("written", "again"), [("1.5", 1.5), ("-2E+3", -2000.0), ("1e999", "1E+999")])
def test_fractions_among_the_facts_of_a_commit_can_be_written_again(written: str, again: object) -> None:
    (info,) = parse(f'{{"commitInfo":{{"operation":"WRITE","facts":{{"a":[{written}]}}}}}}'.encode())
    assert json.loads(serialize([info]))["commitInfo"]["facts"] == {"a": [again]}


def test_the_removal_of_a_file_has_the_same_logical_file() -> None:
    vector = DeletionVector("u", "abc", 40, 6, 1)
    added = AddFile("a", {"p": "1"}, 5, 6, stats="{}", tags={"t": "1"}, deletion_vector=vector, base_row_id=7)
    removed = added.remove(99, data_change=False)
    assert (removed.path, removed.deletion_vector, removed.size) == ("a", vector, 5)
    assert (removed.deletion_timestamp, removed.data_change, removed.extended_file_metadata) == (99, False, True)
    assert removed.partition_values == {"p": "1"} and removed.base_row_id == 7


@pytest.mark.parametrize("line", [b"{", b'{"add":{"size":1}}', b'{"protocol":{"minReaderVersion":"x"}}', b'{"add":5}'])
def test_an_invalid_action_is_an_error(line: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        parse(line)


def test_text_that_no_encoding_can_write_is_refused_with_the_text_near_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"half of a surrogate pair near .*caf.udce9"):
        serialize([CommitInfo.from_json({"operation": "WRITE", "userMetadata": "caf\udce9"})])
