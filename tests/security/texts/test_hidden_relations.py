"""A stored text cannot hide a relation behind keywords that are names: Spark's own parser is the oracle.

Spark lets `having` or `join` be the name of a table or a column without quotes, so that a scan for keywords may take a
list of relations for something else.
"""

from __future__ import annotations

import itertools
import random
import re

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.stored_texts import forbidden

KEYWORDS = """
    all and anti as between by case cluster cross distinct end except filter from full group having in inner intersect
    is join lateral left like limit map natural not offset on or order outer over pivot qualify reduce rows select semi
    set sort table tablesample then union using values when where window with within
""".split()
FORMS = """
    select 1 from {w}, X; select 1 from {w} as {v}, X; select {w} from {v}, X; select {w} from {v} join X
    select a, {w} from X; select * from t as {w}, X; select * from t {w} join X; select * from t {w}, X
    select {w} as {v} from X t({w}); select (select {w} from X) {v} from {v}; select {w} is null from X t({w})
    select max({w}) from X group by {v}; select * from {w} join {v} join X; with {w} as (select 1) select * from {w}, X
    select {w}, {v} from {w}, X; from {w}, X select {v}; select {w} = {v} from {w}, X; select * from t join {w}, X
    select * from t, {w}, X; select * from t, {w} {v}, X; select * from t, {w} join X; select * from s.{w}, X
    select * from t join {w} on true, X; select * from t where {w} union select * from {v}, X; select -{w} from {v}, X
    select * from t where {w} union table X; select {w} union table X; select * from ({w}, X)
    select * from ({w} join X); select * from (t {w}, X); select {w} {v} from t, X
    select {w}.a from t, X; select t.{w}, {v} from X
    select * from t order by {w}, {v} union select 1 from X; select case {w} when 1 then 2 end, {v} from X
    select case when {w} then {v} end from X; select {w} {v}, 1 from X; select {w} in (select 1 from X)
    select * from t where exists (select {w} from {v}, X); select * from t where a in (table X)
    select * from t limit {w} union table X; select {w}, case from X; select end, case, {w} from X
    select a[{w}] from t, X; select * from t window w as (partition by {w}), X; select {w} - 1 from {v}, X
    select {w} + {v} from t, X
    select 1 from t where {w} * 2 > 1 union table X; select jdbc.a from u as jdbc cross join (select {w} from {v}, X)
    select jdbc.a from u as jdbc cross join (select * from t {w}, X)
""".replace("\n", ";").split(";")
SAMPLE = 3_000


def texts() -> list[str]:
    """Returns each form with each pair of keywords; X is a relation of a provider that may run code."""
    forms = [form.strip().replace("X", "jdbc.`x`") for form in FORMS if form.strip()]
    pairs = itertools.product(KEYWORDS, repeat=2)
    return sorted({form.format(w=one, v=other) for one, other in pairs for form in forms})


def hidden(spark: SparkSession, text: str) -> bool:
    """Returns whether Spark finds a relation in an allowed text which the scan did not find."""
    if forbidden(text) is not None or any(found.parts == ("jdbc", "x") for found in table_references(text)):
        return False
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        plan = parser.parsePlan(text).toString()
    except Exception:  # Py4J's class of an error depends on Spark's version
        return False
    return re.search(r"UnresolvedRelation \[jdbc, x\]", plan) is not None


def test_a_sample_of_texts_with_keywords_as_names_hides_no_relation(spark: SparkSession) -> None:
    sample = random.Random(1).sample(texts(), SAMPLE)
    assert [text for text in sample if hidden(spark, text)] == []


@pytest.mark.long
def test_no_text_with_keywords_as_names_hides_a_relation(spark: SparkSession) -> None:
    assert [text for text in texts() if hidden(spark, text)] == []


def test_the_oracle_finds_a_relation(spark: SparkSession) -> None:
    assert hidden(spark, "select 1 from t, jdbc.`x`") is False
    parser = spark._jsparkSession.sessionState().sqlParser()
    assert "UnresolvedRelation [jdbc, x]" in parser.parsePlan("select 1 from having, jdbc.`x`").toString()
