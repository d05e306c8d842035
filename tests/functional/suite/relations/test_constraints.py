"""dbt-tests-adapter: constraints. And further behaviour of contracts."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

NULL_IN_ID = ["NOT_NULL_VIOLATION", "1 row has a null in the NOT NULL column `id`", '"color":"red"']


class SparkTypes:
    """The types and literals of Spark SQL instead of Postgres'."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self, int_type: str, string_type: str) -> list[list[str]]:
        return [
            ["1", int_type, int_type],
            ["'1'", string_type, string_type],
            ["true", "boolean", "boolean"],
            ["timestamp_ltz'2013-11-03 00:00:00-07'", "timestamp", "timestamp"],
            ["timestamp_ntz'2013-11-03 00:00:00'", "timestamp_ntz", "timestamp_ntz"],
            ["array('a', 'b', 'c')", "array<string>", "array<string>"],
            ["array(1, 2, 3)", "array<int>", "array<int>"],
            ["cast('1' as decimal(38, 3))", "decimal(38, 3)", "decimal(38,3)"],
            ["named_struct('bar', 'baz', 'n', 7)", "'struct<bar: string, n: int>'", "struct<bar:string,n:int>"],
        ]


class TestTableConstraintsColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestViewConstraintsColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestIncrementalConstraintsColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


class TestConstraintsRollback(BaseConstraintsRollback):
    """With the words of this adapter's error."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return NULL_IN_ID


class TestIncrementalConstraintsRollback(BaseIncrementalConstraintsRollback):
    """With the words of this adapter's error."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return NULL_IN_ID


def created(columns: str, query: str, selected: str = "id, color, date_day") -> str:
    """Returns the single statement that contains a table, its constraints and its rows."""
    return f"""
create table <model_identifier> ({columns})
  tblproperties ('delta.setTransactionRetentionDuration' = 'interval 90 days')
  as
  select {selected} from ({query}) as model_subq
"""


FOREIGN_KEY_QUERY = """
-- depends_on: <foreign_key_model_identifier>
select 'blue' as color, 1 as id, '2019-01-01' as date_day
"""
COLUMN_LEVEL = created(
    """
    `id` integer not null, `color` string, `date_day` string,
    primary key (`id`), check ((id > 0)), check (id >= 1),
    foreign key (`id`) references <foreign_key_model_identifier> (`id`), unique (`id`)
    """,
    FOREIGN_KEY_QUERY,
)


class TestConstraintsRuntimeDdlEnforcement(BaseConstraintsRuntimeDdlEnforcement):
    """A column's constraints except NOT NULL are constraints of the table: the format stores them only there."""

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return COLUMN_LEVEL


class TestIncrementalConstraintsRuntimeDdlEnforcement(BaseIncrementalConstraintsRuntimeDdlEnforcement):
    """The same as for a table."""

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return COLUMN_LEVEL


class TestModelConstraintsRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    """With names in backticks."""

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return created(
            """
            `id` integer not null, `color` string, `date_day` string,
            check ((id > 0)), check (id >= 1), primary key (`id`),
            constraint `strange_uniqueness_requirement` unique (`color`, `date_day`),
            foreign key (`id`) references <foreign_key_model_identifier> (id)
            """,
            FOREIGN_KEY_QUERY,
        )


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    """Identifiers are quoted with backticks."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": fixtures.model_quoted_column_schema_yml.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return created(
            "`id` integer not null, `from` string not null, `date_day` string, check ((`from` = 'blue'))",
            "select 'blue' as `from`, 1 as id, '2019-01-01' as date_day",
            "id, `from`, date_day",
        )


def with_sparks_time_zone(model: str) -> str:
    model = model.replace("set session time zone 'Asia/Kolkata'", "set time zone 'Asia/Kolkata'")
    return model.replace("current_setting('timezone')", "current_timezone()")


class TestTableContractSqlHeader(BaseTableContractSqlHeader):
    """The time zone, in Spark's syntax."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": with_sparks_time_zone(fixtures.my_model_contract_sql_header_sql),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalContractSqlHeader(BaseIncrementalContractSqlHeader):
    """The time zone, in Spark's syntax."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        model = with_sparks_time_zone(fixtures.my_model_incremental_contract_sql_header_sql)
        return {
            "my_model_contract_sql_header.sql": model,
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass


CONTRACTS = """
models:
  - name: customers
    config: {materialized: table, contract: {enforced: true}}
    columns:
      - {name: ID, data_type: bigint, constraints: [{type: primary_key}, {type: not_null}]}
      - {name: address, data_type: "struct<city: varchar(20), lines: array<string>>"}
      - {name: name, data_type: text, constraints: [{type: custom, expression: "default 'nobody'"}]}
  - name: orders
    config: {materialized: incremental, unique_key: id, contract: {enforced: true}, on_schema_change: fail}
    constraints:
      - {type: not_null, columns: [customer]}
      - {type: check, name: "a-mount", expression: "amount > 0 -- euros"}
      - {type: primary_key, columns: [id], expression: rely, name: orders_pk}
    columns:
      - {name: id, data_type: bigint}
      - name: customer
        data_type: bigint
        constraints: [{type: foreign_key, to: ref('customers'), to_columns: [ID]}]
      - {name: amount, data_type: int, constraints: [{type: unique, warn_unenforced: false}]}
  - name: seen
    config: {materialized: view, contract: {enforced: true}}
    columns: [{name: id, data_type: bigint}]
  - name: broken
    config: {materialized: view, contract: {enforced: true}}
    columns: [{name: id, data_type: int}, {name: gone, data_type: text}]
"""
ORDERS = """
select 1L as id, 1L as customer, 10 as amount
{% if is_incremental() %} union all select 2L, {{ var('customer', 1) }}, {{ var('amount', 5) }} {% endif %}
"""


class TestContracts:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        address = "named_struct('city', 'Basel', 'lines', array('x'))"
        return {
            "schema.yml": CONTRACTS,
            "customers.sql": f"select {address} as address, 'x' as name, 1L as id",
            "orders.sql": f"-- depends_on: {{{{ ref('customers') }}}}\n{ORDERS}",
            "seen.sql": "select id from {{ ref('orders') }}",
            "broken.sql": "select 1L as id, 'x' as other",
        }

    def test_contracts_are_enforced_and_a_warning_states_once_that_keys_are_not(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run", "--exclude", "broken"])
        assert log.count("not enforced by silt") == 1
        assert "primary_key, foreign_key and unique" in " ".join(log.split())
        described = self._described(project, "orders")
        customers = f"`{project.database}`.`{project.test_schema}`.`customers`"
        assert described["orders_pk"] == "PRIMARY KEY (`id`)"
        assert described["foreign_key_1"] == f"FOREIGN KEY (`customer`) REFERENCES {customers} (`ID`)"
        assert described["unique_1"] == "UNIQUE (`amount`)"
        assert described["a-mount"].startswith("CHECK (amount > 0")
        assert self._described(project, "customers")["ID"] == "bigint"

    def test_an_incremental_run_enforces_the_contract_on_every_row(self, project: Any) -> None:
        for row, message in (("amount: -5", "constraint `a-mount`, amount > 0"), ('customer: "null"', "`customer`")):
            results = run_dbt(["run", "--select", "orders", "--vars", f"{{{row}}}"], expect_pass=False)
            assert "1 row" in results[0].message
            assert message in results[0].message
        relation = f"{project.database}.{project.test_schema}.orders"
        assert project.run_sql(f"select * from {relation}", fetch="all") == [(1, 1, 10)]

    def test_an_incremental_run_enforces_the_contracts_columns_too(self, project: Any) -> None:
        results = run_dbt(["run", "--select", "orders", "--vars", "{amount: 5L}"], expect_pass=False)
        assert "data type mismatch" in results[0].message

    def test_a_violated_contract_shows_the_differences(self, project: Any) -> None:
        results = run_dbt(["run", "--select", "broken"], expect_pass=False)
        words = " ".join(results[0].message.split())
        assert "| id | BIGINT | INT | data type mismatch |" in words.replace("bigint", "BIGINT").replace("int ", "INT ")
        assert "missing in contract" in words
        assert "missing in definition" in words

    def test_an_incomplete_constraint_is_refused(self, project: Any) -> None:
        write_file(CONTRACTS.replace('expression: "amount > 0 -- euros"', ""), "models", "schema.yml")
        results = run_dbt(["run", "--select", "orders", "--full-refresh"], expect_pass=False)
        assert "a constraint of type `check` needs its `expression`" in results[0].message

    @staticmethod
    def _described(project: Any, table: str) -> dict[str, str]:
        relation = f"{project.database}.{project.test_schema}.{table}"
        return {row[0]: row[1] for row in project.run_sql(f"describe table extended {relation}", fetch="all")}
