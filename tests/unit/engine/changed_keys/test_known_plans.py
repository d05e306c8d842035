"""A Spark whose plans have another form than the recorded plans is refused, not believed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.changed_keys import known_plans, proof
from dbt.adapters.silt.engine.changed_keys.known_plans import KNOWN, QUERY
from dbt.adapters.silt.engine.changed_keys.plan_text import resolved_plan, split
from dbt.adapters.silt.engine.changed_keys.proof import NotProved
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from tests.unit.engine.house import House

PLANS = {
    file.stem: file.read_text(encoding="utf-8").rstrip("\n") for file in Path(__file__).with_name("plans").iterdir()
}
NEW = "4.4.0"
SECTIONS = "== Parsed Logical Plan ==\n\n== Analyzed Logical Plan ==\n{}\n\n== Optimized Logical Plan ==\n"


def explained(plan: str) -> str:
    """The result of EXPLAIN EXTENDED with this plan."""
    return SECTIONS.format(plan)


@pytest.mark.connect(gate=True)
def test_the_installed_spark_shows_a_recorded_plan(spark: SparkSession) -> None:
    """If it fails on a new Spark: read the differences, adapt the proof, and record the plan."""
    minor = ".".join(spark.version.split(".")[:2])
    shown = "spark.sql.debug.maxToStringFields"
    spark.conf.set(shown, "1000000")
    try:
        found = str(spark.sql(f"explain extended\n{QUERY}").collect()[0][0])
    finally:
        spark.conf.unset(shown)
    assert known_plans.form(found) in PLANS.values()
    assert known_plans.digest(found) == KNOWN[minor]


def test_each_known_version_has_a_recorded_plan() -> None:
    assert {known_plans.digest(explained(plan)) for plan in PLANS.values()} == set(KNOWN.values())
    assert set(PLANS) <= set(KNOWN)


@pytest.mark.parametrize("version", PLANS)
def test_a_recorded_plan_has_every_operator_and_join_that_a_proof_knows(version: str) -> None:
    plan = resolved_plan(explained(PLANS[version]))
    assert plan is not None
    found = {node.operator for node in plan.all()}
    # The rows of a table are a relation in an input, which a proof does not look into.
    assert found == {*proof._RULES, *proof._OF_CONSTANTS} - {"LocalRelation"}
    joins = {node.arguments.partition(", ")[0] for node in plan.all() if node.operator == "Join"}
    assert joins == {*proof._FIRST_SIDE, *proof._BOTH_SIDES, "RightOuter", "FullOuter"}


@pytest.mark.parametrize("version", KNOWN)
def test_a_tested_version_is_trusted_without_a_plan(version: str) -> None:
    known_plans.check(f"{version}.7", lambda _: pytest.fail("no plan is needed"))


@pytest.mark.parametrize("version", [NEW, "4.3.0-vendor", "5.0.0", "4.10.0"])
def test_any_other_version_is_trusted_if_its_plan_is_a_recorded_one(version: str) -> None:
    for plan in PLANS.values():
        known_plans.check(version, lambda _, plan=plan: explained(plan))  # type: ignore[misc]
    with pytest.raises(NotProved, match=f"runs on Spark {version}, which shows plans in another form than"):
        known_plans.check(version, lambda _: "no plan")


def altered(line: str) -> Iterator[str]:
    """Yields a line of a plan with another name for its operator, and with other arguments."""
    indent = line[: len(line) - len(line.lstrip(" :+-"))]
    operator, _, arguments = line[len(indent) :].partition(" ")
    yield f"{indent}{operator}2 {arguments}".rstrip()
    parts = split(arguments) if arguments else []
    yield f"{indent}{operator} {', '.join([*parts, '7'])}"
    for at in range(len(parts)):
        yield f"{indent}{operator} {', '.join([*parts[:at], *parts[at + 1 :]])}"
        swapped = [*parts[:at], *parts[at + 1 : at + 2], parts[at], *parts[at + 2 :]]
        if swapped != parts:
            yield f"{indent}{operator} {', '.join(swapped)}"


@pytest.mark.parametrize("version", PLANS)
def test_any_renamed_operator_and_any_other_argument_is_refused(version: str) -> None:
    lines = PLANS[version].split("\n")
    tried = 0
    for number, line in enumerate(lines[1:], 1):
        for other in altered(line):
            text = "\n".join([*lines[:number], other, *lines[number + 1 :]])
            with pytest.raises(NotProved):
                known_plans.check(NEW, lambda _, text=text: explained(text))  # type: ignore[misc]
            tried += 1
    assert tried > 3 * len(lines)


def test_a_statement_is_refused_on_a_spark_of_another_form(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.sql("create table orders (customer int, amount bigint)")
    query = "select customer, sum(amount) as total from orders group by customer"
    monkeypatch.setattr(known_plans, "KNOWN", {"3.4": "", "3.5": ""})
    with pytest.raises(UnsupportedStatementError, match=r"the query runs on Spark .*, which shows plans in another"):
        house.sql(f"create table totals changed keys (customer) as {query}")
    house.sql(f"create table totals changed keys (customer) or replace all as {query}")
    assert house.rows("select * from totals") == []
