from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.ast import Parameter
from dbt.adapters.silt.engine.sql.query.stored_texts import forbidden, forbidden_in_signature, names_files
from tests.unit.engine.sql.sql_fixtures import pairs


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select transform(a) using 'sh -c x' as (b) from t", "a script"),
        ("from t map a using 'cat' as b", "a script"),
        ('select * from (from t reduce a /* x */ using -- y\n "cat" as b)', "a script"),
        ("select transform(a) u\u017f\u0131ng r'cat' from t", "a script"),
        ("select reflect('a', 'b')", "the function `reflect`"),
        ("select `Java_Method`\n('a', 'b')", "the function `java_method`"),
        ("select system.builtin.try_reflect /* ( */ ('a', 'b')", "the function `try_reflect`"),
        ("with a as (select 1) select * from a where exists (select reflect('a', 'b'))", "the function `reflect`"),
        ("select \"reflect\"('a', 'b')", 'the function "reflect"'),
        ("select identifier('ref' || 'lect')('a', 'b')", "`identifier(...)`"),
        ("select system.builtin.identifier('reflect')('a', 'b')", "`identifier(...)`"),
        ("select from_protobuf(a, 'M', '/etc/passwd')", "the function `from_protobuf`"),
        ("select from_xml(a, 'b int', map('rowValidationXSDPath', '/x'))", "options of the function `from_xml`"),
        ("select from_avro(a, '\"int\"', options => map('avroSchemaUrl', '/x'))", "options of the function"),
        ("select like - 1 from text.`/etc/x` as t(like)", "`select` as a name"),
        ("select (select in + 1 from text.`/etc/x` as t(in))", "`select` as a name"),
        ("select as from text.`/etc/x` as t(as)", "the path"),
        ("select 1 from is, text.`/etc/x`", "the path"),
        ("select 1 where (values end union all table text.`/etc/x`)", "the path"),
        ("select * from as, jdbc.`x` with (url = 'jdbc:x:', dbtable = 't')", "the path"),
        ("select a from t having, jdbc.x", "the path"),
        ("select * from (lateral join jdbc.x)", "the path"),
        ("select jdbc.a from u as jdbc cross join (select * from t limit, jdbc.x)", "the path"),
        ("select as from as join `org.x.Y`.z", "the path"),
    ],
)
def test_a_text_that_runs_code_or_hides_the_tables_it_reads_is_forbidden(text: str, found: str) -> None:
    assert str(forbidden(text)).startswith(found)


@pytest.mark.parametrize("text", ["select 1) x cross join (select 2", "(select 1", "select 1)"])
def test_unbalanced_parentheses_are_refused(text: str) -> None:
    with pytest.raises(StatementSyntaxError, match="parentheses do not match"):
        forbidden(text)


@pytest.mark.parametrize(
    "text",
    [
        "select 'transform(a) using ''sh''', \"reflect('a')\" /* reflect('a') */ -- java_method(\n",
        "select transform(xs, x -> x + 1), reflect, `java_method`, t.reflect from t",
        "select * from a join b using (id) left join c using (id, day)",
        "select t.using, identifier, t.select from t where identifier in (1, 2)",
        "select from_xml(a, 'b int'), from_csv(a, 'b int', map('sep', ';')), from_avro(a, '\"int\"')",
        "select '${', '$', '{a}', '$1', '${env:HOME}', `${x}` from t -- ${spark.app.name}",
        "select text.`a`, json.name, extract(year from text.day) from t as text, u as json",
        "select (values is null), trim(from x) from t",
        "select *, json.a, case when json.b then 1 end from t as json left join text on json.c = text.d limit 3",
        "select -json.a from (select end from t) as json where json.b between 1 and 2 order by json.c",
        "table main.t",
        "from t select a union all (select b from u) order by 1",
        "select * from ((select 1) union select 2) join (t join u using (id)) using (id)",
        "a + (select max(b) from t)",
        "select end, value from t union all select in, from from t",
    ],
)
def test_ordinary_texts_are_allowed(text: str) -> None:
    assert forbidden(text) is None


@pytest.mark.parametrize("text", [query.values[0] for query in pairs("references")])
def test_the_queries_of_the_scanner_tests_are_allowed(text: str) -> None:
    assert (forbidden(text) is not None) == ("USING 'cat'" in text)


@pytest.mark.parametrize("kind", ["decimal(10, 2)", "array<struct<a: int, `b c`: map<string, int>>>", "timestamp"])
def test_ordinary_signatures_are_allowed(kind: str) -> None:
    parameters = (Parameter("a", kind, "1 + 1"), Parameter("b", kind, "current_date()"), Parameter("c", kind))
    for returns in (None, kind, f"table (a {kind}, b string comment 'x')"):
        assert forbidden_in_signature(parameters, returns) is None


@pytest.mark.parametrize(
    ("parameter", "returns"),
    [
        (Parameter("a", "int) return reflect('a', 'b') --"), None),
        (Parameter("a", "int default reflect('a', 'b')"), None),
        (Parameter("a", "int", "1) return (select 1"), None),
        (Parameter("a", "int", "reflect('a', 'b')"), None),
        (Parameter("a", "int", "(select max(value) from text.`/x`)"), None),
        (Parameter("a", "int"), "int return reflect('a', 'b') --"),
        (Parameter("a", "int"), "int return `reflect`('a', 'b')"),
    ],
)
def test_a_signature_that_runs_code_is_forbidden(parameter: Parameter, returns: str | None) -> None:
    assert forbidden_in_signature((parameter,), returns) is not None


def test_a_provider_and_a_path_are_distinguished_from_a_table() -> None:
    assert names_files(("csv", "x")) and names_files(("JDBC", "x")) and names_files(("org.x.Y", "x"))
    assert names_files(("nonsense", "/x"))
    assert not names_files(("nonsense", "t")) and not names_files(("a", "b", "/x"))
