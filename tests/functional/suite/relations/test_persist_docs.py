"""dbt-tests-adapter: persist_docs. And documentation of every kind of node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


@pytest.mark.kept
class TestPersistDocs(BasePersistDocs):
    pass


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    pass


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(BasePersistDocsQuotedDescriptionNotAppliedOnMismatch):
    pass


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    pass


AWKWARD = 'it\'s "so" \\ and\nso 日本 🎉 `x` -- {% raw %}{{ no }}{% endraw %} /* y */ 100%'
KEPT = AWKWARD.replace("{% raw %}{{ no }}{% endraw %}", "{{ no }}")


def documentation(text: str) -> str:
    """Returns a description for every kind of node, and descriptions of a reserved name, of a nested field and of
    `id`.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    columns = f"""
    columns:
      - {{name: ID, description: {quoted}}}
      - {{name: from, quote: true, description: {quoted}}}
"""
    nested = f"      - {{name: place.City, description: {quoted}}}\n"
    models = "".join(
        f"  - name: {name}\n    description: {quoted}{columns}{nested if name != 'seen' else ''}"
        for name in ("made", "grown", "seen", "pythonic")
    )
    seed = f"  - name: sown\n    description: {quoted}{columns}"
    snapshot = f"  - name: kept\n    description: {quoted}{columns}"
    return f"version: 2\nmodels:\n{models}seeds:\n{seed}snapshots:\n{snapshot}"


QUERY = "select 1L as id, 'x' as `from`, named_struct('city', 'Basel') as place"
PYTHONIC = f"""
def model(dbt, session):
    dbt.config(materialized="table")
    return session.sql("{QUERY}")
"""
KEPT_SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['id']) }}
select * from {{ ref('sown') }}
{% endsnapshot %}
"""
KINDS = ("made", "grown", "pythonic", "sown", "kept")


class TestEveryKindOfNode:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "made.sql": f"{{{{ config(materialized='table') }}}} {QUERY}",
            "grown.sql": f"{{{{ config(materialized='incremental', unique_key='id') }}}} {QUERY}",
            "seen.sql": QUERY,
            "pythonic.py": PYTHONIC,
            "schema.yml": documentation(AWKWARD),
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id,from\n1,x\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT_SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        configs = {"+persist_docs": {"relation": True, "columns": True}}
        return {"models": configs, "seeds": configs, "snapshots": configs}

    def test_comments_are_stored_unchanged(self, project: Any) -> None:
        run_dbt(["build"])
        for name in KINDS:
            assert self._comments(project, name) == {"": KEPT, "id": KEPT, "from": KEPT, "city": KEPT}, name
        view = project.adapter.connections.catalog.view(self._name(project, "seen"))
        assert view.comment == KEPT
        assert [(column.name, column.comment) for column in view.columns][:2] == [("id", KEPT), ("from", KEPT)]

    def test_a_table_is_created_with_comments_and_comments_of_struct_fields_take_a_second_commit(
        self, project: Any
    ) -> None:
        versions = {name: self._snapshot(project, name).version for name in KINDS}
        assert versions == {"made": 1, "grown": 1, "pythonic": 1, "sown": 0, "kept": 0}

    def test_unchanged_comments_are_not_committed_again(self, project: Any) -> None:
        before = {name: self._snapshot(project, name).version for name in ("grown", "kept")}
        run_dbt(["build", "--select", "grown", "kept"])
        after = {name: self._snapshot(project, name).version for name in ("grown", "kept")}
        assert after == {name: version + 1 for name, version in before.items()}

    def test_an_empty_description_removes_the_comment(self, project: Any) -> None:
        write_file(documentation(""), project.project_root, "models", "schema.yml")
        run_dbt(["build"])
        for name in KINDS:
            assert set(self._comments(project, name).values()) == {None}, name
        assert project.adapter.connections.catalog.view(self._name(project, "seen")).comment is None

    @staticmethod
    def _name(project: Any, name: str) -> RelationName:
        return RelationName(project.database, project.test_schema, name)

    def _snapshot(self, project: Any, name: str) -> Snapshot:
        return project.adapter.connections.catalog.table(self._name(project, name)).snapshot()

    def _comments(self, project: Any, name: str) -> dict[str, str | None]:
        """Returns the comments of the table, of its documented columns and of a field; nodes without the field have
        the column's.
        """
        found = self._snapshot(project, name)
        schema = found.schema
        fields = {"id": schema.require("id"), "from": schema.require("from")}
        place = schema.field("place")
        fields["city"] = place.type.fields[0] if place is not None else fields["id"]  # type: ignore[union-attr]
        return {"": found.metadata.description, **{name: field.comment for name, field in fields.items()}}
