"""Generic tests with values that SQL must quote, and with a count of failures that is not a count of rows."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

VALUES = r"""
models:
  - name: words
    columns:
      - name: word
        data_tests:
          - accepted_values: {name: right, arguments: {values: ["it's", 'a\b', plain, 'say "so"', "it''s twice"]}}
          - accepted_values: {name: lacks_one, arguments: {values: ["it's", plain, 'say "so"', "it''s twice"]}}
      - name: n
        data_tests:
          - accepted_values: {name: numbers, arguments: {values: [1, 2], quote: false}}
          - accepted_values: {name: numbers_as_texts, arguments: {values: [1, 2, 3]}}
          - relationships: {name: related, arguments: {to: ref('words'), field: n}}
"""
WORDS = r"""
{{ config(materialized='table') }}
select * from values ('it\'s', 1), ('a\\b', 2), ('plain', 1), ('say "so"', 2), ('it\'\'s twice', 1) as t(word, n)
"""


class TestAcceptedValues:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"words.sql": WORDS, "words.yml": VALUES}

    def test_values_with_quotes_and_backslashes_are_compared_as_they_are(self, project: Any) -> None:
        run_dbt(["run"])
        results = run_dbt(["test"], expect_pass=False)
        assert {each.node.name: each.status for each in results} == {
            "right": "pass",
            "lacks_one": "fail",
            "numbers": "pass",
            "numbers_as_texts": "pass",
            "related": "pass",
        }


CALCULATED = {
    "no_rows": ("sum(n)", "where n > 9", "pass", ""),
    "whole": ("sum(n)", "", "fail", "Got 3 results, configured to fail if != 0"),
    "whole_double": ("avg(n) * 2", "", "fail", "Got 3 results"),
    "a_fraction": (
        "avg(n)",
        "",
        "error",
        "`fail_calc` of the test a_fraction is `avg(n)`, and its value is 1.5: use an",
    ),
    "a_text": ("max(word)", "", "error", "`fail_calc` of the test a_text is `max(word)`, of the type string: use an"),
    "a_truth": ("count(*) > 1", "", "error", "`fail_calc` of the test a_truth is `count(*) > 1`, of the type boolean"),
    "nothing": ("null", "limit 1", "pass", ""),
}


class TestFailCalc:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"rows.sql": "{{ config(materialized='table') }} select * from values ('a', 1), ('b', 2) as t(word, n)"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            f"{name}.sql": f"{{{{ config(fail_calc='{calculation}') }}}} select * from {{{{ ref('rows') }}}} {end}"
            for name, (calculation, end, _, _) in CALCULATED.items()
        }

    @pytest.mark.parametrize("stored", [[], ["--store-failures"]])
    def test_a_number_counts_null_is_zero_and_other_values_are_explained(self, project: Any, stored: list[str]) -> None:
        run_dbt(["run"])
        results = run_dbt(["test", *stored], expect_pass=False)
        assert len(results) == len(CALCULATED)
        for each in results:
            _, _, status, said = CALCULATED[each.node.name]
            assert each.status == status, (each.node.name, each.message)
            assert said in str(each.message), each.message
