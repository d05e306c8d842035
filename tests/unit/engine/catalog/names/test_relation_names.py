"""Valid names, and their normalized forms."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.catalog.names.relation_names import (
    MAX_NAME_BYTES,
    RelationName,
    check_identifier,
    is_identifier,
    normalize,
)
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError

FINE = [
    "orders",
    "Orders",
    "_hidden_to_spark_only_as_a_file",
    "a b",
    "select",
    "order-items",
    "price$",
    "größe",
    "注文",
    "🚚 deliveries",
    "a.b",
    "v1.2",
    "1",
    "a@b",
    "c" * MAX_NAME_BYTES,
]

REFUSED = [
    "",
    " ",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc",
    "a\\b",
    "a..b",
    ".hidden",
    "ends.",
    " leading",
    "trailing ",
    "it's",
    'say "x"',
    "back`tick",
    "nul\0",
    "new\nline",
    "tab\t",
    "del\x7f",
    "line\u2028separator",
    "half\ud800",
    "star*",
    "what?",
    "[x]",
    "{x}",
    "a:b",
    "a#b",
    "a%2fb",
    "a<b",
    "a|b",
    "_delta_log",
    "_DELTA_LOG",
    "_schema.json",
    "x.view.json",
    "orders@v3",
    "orders@20240101000000000",
    "c" * (MAX_NAME_BYTES + 1),
    "c" * 300,
    "ü" * (MAX_NAME_BYTES // 2 + 1),
]


@pytest.mark.parametrize("text", FINE)
def test_an_ordinary_name_is_kept_in_its_normalized_form(text: str) -> None:
    assert check_identifier(text, "table") == normalize(text)


@pytest.mark.parametrize("text", REFUSED)
def test_a_name_that_could_mean_another_path_is_refused_with_name_reason_and_remedy(text: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        RelationName("silt", "main", text)
    message = str(caught.value)
    assert message.startswith("[SILT_INVALID_NAME] silt.main.")
    assert "cannot be the name of a table or view: " in message
    assert message.endswith("Choose another name.")
    assert message.isprintable()


@pytest.mark.parametrize("text", REFUSED)
def test_database_and_schema_names_follow_the_same_rule(text: str) -> None:
    with pytest.raises(InvalidNameError):
        RelationName("silt", text, "orders")
    with pytest.raises(InvalidNameError):
        RelationName(text, "main", "orders")


def test_names_are_case_insensitive_and_equal_in_all_unicode_spellings() -> None:
    assert RelationName("Silt", "MAIN", "Größe") == RelationName("silt", "main", "gro\u0308ße")
    assert RelationName("silt", "main", "straße") != RelationName("silt", "main", "strasse")
    assert str(RelationName("Silt", "Main", "Orders")) == "silt.main.orders"
    assert RelationName("silt", "main", "order items").quoted == "`silt`.`main`.`order items`"


@given(st.text())
def test_normalizing_a_normalized_name_changes_nothing(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(st.text(min_size=1, max_size=40) | st.text(alphabet="ab./\\~ \0", min_size=1, max_size=12))
def test_a_valid_name_is_a_single_folder_directly_below_the_root(text: str) -> None:
    try:
        name = check_identifier(text, "table")
    except InvalidNameError:
        assert not is_identifier(text)
        return
    joined = os.path.normpath(os.path.join("/warehouse", name))
    assert os.path.dirname(joined) == "/warehouse"
    assert os.path.basename(joined) == name
    assert is_identifier(name)
    assert check_identifier(name, "table") == name


@given(st.text(min_size=1, max_size=8))
def test_names_that_differ_only_in_case_are_the_same(text: str) -> None:
    assert is_identifier(normalize(text)) == is_identifier(normalize(normalize(text).lower()))
