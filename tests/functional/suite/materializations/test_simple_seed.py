"""dbt-tests-adapter: simple_seed."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import check_relations_equal

EXPECTED_SQL = (
    seeds.seeds__expected_sql.replace("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP")
    .replace("INTEGER", "BIGINT")
    .replace("TEXT", "STRING")
    .replace('"', "")
)
"""The suite's table of expected values of a seed, with Spark's type names and without double quotes."""


class ExpectedTable:
    """Deviates in the statements that create the expected table: Spark has no TEXT and no double-quoted identifiers."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(EXPECTED_SQL)


class ViewsStay:
    """Deviates in the fate of a view when its table is re-created: the view is kept, and reads the new table (no
    cascade).
    """

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]
        check_relations_equal(project.adapter, ["models__downstream_from_seed_actual", "seed_expected"])


@pytest.mark.kept
class TestBasicSeedTests(ViewsStay, ExpectedTable, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(ViewsStay, ExpectedTable, BaseSeedConfigFullRefreshOn):
    pass


@pytest.mark.long
class TestSeedConfigFullRefreshOff(ExpectedTable, BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(ExpectedTable, BaseSeedCustomSchema):
    pass


@pytest.mark.long
class TestSeedWithUniqueDelimiter(ExpectedTable, BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(ExpectedTable, BaseSeedWithWrongDelimiter):
    pass


class TestSeedWithEmptyDelimiter(ExpectedTable, BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.long
class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(ExpectedTable, BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        """Deviates as ExpectedTable does; and the file is written here, because the suite's own is not at hand."""
        project.run_sql(EXPECTED_SQL)
        content = BOM_UTF8 + seeds.seed__actual_csv.encode()
        Path(project.project_root, "seeds", "seed_bom.csv").write_bytes(content)


@pytest.mark.kept
class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Deviates in the folder in which the class writes and then deletes a file: not a folder next to the tests."""
        return tmp_path_factory.mktemp("project") / "data"


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    """Deviates in the names of types: Spark's instead of Postgres'."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        spark_names = {
            "type: text": "type: string",
            "type: integer": "type: bigint",
            "type: timestamp without time zone": "type: timestamp",
        }
        schema = fixtures.properties__schema_yml
        for postgres, spark in spark_names.items():
            schema = schema.replace(postgres, spark)
        return {"schema.yml": schema}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}
