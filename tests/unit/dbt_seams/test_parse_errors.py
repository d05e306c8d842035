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
