"""dbt-tests-adapter: unit_testing."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names as reserved_words
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes, BaseUnitTestingVarcharFixtureNoTruncation


@pytest.mark.kept
class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass


class TestUnitTestQuotedReservedWordColumnNames(reserved_words.BaseUnitTestQuotedReservedWordColumnNames):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """Deviates in the quotes of an identifier, which are Spark's."""
        upstream = reserved_words.my_upstream_model_with_reserved_word_column_name_sql
        return {
            "my_model.sql": reserved_words.my_model_sql,
            "my_upstream_model.sql": upstream.replace('"', "`"),
            "unit_tests.yml": reserved_words.test_my_model_csv_fixtures_yml,
        }


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """Deviates in the values: Spark has no `::`, timestamptz nor json, but types that Postgres has not."""
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["DATE '2020-01-02'", "2020-01-02"],
            ["TIMESTAMP '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["TIMESTAMP_NTZ '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["cast('1' as decimal(10, 2))", "1"],
            ["1.5D", "1.5"],
            ["X'c3bc'", "X'c3bc'"],
            ["array('a', 'b', 'c')", "\"array('a', 'b', 'c')\""],
            ["array(1, 2, 3)", "'array(1, 2, 3)'"],
            ["map('a', 1)", "\"map('a', 1)\""],
            ["named_struct('a', 1, 'b', 'x')", "\"named_struct('a', 1, 'b', 'x')\""],
        ]
