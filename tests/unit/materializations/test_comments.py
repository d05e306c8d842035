"""Which comments of a table's columns differ from the descriptions in the project."""

from __future__ import annotations

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.materializations.contracts import comment_changes, documented_comments

COLUMNS = [
    SiltColumn("Id", "bigint", comment="the key"),
    SiltColumn("from", "string"),
    SiltColumn("a.b", "int"),
    SiltColumn(
        "items",
        "array<struct<price:int>>",
        fields=(SiltColumn("items.element.price", "int", comment="in euros"), SiltColumn("items.element.a`b", "int")),
    ),
]


def described(**descriptions: str) -> dict[str, dict[str, object]]:
    return {name: {"name": name, "description": text} for name, text in descriptions.items()}


def test_names_are_compared_without_case_unless_they_are_quoted() -> None:
    documented = {**described(ID="x"), "FROM": {"description": "y", "quote": True}}
    assert documented_comments(COLUMNS, documented) == {"Id": "x"}
    documented = {"Id": {"description": "x", "quote": True}, **described(FROM="y")}
    assert documented_comments(COLUMNS, documented) == {"Id": "x", "from": "y"}


def test_only_different_comments_are_changed_and_an_empty_description_removes_a_comment() -> None:
    assert comment_changes(COLUMNS, described(id="the key", gone="x")) == []
    assert comment_changes(COLUMNS, described(id="")) == ["`Id` comment ''"]
    assert comment_changes(COLUMNS, {"from": {"name": "from"}}) == []


def test_nested_fields_are_named_by_their_path_and_a_dot_in_a_name_is_not_a_separator() -> None:
    documented = {"items.element.PRICE": {"description": "it's"}, "a.b": {"description": "é\\n"}}
    changes = comment_changes(COLUMNS, documented)
    assert sorted(changes) == [
        "`a.b` comment 'é\\\\n'",
        "`items`.`element`.`PRICE` comment 'it\\'s'".replace("PRICE", "price"),
    ]
    assert comment_changes(COLUMNS, described(**{"items.element.a`b": "x"})) == ["`items`.`element`.`a``b` comment 'x'"]
