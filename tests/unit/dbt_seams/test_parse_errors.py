"""Mistakes that dbt's parser refuses without the name of a file are shown with their file, line and remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.silt.dbt_seams.parse_errors import parse_advice

PROJECT = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": "shop:\n  target: dev\n  outputs: {dev: {type: silt}}\n",
    "models/orders.sql": "{{ config(persist_docs={'relation': true}) }} select 1 as id",
}
SCHEMAS = "is not valid under any of the given schemas"
CHECKS = (
    "- unique: {config: {severity: eror}}",
    "- not_null: {config: {severity: warn}}",
)
UNREADABLE = "'utf-8' codec can't decode byte 0xeb in position 15: invalid continuation byte"
NOT_A_DICTIONARY = 'Field "persist_docs" of type Dict[str, Any] in ModelConfig has invalid value True'
"""Messages of dbt-core 1.11.16, which the last test receives from dbt itself."""


def files(folder: Path, more: dict[str, str]) -> dict[str, Path]:
    """Writes the project's files, and returns their paths by their names."""
    for name, text in {**PROJECT, **more}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="iso-8859-1")
    return {name: folder / name for name in {**PROJECT, **more}}


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        (
            "seeds/names.csv",
            "id,name\n1,Zoe\n2,Zoë\n",
            UNREADABLE,
            "seeds/names.csv, line 3, is not in UTF-8: save the file as UTF-8, or convert it, a file of Excel with "
            "`iconv -f WINDOWS-1252 -t UTF-8 seeds/names.csv > new.csv`",
        ),
        (
            "models/big.sql",
            "-- all rows\n{{ config(full_refresh='false') }} select 1 as id",
            f"Parsing Error\n  at path ['full_refresh']: 'false' {SCHEMAS}",
            "`full_refresh` is set in models/big.sql, line 2: it must be `true` or `false`, without quotes",
        ),
        (
            "models/documented.sql",
            "{{ config(persist_docs=true, tags=['x']) }} select 1 as id",
            NOT_A_DICTIONARY.replace("persist_docs", "tags").replace("True", "x"),
            "`tags` is set in models/documented.sql, line 1",
        ),
        (
            "dbt_project.yml",
            PROJECT["dbt_project.yml"] + "models:\n  shop:\n    +on_schema_change: true\n",
            f"Parsing Error\n  at path ['on_schema_change']: True {SCHEMAS}",
            "`on_schema_change` is set in dbt_project.yml, line 5: it must be `ignore`, `fail`, `append_new_columns` "
            "or `sync_all_columns`",
        ),
        (
            "snapshots/kept.sql",
            "{% snapshot kept %}{{ config(check_cols='id') }} select 1 as id{% endsnapshot %}",
            "Invalid value for 'check_cols': id. Expected 'all' or a list of strings.",
            "`check_cols` is set in snapshots/kept.sql, line 1: it must be `all`, or a list of columns: "
            "`[name, amount]`",
        ),
        (
            "models/orders.yml",
            "\n".join(CHECKS),
            "Parsing Error\n  at path []: Severity must be either 'warn' or 'error'. Got 'eror'",
            "`severity` is set in models/orders.yml, line 1: it must be `error` or `warn`",
        ),
    ],
)
def test_the_mistake_is_found_with_its_file_and_line(
    tmp_path: Path, name: str, text: str, error: str, said: str
) -> None:
    assert parse_advice(error, files(tmp_path, {name: text})) == said


SNAPSHOT = "{% snapshot kept %}{{ config(unique_key='id', strategy='STRATEGY') }} select 1 as id{% endsnapshot %}"
CONTRACT = "models:\n  - name: days\n    config: {contract: {enforced: true}}\n"
KIND = "    columns:\n      - name: id\n        constraints: [{type: check}, {type: exclusion}]\n"
SOURCES = "sources:\n  - name: raw\n    tables: [{name: payments}]\n"
NOT_FOUND = "Model 'model.shop.a' (models/a.sql) depends on a node named 'NAME' which was not found"


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("models/a.sql", "", NOT_FOUND.replace("NAME", "ordrs"), "Did you mean `orders`?"),
        ("snapshots/all.sql", SNAPSHOT, NOT_FOUND.replace("NAME", "kepd"), "Did you mean `kept`?"),
        ("snapshots/all.yml", "snapshots: [{name: kept}]", NOT_FOUND.replace("NAME", "kpet"), "Did you mean `kept`?"),
        ("seeds/countries.csv", "id\n", NOT_FOUND.replace("NAME", "country"), "Did you mean `countries`?"),
        (
            "models/sources.yml",
            SOURCES,
            NOT_FOUND.replace("node", "source").replace("NAME", "raw.payment"),
            "Did you mean `raw.payments`?",
        ),
        (
            "snapshots/kept.sql",
            SNAPSHOT.replace("STRATEGY", "check"),
            "A snapshot configured with the check strategy must specify a check_cols configuration.",
            "`strategy: check` is set in snapshots/kept.sql, line 1: add `check_cols`, `all`, or a list of columns: "
            "`[name, amount]`",
        ),
        (
            "snapshots/kept.yml",
            "snapshots:\n  - name: kept\n    config:\n      strategy: timestamp\n",
            "A snapshot configured with the timestamp strategy must specify an updated_at configuration.",
            "`strategy: timestamp` is set in snapshots/kept.yml, line 4: add `updated_at`, the column with the time of "
            "a row's last change",
        ),
        (
            "snapshots/kept.sql",
            SNAPSHOT.replace("unique_key", "key"),
            "Snapshots must be configured with a 'strategy' and 'unique_key'.",
            "snapshots/kept.sql lacks `unique_key`: add it to the config",
        ),
        (
            "models/days.yml",
            CONTRACT + KIND,
            "Parsing Error\n  Invalid constraint type on column id",
            "models/days.yml, line 6: `exclusion` is no type of constraint. The types are `check`, `not_null`, "
            "`unique`, `primary_key`, `foreign_key`, `custom`",
        ),
        (
            "models/days.yml",
            "models:\n  - name: days\n    config:\n      contract: true\n",
            "Internal Error\n  expected dict, got True",
            "`contract` is True in models/days.yml, line 4: it must be a mapping, `contract: {enforced: true}`",
        ),
        (
            "models/a.sql",
            "",
            "Found a cycle: model.shop.a --> model.shop.orders",
            "These nodes read each other by `ref`: remove one of the references, or read the rows from a source",
        ),
        (
            "models/a.sql",
            "select * from {{ ref(orders) }}",
            "The name argument to ref() must be a string, got <class 'dbt_common.clients.jinja.Undefined'>",
            "Write the name in quotes: `{{ ref('name') }}`",
        ),
    ],
)
def test_the_file_with_something_missing_or_unknown_is_found(
    tmp_path: Path, name: str, text: str, error: str, said: str
) -> None:
    assert parse_advice(error, files(tmp_path, {name: text})) == said


def test_an_incremental_model_whose_contract_needs_on_schema_change_is_named(tmp_path: Path) -> None:
    model = "{{ config(materialized='incremental') }} select 1 as id"
    project = files(tmp_path, {"models/days.sql": model, "models/other.sql": model, "models/days.yml": CONTRACT})
    assert parse_advice(
        "Invalid value for on_schema_change: ignore. Models materialized as incremental with contracts enabled must "
        "set on_schema_change to 'append_new_columns' or 'fail'",
        project,
    ) == (
        "models/days.sql is incremental and has a contract: add `on_schema_change='append_new_columns'`, or `'fail'`, "
        "to its config"
    )


@pytest.mark.parametrize("name", ["orders", "something_else", "landed"])
def test_no_other_name_is_suggested_for_a_node_without_a_similar_name(tmp_path: Path, name: str) -> None:
    project = files(tmp_path, {"macros/lande.sql": "{% macro lande() %}{% endmacro %}"})
    assert parse_advice(NOT_FOUND.replace("NAME", name), project) is None


def test_places_with_the_refused_value_are_preferred_to_correct_ones(tmp_path: Path) -> None:
    more = {"models/wrong.sql": "{{ config(persist_docs=true) }} select 1 as id"}
    assert "`persist_docs` is set in models/wrong.sql, line 1: it must be" in str(
        parse_advice(NOT_A_DICTIONARY, {**files(tmp_path, more), "models/orders.sql": tmp_path / "dbt_project.yml"})
    )


@pytest.mark.parametrize("said", ["a bug", f"models/big.sql: at path ['full_refresh']: 'x' {SCHEMAS}", UNREADABLE])
def test_an_error_without_a_known_place_gets_no_advice(tmp_path: Path, said: str) -> None:
    assert parse_advice(said, files(tmp_path, {"models/big.sql": "{{ config(full_refresh='x') }}"})) is None


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("seeds/names.csv", "id,name\n1,Zoë\n", UNREADABLE[:33], "seeds/names.csv, line 2, is not in UTF-8"),
        (
            "models/wrong.sql",
            "{{ config(persist_docs=true) }} select 1 as id",
            NOT_A_DICTIONARY,
            "`persist_docs` is set in models/",
        ),
    ],
)
def test_dbt_parse_shows_the_place_and_no_traceback(
    tmp_path: Path, name: str, text: str, error: str, said: str
) -> None:
    files(tmp_path, {name: text})
    dbt = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "parse"]
    done = subprocess.run(dbt, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert error in done.stdout
    assert said in done.stdout
    assert "Traceback" not in done.stdout
    assert "Traceback" in (tmp_path / "logs" / "dbt.log").read_text()
