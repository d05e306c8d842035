"""`silt branch`, `branches`, `diff` and `merge`: a change is made on a branch, compared, reviewed and merged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError, validate

from dbt.adapters.silt.cli.branching.differences import markdown
from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.arrow.branch_diff import RelationDiff
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import commit
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from tests.unit.cli.house import SCHEMA, House, rows

Silt = Callable[..., str]
Json = Callable[..., Any]


@pytest.fixture
def shop(house: House) -> House:
    """Two tables of several files."""
    orders = house.create("main.orders", rows(0, 5))
    house.append(orders, rows(5, 5))
    house.create("main.customers", rows(0, 2))
    return house


@pytest.fixture
def branch(shop: House, silt: Silt) -> House:
    """The warehouse as a session on the branch sees it."""
    silt("branch", "pr_17")
    return on(shop)


def on(shop: House, name: str = "pr_17") -> House:
    other = House(shop.folder)
    other.catalog = other.catalog.on_branch("silt", other.catalog.named_branches("silt").join(name))
    return other


def rewrite(house: House, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], file: int = 1) -> None:
    """Replaces the rows of one file of a table."""
    log = house.catalog.table(house.name(name))
    snapshot = log.snapshot()
    old = sorted(snapshot.add_files(), key=lambda each: json.loads(each.stats or "{}")["minValues"]["id"])[file]
    first = json.loads(old.stats or "{}")["minValues"]["id"]
    adds = house._written(log, snapshot.metadata, [change(each) for each in rows(first, 5)])
    reads = ReadSet(paths=frozenset([old.path]))
    house_changes = Changes(Operation("MERGE"), adds, (old.remove(log.clock.now_ms()),))
    commit.commit(log, snapshot, house_changes, reads, house._settings())


def test_a_change_is_made_on_a_branch_reviewed_and_merged(
    shop: House, branch: House, silt: Silt, as_json: Json
) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new" if row["id"] > 7 else row["name"]})
    branch.create("main.extra", rows(0, 3))
    branch.catalog.put_view(View(branch.name("main.v"), "select 1", current_database="silt", current_schema="main"))
    found = as_json("diff", "pr_17", "--key", "id")
    changes = {each["name"]: each for each in found["relations"]}
    assert {name: each["change"] for name, each in changes.items()} == {
        "silt.main.orders": "changed",
        "silt.main.extra": "created",
        "silt.main.v": "created",
    }
    orders = changes["silt.main.orders"]
    assert (orders["added"], orders["removed"], orders["changed"], orders["files_read"]) == (0, 0, 2, 2)
    assert orders["changed_by_column"] == {"name": 2}
    assert orders["samples"][0] == {
        "kind": "changed",
        "before": {"id": "8", "name": "name 8"},
        "after": {"id": "8", "name": "new"},
    }
    assert changes["silt.main.extra"]["rows"] == 3
    (listed,) = as_json("branches")["branches"]
    assert listed["changed"] == ["silt.main.extra", "silt.main.orders", "silt.main.v"] and listed["behind"] == {}
    assert as_json("merge", "pr_17", "--if-hash", found["hash"])["tables"] == {
        "silt.main.orders": 2,
        "silt.main.extra": 0,
    }
    assert House(shop.folder).catalog.view(shop.name("main.v")).text == "select 1"
    assert "no branch exists" in silt("branches")


def test_text_names_changes_columns_and_rows(branch: House, silt: Silt) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "id": row["id"] + (row["id"] == 9)})
    shown = silt("diff", "pr_17", "--key", "id")
    assert "branch pr_17: 1 changed" in shown and "hash" in shown
    assert "removed  id=9, name=name 9" in shown and "added" in shown
    shown = silt("diff", "pr_17", "--key", "id", "--rows", "0")
    assert "id=9" not in shown


def test_without_a_key_changed_rows_are_removed_and_added(branch: House, as_json: Json) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    (found,) = as_json("diff", "pr_17")["relations"]
    assert (found["key"], found["added"], found["removed"], found["changed"]) == ([], 5, 5, 0)


def test_a_refactoring_that_writes_the_same_rows_is_equal(branch: House, silt: Silt, as_json: Json) -> None:
    rewrite(branch, "main.orders", dict)
    (found,) = as_json("diff", "pr_17", "--exit-code")["relations"]
    assert (found["change"], found["files_read"]) == ("equal", 2)
    assert "Equal: `silt.main.orders`" in silt("diff", "pr_17", "--format", "markdown", "--exit-code")


def test_the_exit_code_says_whether_anything_differs(branch: House, silt: Silt) -> None:
    assert "nothing has changed" in silt("diff", "pr_17", "--exit-code")
    branch.catalog.drop_table(branch.name("main.customers"))
    assert "dropped" in silt("diff", "pr_17", "--exit-code", code=1)
    assert "dropped" in silt("diff", "pr_17")


def test_versions_of_a_table_are_compared(shop: House, silt: Silt, as_json: Json) -> None:
    rewrite(shop, "main.orders", lambda row: {**row, "name": "new"})
    (found,) = as_json("diff", "orders@v0", "orders@v1")["relations"]
    assert (found["added"], found["removed"], found["rows_before"], found["rows"]) == (5, 0, 5, 10)
    assert found["files_read"] == 1
    (found,) = as_json("diff", "main.orders@v1", "--key", "id", "--exit-code", code=1)["relations"]
    assert (found["changed"], found["changed_by_column"]) == (5, {"name": 5})
    assert as_json("diff", "orders@v1", "orders@v1", "--exit-code")["relations"][0]["change"] == "equal"


def test_columns_that_were_added_removed_and_retyped_are_named(shop: House, as_json: Json) -> None:
    log = shop.catalog.table(shop.name("main.customers"))
    snapshot = log.snapshot()
    fields = [replace(each, type=PrimitiveType("integer")) if each.name == "id" else each for each in SCHEMA.fields[:3]]
    schema = StructType((*fields, StructField("more", PrimitiveType("string"))))
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    removes = tuple(each.remove(1) for each in snapshot.add_files())
    changes = Changes(Operation("CREATE OR REPLACE TABLE"), removes=removes, metadata=metadata)
    commit.commit(log, snapshot, changes, ReadSet(whole_table=True), shop._settings())
    (found,) = as_json("diff", "customers@v0")["relations"]
    assert found["columns"] == {
        "added": ["more"],
        "removed": ["sold"],
        "retyped": [{"name": "id", "before": "bigint", "after": "int"}],
        "renamed": [],
    }
    assert found["removed"] == 2


def test_rows_that_a_deletion_vector_deletes_are_removed(shop: House, as_json: Json) -> None:
    shop.mark(shop.catalog.table(shop.name("main.customers")), [1])
    (found,) = as_json("diff", "customers@v0", "--key", "id")["relations"]
    assert (found["removed"], found["added"], found["changed"]) == (1, 0, 0)


def test_the_key_of_a_model_is_in_the_manifest(branch: House, tmp_path: Path, as_json: Json) -> None:
    node = {"database": "silt", "schema": "main", "name": "orders", "config": {"unique_key": "id"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": {"model.shop.orders": node}}))
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    (found,) = as_json("diff", "pr_17", "--target-path", str(tmp_path))["relations"]
    assert (found["key"], found["changed"]) == (["id"], 5)


@pytest.mark.parametrize(("where", "key"), [(None, ["id"]), ("id > 3", [])])
def test_a_unique_test_of_all_rows_names_the_key(
    branch: House, tmp_path: Path, as_json: Json, where: str | None, key: list[str]
) -> None:
    model = {"database": "silt", "schema": "main", "name": "orders", "config": {}}
    metadata = {"name": "unique", "namespace": None, "kwargs": {"column_name": "id"}}
    test = {"attached_node": "model.shop.orders", "test_metadata": metadata, "config": {"where": where}}
    other = {**test, "test_metadata": {**metadata, "name": "not_null"}}
    nodes = {"test.shop.u": test, "test.shop.n": other, "model.shop.orders": model}
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": nodes}))
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    (found,) = as_json("diff", "pr_17", "--target-path", str(tmp_path))["relations"]
    assert found["key"] == key


def test_a_table_without_a_column_of_the_key_is_compared_without_a_key(branch: House, as_json: Json) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    (found,) = as_json("diff", "pr_17", "--key", "nothing")["relations"]
    assert (found["key"], found["changed"], found["added"]) == ([], 0, 5)


def test_a_comment_has_at_most_sixty_lines_and_no_cell_ends_early(branch: House, silt: Silt) -> None:
    for number in range(70):
        branch.create(f"main.new{number}", rows(0, 1))
    lines = silt("diff", "pr_17", "--format", "markdown").splitlines()
    assert len(lines) <= 60 and any("left out" in each for each in lines)
    assert lines[-1].startswith("Hash: `")
    text = markdown("a|b\nc", None, [RelationDiff("x|y`<script>", "table", "created")])
    assert text[0] == "### a\\|b c: 1 created" and "x\\|y'&lt;script>" in text[-1]


def test_a_conflict_names_the_table_and_the_commits_and_merges_nothing(
    shop: House, branch: House, silt: Silt, as_json: Json
) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "branch"})
    branch.append(branch.catalog.table(branch.name("main.customers")), rows(2, 1))
    rewrite(shop, "main.orders", lambda row: {**row, "name": "base"})
    found = as_json("merge", "pr_17", code=1)
    assert found["tables"] == {} and found["conflicts"][0]["commits"] == ["v2 MERGE"]
    assert "silt.main.orders" in silt("merge", "pr_17", code=1)
    assert shop.catalog.table(shop.name("main.customers")).snapshot().version == 0
    assert as_json("branches")["branches"][0]["behind"] == {"silt.main.orders": 1}


def test_the_base_moves_in_other_tables_and_the_branch_merges(shop: House, branch: House, as_json: Json) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "branch"})
    shop.append(shop.catalog.table(shop.name("main.customers")), rows(2, 1))
    assert as_json("merge", "pr_17")["tables"] == {"silt.main.orders": 2}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["branch", "main"], "the schema `main` exists"),
        (["branch", "pr_17"], "the branch `pr_17` exists"),
        (["branch", "pr_18", "--expires", "0"], "cannot expire after 0 days"),
        (["branch", "../x"], "cannot be the name of a branch"),
        (["branch", "pr_71", "--delete"], "Did you mean pr_17?"),
        (["merge", "pr_71"], "Did you mean pr_17?"),
        (["merge", "pr_17", "--if-hash", "abc"], "does not have the hash abc"),
        (["diff", "pr_71"], "Did you mean pr_17?"),
        (["diff", "orders"], "Give an earlier version"),
        (["diff", "orders@v0", "--table", "orders"], "`--table` is for a branch"),
        (["diff", "orders@v0", "--key", "nothing"], "nothing"),
        (["diff", "orders@v9"], "9"),
        (["diff", "pr_17", "--rows", "-1"], "negative"),
        (["sql", "select 1", "--branch", "pr_71"], "Did you mean pr_17?"),
        (["sql", "select 1", "--branch", "pr_17", "--run", "x"], "both a run and a branch"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(
    shop: House, branch: House, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--warehouse", str(shop.folder)]) == 2
    assert problem in capsys.readouterr().err


def test_queries_without_spark_read_the_branch(branch: House, silt: Silt) -> None:
    branch.append(branch.catalog.table(branch.name("main.customers")), rows(2, 1))
    assert "3" in silt("sql", "select count(*) as n from main.customers", "--branch", "pr_17")
    assert "3" not in silt("sql", "select count(*) as n from main.customers")


def test_an_update_moves_the_branch_to_the_present_tables(shop: House, branch: House, silt: Silt) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "id": row["id"] + 100})
    shop.append(shop.catalog.table(shop.name("main.customers")), rows(2, 3))
    assert "branch pr_17: has the present tables" in silt("branch", "pr_17", "--update")
    inside = on(shop).catalog
    assert inside.table(shop.name("main.customers")).snapshot().version == 1
    assert inside.table(shop.name("main.orders")).snapshot().version == 2
    assert "merged at one moment" in silt("merge", "pr_17")


def test_an_update_that_would_lose_a_change_by_hand_is_refused(shop: House, branch: House) -> None:
    for house in (branch, shop):
        rewrite(house, "main.orders", lambda row: {**row, "id": row["id"] + 100})
    assert main(["branch", "pr_17", "--update", "--warehouse", str(shop.folder)]) == 2
    assert main(["merge", "pr_17", "--run", "--warehouse", str(shop.folder)]) == 2


def test_the_answer_has_the_published_schema(branch: House, as_json: Json) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    branch.catalog.put_view(View(branch.name("main.v"), "select 1", current_database="silt", current_schema="main"))
    schema = json.loads(Path("docs/reference/diff.schema.json").read_text())
    answer = as_json("diff", "pr_17", "--key", "id")
    assert len(answer["relations"]) == 2
    validate(answer, schema)
    with pytest.raises(ValidationError):
        validate({**answer, "relations": [{**answer["relations"][0], "added": -1}]}, schema)


def test_two_branches_are_compared_with_each_other(shop: House, silt: Silt, as_json: Json) -> None:
    for name in ("one", "two"):
        silt("branch", name)
    rewrite(on(shop, "one"), "main.orders", lambda row: {**row, "name": "one"})
    rewrite(on(shop, "two"), "main.orders", lambda row: {**row, "name": "one" if row["id"] > 5 else "two"})
    on(shop, "two").create("main.new", rows(0, 3))
    found = {each["name"]: each for each in as_json("diff", "one", "two", "--key", "id")["relations"]}
    assert found["silt.main.new"]["change"] == "created"
    assert (found["silt.main.orders"]["change"], found["silt.main.orders"]["changed"]) == ("changed", 1)
    back = {each["name"]: each["change"] for each in as_json("diff", "two", "one")["relations"]}
    assert back["silt.main.new"] == "dropped"
    same = as_json("diff", "one", "one")["relations"]
    assert all(each["change"] == "equal" for each in same)


def test_the_page_names_what_differs_and_runs_no_code(branch: House, silt: Silt) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "<script>alert(1)</script>"})
    page = silt("diff", "pr_17", "--key", "id", "--format", "html")
    assert "silt.main.orders" in page and "&lt;script&gt;" in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")


def test_a_comment_names_what_the_last_command_has_built_and_reused(branch: House, silt: Silt, tmp_path: Path) -> None:
    reused = {
        "unique_id": "model.shop.kept",
        "status": "success",
        "adapter_response": {"skipped": True, "reused": True},
    }
    done = [
        {"unique_id": "model.shop.orders", "status": "success", "adapter_response": {}},
        {**reused, "message": "reused"},
        {"unique_id": "test.shop.unique_orders_id.1", "status": "pass", "adapter_response": {}},
    ]
    (tmp_path / "run_results.json").write_text(json.dumps({"results": done, "elapsed_time": 12.34}))
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"})
    comment = silt("diff", "pr_17", "--format", "markdown", "--target-path", str(tmp_path))
    assert "Last dbt command: 1 built, 1 reused, 1 passed, in 12.3 s" in comment
    assert "Reused: `kept`" in comment


def test_files_that_a_foreign_vacuum_has_deleted_are_named_with_the_branch(
    shop: House, branch: House, silt: Silt, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(branch, "main.orders", lambda row: {**row, "name": "new"}, file=0)
    log = shop.catalog.table(shop.name("main.orders"))
    _, lost = log.snapshot().add_files()
    commit.commit(
        log,
        log.snapshot(),
        Changes(Operation("DELETE"), removes=(lost.remove(log.clock.now_ms()),)),
        ReadSet(whole_table=True),
        commit.CommitSettings(),
    )
    assert "no problem" in silt("check")
    log.store.delete(lost.path)
    where = ["--warehouse", str(shop.folder)]
    for table in ([], ["main.orders"]):
        capsys.readouterr()
        assert main(["check", *table, *where]) == 1
        assert f"{lost.path} is missing, and branch pr_17 needs it" in capsys.readouterr().out
    assert main(["sql", "--branch", "pr_17", "select sum(id) from main.orders", *where]) != 0
    assert "silt branch NAME --update" in capsys.readouterr().err
