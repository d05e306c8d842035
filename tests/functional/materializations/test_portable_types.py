"""Names of types in other databases have one meaning in sources, seeds, contracts, functions, unit tests and macros."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

TYPES = {
    "a": ("text", "string"),
    "b": ("varchar", "string"),
    "c": ("character varying(10)", "varchar(10)"),
    "d": ("integer", "int"),
    "e": ("int8", "bigint"),
    "f": ("numeric(10, 2)", "decimal(10,2)"),
    "g": ("timestamptz", "timestamp"),
    "h": ("timestamp without time zone", "timestamp_ntz"),
    "i": ("bool", "boolean"),
    "j": ("double precision", "double"),
    "k": ("bytea", "binary"),
}
"""The names in another database and in Spark, by column."""

VALUES = {
    "a": "x",
    "b": "y",
    "c": "z",
    "d": "1",
    "e": "2",
    "f": "3.50",
    "g": "2026-01-01 00:00:00",
    "h": "2026-01-01 00:00:00",
    "i": "true",
    "j": "1.5",
    "k": "QQ==",
}
COLUMNS = json.dumps([{"name": name, "data_type": kind} for name, (kind, _) in TYPES.items()])
CASTS = {
    macro: ", ".join(
        f"{{{{ dbt.{macro}({json.dumps(repr(VALUES[name]))}, {kind!r}) }}}} as {name}"
        for name, (kind, _) in TYPES.items()
    )
    for macro in ("cast", "safe_cast")
}
GIVEN = json.dumps([dict(zip(TYPES, VALUES.values(), strict=True))])


class TestPortableTypes:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": f"{','.join(VALUES)}\n{','.join(VALUES.values())}\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+column_types": {name: kind for name, (kind, _) in TYPES.items()}}}

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {
            "length_of.sql": "length(of)",
            "functions.yml": """
functions:
  - {name: length_of, arguments: [{name: of, data_type: text}], returns: {data_type: int8}}
""",
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "agreed.sql": f"select {CASTS['cast']}",
            "read.sql": "select * from {{ source('landed', 'days') }}",
            "tried.sql": f"select {CASTS['safe_cast']}",
            "counted.sql": "select {{ function('length_of') }}('abc') as n",
            "models.yml": f"""
models:
  - name: agreed
    config: {{materialized: table, contract: {{enforced: true}}}}
    columns: {COLUMNS}
  - {{name: read, config: {{materialized: table}}}}
  - {{name: tried, config: {{materialized: table}}}}
sources:
  - name: landed
    meta: {{external_location: 'landed/{{name}}.csv'}}
    tables:
      - name: days
        columns: {COLUMNS}
unit_tests:
  - name: types
    model: read
    given: [{{input: "source('landed', 'days')", rows: {GIVEN}}}]
    expect: {{rows: {GIVEN}}}
""",
        }

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        landed = Path(project.project_root) / "landed"
        landed.mkdir()
        (landed / "days.csv").write_text((Path(project.project_root) / "seeds" / "sown.csv").read_text())
        return run_dbt(["build"])

    @pytest.mark.parametrize("name", ["sown", "agreed", "read", "tried"])
    def test_each_name_is_the_same_type_of_spark(self, project: Any, built: Any, name: str) -> None:
        described = project.run_sql(f"describe table {project.test_schema}.{name}", fetch="all")
        kinds = {column: kind for column, kind, _ in described}
        lengths = name in ("sown", "agreed")
        expected = {
            column: spark if lengths else spark.replace("varchar(10)", "string") for column, (_, spark) in TYPES.items()
        }
        assert kinds == expected

    def test_functions_have_them_too(self, project: Any, built: Any) -> None:
        assert project.run_sql(f"select n, typeof(n) from {project.test_schema}.counted", fetch="one") == (3, "bigint")


REFUSED = """
sources:
  - name: landed
    meta: {external_location: 'landed/{name}.json'}
    tables: [{name: days, columns: [{name: body, data_type: jsonb}]}]
"""


class TestATypeWithSeveralMeanings:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"read.sql": "select * from {{ source('landed', 'days') }}", "models.yml": REFUSED}

    def test_the_error_names_sparks_types(self, project: Any) -> None:
        landed = Path(project.project_root) / "landed"
        landed.mkdir()
        (landed / "days.json").write_text('{"body": {"a": 1}}\n')
        [result] = run_dbt(["build"], expect_pass=False)
        assert "In Spark, the type is `variant`, or `string` for its text" in result.message
