"""Seeds as people write them: unusual names and values, and the errors for files that cannot be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

COLUMN_TYPES = {
    "price": "decimal(10,2)",
    "zip": "string",
    "day": "date",
    "at": "timestamp",
    "flag": "boolean",
    "big": "decimal(38,0)",
}

GOOD = {
    "texts.csv": (
        'id,text\n1,"it\'s ""q"""\n2,back\\slash\\n\n3,"two\nlines"\n4,日本 🎉\n'
        '5,""\n6,null\n7,`tick`\n8,{{ x }}\n9,end \\\n'
    ),
    "marked.csv": "\ufeffid,name\n1,x\n",
    "typed.csv": (
        "price,zip,day,at,flag,big\n"
        "12.30,00501,2026-03-01,2026-03-01T12:00:00+02:00,yes,12345678901234567890123456789012345678\n"
        ",,,,,\n"
        "-0.01,x,2026-12-31,2026-03-01 12:00:00,0,1\n"
    ),
    "guessed.csv": "a,b,c,d,e,f\n9007199254740993,1.5,TRUE,2026-03-01,2026-03-01T10:00:00Z,10:30\n,,False,,,\n",
    "named.csv": 'select,order by,a.b,a`b,ünï,"q""q"\n1,2,3,4,5,6\n',
    "header_only.csv": "id,name\n",
    "semicolons.csv": 'a;b\n1;"x;y"\n',
    "foreign.csv": "a,b,c,d\n1,2,007,4.50\n",
    "tabs.csv": "a\tb\n1\tx, y\n",
    "sized.csv": "id,Short,fixed\n1,abc,x\n",
}

BAD = {
    "no_type.csv": "a\n1\n",
    "no_value.csv": 'id,amount\n1,1.5\n2,"12,5"\n',
    "two_cases.csv": "id,ID\n1,2\n",
    "too_long.csv": f"id\n{'1' * 39}\n",
    "no_line.csv": "",
    "unquoted.csv": "a b\n1\n",
    "open_quote.csv": 'id,name\n1,"a\n2,b\n',
    "long_line.csv": "id,name\n1,a\n2,b,c\n",
    "other_delimiter.csv": "id;name\n1;a\n",
    "long_value.csv": "id,name\n1,abc\n2,abcd\n",
}


def messages(results: Any) -> dict[str, str]:
    return {result.node.name: result.message for result in results}


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, Any]:
        return {**GOOD, "bad": BAD}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        seeds = {
            "typed": {"+column_types": COLUMN_TYPES},
            "semicolons": {"+delimiter": ";"},
            "tabs": {"+delimiter": "\t"},
            "sized": {"+column_types": {"Short": "VARCHAR(3)", "fixed": "nchar(2)"}},
            "foreign": {"+column_types": {"a": "int64", "b": "number", "c": "varchar", "d": "NUMBER(6,2)"}},
            "bad": {
                "no_type": {"+column_types": {"a": "texts"}},
                "no_value": {"+column_types": {"amount": "decimal(6,2)"}},
                "unquoted": {"+quote_columns": False},
                "long_value": {"+column_types": {"name": "varchar(3)"}},
            },
        }
        return {"seeds": {"test": seeds}}

    @pytest.fixture(scope="class")
    def seeded(self, project: Any) -> dict[str, str]:
        return messages(run_dbt(["seed", "--exclude", "path:seeds/bad"]))

    def rows(self, project: Any, query: str) -> list[tuple[Any, ...]]:
        return project.run_sql(query.replace("{schema}", f"{project.database}.{project.test_schema}"), fetch="all")

    def test_each_seed_reports_its_number_of_rows(self, seeded: dict[str, str]) -> None:
        assert seeded["texts"] == "v0: 9 inserted in 1 file"
        assert seeded.keys() == {name.removesuffix(".csv") for name in GOOD}

    def test_strings_are_unchanged(self, project: Any, seeded: dict[str, str]) -> None:
        texts = [text for (text,) in self.rows(project, "select text from {schema}.texts order by id")]
        plain = ["`tick`", "{{ x }}", "end \\"]
        assert texts == ['it\'s "q"', "back\\slash\\n", "two\nlines", "日本 🎉", None, None, *plain]
        assert self.rows(project, "select id, name from {schema}.marked") == [(1, "x")]
        assert self.rows(project, "select a, b from {schema}.semicolons") == [(1, "x;y")]
        assert self.rows(project, "select a, b from {schema}.tabs") == [(1, "x, y")]

    def test_types_may_have_the_names_of_other_databases(self, project: Any, seeded: dict[str, str]) -> None:
        types = ", ".join(f"typeof({name})" for name in "abcd")
        [found] = self.rows(project, f"select {types}, c, cast(d as string) from {{schema}}.foreign")
        assert tuple(found) == ("bigint", "decimal(38,0)", "string", "decimal(6,2)", "007", "4.50")

    def test_the_table_has_the_lengths_of_its_types(self, project: Any, seeded: dict[str, str]) -> None:
        described = self.rows(project, "describe table {schema}.sized")
        assert [row[:2] for row in described] == [("id", "bigint"), ("Short", "varchar(3)"), ("fixed", "char(2)")]
        assert self.rows(project, "select * from {schema}.sized") == [(1, "abc", "x ")]

    def test_column_types_are_cast_from_the_original_text_of_the_file(
        self, project: Any, seeded: dict[str, str]
    ) -> None:
        texts = ", ".join(f"cast({name} as string)" for name in COLUMN_TYPES)
        assert self.rows(project, f"select {texts} from {{schema}}.typed order by price desc nulls last") == [
            ("12.30", "00501", "2026-03-01", "2026-03-01 10:00:00", "true", "12345678901234567890123456789012345678"),
            ("-0.01", "x", "2026-12-31", "2026-03-01 12:00:00", "false", "1"),
            (None, None, None, None, None, None),
        ]

    def test_undeclared_types_are_inferred(self, project: Any, seeded: dict[str, str]) -> None:
        found = self.rows(project, "describe table {schema}.guessed")
        assert [kind for _, kind, _ in found] == ["bigint", "double", "boolean", "date", "timestamp", "string"]
        [first, second] = self.rows(project, "select a, c, cast(e as string), f from {schema}.guessed order by c desc")
        assert first == (2**53 + 1, True, "2026-03-01 10:00:00", "10:30")
        assert second == (None, False, None, None)

    def test_any_column_name_is_kept(self, project: Any, seeded: dict[str, str]) -> None:
        found = self.rows(project, "describe table {schema}.named")
        assert [name for name, _, _ in found] == ["select", "order by", "a.b", "a`b", "ünï", 'q"q']
        assert self.rows(project, "select * from {schema}.named") == [(1, 2, 3, 4, 5, 6)]
        assert self.rows(project, "select count(*), count(name) from {schema}.header_only") == [(0, 0)]

    def test_a_file_that_cannot_be_loaded_is_named_and_nothing_is_written(self, project: Any) -> None:
        said = messages(run_dbt(["seed", "--select", "path:seeds/bad"], expect_pass=False))
        assert "seed no_type gives the column `a` the type `texts`, unknown to Spark" in said["no_type"]
        assert (
            "no_value has `12,5` in row 2 of the column `amount`, which is not of the type decimal(6,2)"
            in said["no_value"]
        )
        assert "the columns `id` and `ID`, whose names differ in case only" in said["two_cases"]
        assert "`id` has a number of 39 digits, but only 28 would be kept" in said["too_long"]
        assert "the file of the seed no_line is empty" in said["no_line"]
        assert "Syntax error" in said["unquoted"]
        assert 'line 2 of the seed open_quote has a quotation mark (") that is not closed' in said["open_quote"]
        assert "line 3 of the seed long_line has 3 values, but the first line names 2 columns" in said["long_line"]
        assert "Set `delimiter: ';'` in the seed's config" in said["other_delimiter"]
        assert "has a string in `name` that is longer than varchar(3), for example abcd" in said["long_value"]
        place = RelationName(project.database, project.test_schema, "no_value")
        assert project.adapter.connections.catalog.find(place) is None

    def test_names_that_dbt_changes_and_misspelt_types_are_warned_of(self, project: Any) -> None:
        file = Path(project.project_root, "seeds", "twins.csv")
        file.write_text("id,id,zap\n1,2,3\n")
        Path(project.project_root, "seeds", "twins.yml").write_text(
            "seeds: [{name: twins, config: {column_types: {zip: string}}}]\n"
        )
        _, said = run_dbt_and_capture(["seed", "--select", "twins"])
        said = " ".join(said.split())
        assert "The seed twins has 2 columns `id` in its first line" in said
        assert "`column_types` of the seed twins names `zip`, which it does not have: did you mean `zap`?" in said
        file.unlink()
        file.with_suffix(".yml").unlink()

    def test_a_changed_file_re_creates_the_table_with_its_columns(self, project: Any, seeded: Any) -> None:
        file = Path(project.project_root, "seeds", "marked.csv")
        file.write_text("name,more\ny,1.5\n")
        [result] = run_dbt(["seed", "--select", "marked"])
        assert result.message == "v1: 1 inserted in 1 file"
        assert self.rows(project, "select * from {schema}.marked") == [("y", 1.5)]

    def test_a_change_of_a_large_file_is_noticed_within_one_run(self, project: Any, seeded: Any) -> None:
        """dbt keeps no checksum of a file of over 1 MB."""
        file = Path(project.project_root, "seeds", "large.csv")
        file.write_text("id,text\n" + "".join(f"{n},{'x' * 90}\n" for n in range(12_000)))
        once_more = ["seed", "--select", "large", "--vars", "silt_run_id: R1"]
        assert messages(run_dbt(once_more)) == {"large": "v0: 12,000 inserted in 1 file"}
        assert "run R1 has done it" in messages(run_dbt(once_more))["large"]
        file.write_text("id,text\n1,x\n")
        _, output = run_dbt_and_capture(once_more)
        assert "the node was changed since; to build it again, use a new run id" in output
        assert self.rows(project, "select count(*) from {schema}.large") == [(12_000,)]
