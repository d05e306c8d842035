"""A table whose rows are replaced by key: after each statement it holds what a full build would write."""

from __future__ import annotations

import pyspark
import pytest
from packaging.version import Version

from dbt.adapters.silt.engine.changed_keys import keyed_query
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    InvalidStatementError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.unit.engine.house import House, side_by_side

TOTALS = "select customer, sum(amount) as total, count(*) as orders from orders group by customer"


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table orders (id int, customer int, amount bigint)")
    house.sql("insert into orders values (1, 1, 10), (2, 1, 20), (3, 2, 5), (4, null, 7)")
    house.sql("create table customers (customer int, name string, country string)")
    house.sql("insert into customers values (1, 'ann', 'no'), (2, 'bob', 'se'), (5, 'eve', 'no')")
    house.sql("create table countries (country string, label string)")
    house.sql("insert into countries values ('no', 'Norway'), ('se', 'Sweden')")
    return house


def reason(house: House, table: str = "totals") -> str | None:
    """Why the last commit replaced all rows."""
    commit = next(iter(house.log(table).newest_commits()))
    found = commit.info.extra.get("rebuilt")
    return found if isinstance(found, str) else None


class Model:
    """A table that is maintained by key, and its query."""

    def __init__(self, house: House, query: str, key: str = "customer", more: str = "", table: str = "totals") -> None:
        self.house, self.query, self.clause, self.table = house, query, f"changed keys ({key}) {more}", table
        house.sql(f"create or replace table {table} {self.clause} as {query}")

    def run(self, txn: tuple[str, int] | None = None) -> str | None:
        """Runs the statement, checks the table, and returns why all rows were replaced."""
        self.house.sql(f"insert into {self.table} by name replace {self.clause} {self.query}", txn)
        assert self.house.rows(f"select * from {self.table}") == self.house.rows(self.query), self.query
        return reason(self.house, self.table)


@pytest.mark.connect(gate=True)
def test_the_rows_of_changed_keys_are_replaced(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into orders values (5, 2, 100), (6, 3, 1)")
    assert model.run() is None
    shop.sql("update orders set customer = 3 where id = 1")
    shop.sql("delete from orders where customer = 2")
    assert model.run() is None
    shop.sql("update orders set amount = 8 where customer is null")
    assert model.run() is None
    shop.sql("delete from orders where customer is null")
    assert model.run() is None
    assert model.run() is None


def test_only_the_files_of_changed_keys_are_rewritten(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into orders values (7, 9, 1)")
    model.run()
    kept = set(shop.log("totals").snapshot().files["path"].to_pylist())
    shop.sql("insert into orders values (8, 9, 1)")
    model.run()
    assert kept & set(shop.log("totals").snapshot().files["path"].to_pylist())


TYPED_KEYS = {
    "n": "id",
    "s": "concat(if(id < 10, 'a', 'b'), repeat(' long text', 9), id)",
    "d": "date_add(date'1999-12-31', id)",
    "t": "timestamp_micros(id * 86400000000 - 1)",
    "u": "timestamp_ntz'2025-01-01 00:00:00' + make_interval(0, 0, 0, id)",
    "m": "cast(id / 4 as decimal(10, 2))",
}


def sales(first: int, end: int, amount: str = "id") -> str:
    columns = ", ".join(f"{value} as {name}" for name, value in TYPED_KEYS.items())
    return f"select {columns}, {amount} as amount from (select int(id) as id from range({first}, {end}))"


def test_files_of_an_input_without_a_changed_key_are_not_read(house: House) -> None:
    house.sql(f"create table sales as {sales(1, 5)}")
    first = house.log("sales").snapshot().files["path"].to_pylist()
    house.sql(f"insert into sales {sales(10, 15)}")
    models = [
        Model(house, f"select {name} as key, sum(amount) as total from sales group by 1", "key", table=f"by_{name}")
        for name in TYPED_KEYS
    ]
    house.sql(f"insert into sales {sales(12, 13, '7')}")
    house.sql("delete from sales where amount = 13")
    expected = [house.rows(model.query) for model in models]
    for path in first:
        house.log("sales").store.delete(path)
    for model, rows in zip(models, expected, strict=True):
        house.sql(f"insert into {model.table} by name replace {model.clause} {model.query}")
        assert (reason(house, model.table), house.rows(f"select * from {model.table}")) == (None, rows)


def test_keys_of_a_widened_column_are_found_in_files_of_both_types(shop: House) -> None:
    shop.sql("create table visits (visitor int, n int) tblproperties (delta.enableTypeWidening = true)")
    shop.sql("insert into visits values (1, 1), (-5, 2), (2147483647, 3)")
    shop.sql("alter table visits alter column visitor type bigint")
    model = Model(shop, "select visitor as customer, sum(n) as total from visits group by visitor")
    shop.sql("insert into visits values (-5, 4), (3000000000, 5)")
    assert model.run() is None
    shop.sql("update visits set n = 6 where visitor = 1 or visitor > 2147483647")
    assert model.run() is None


JOINED = (
    "select c.customer, c.name, t.total from customers c left join "
    f"({TOTALS}) t on t.customer = c.customer where c.country <> 'dk'"
)


def test_a_join_of_inputs_with_the_key_follows_changes_of_each(shop: House) -> None:
    model = Model(shop, JOINED)
    shop.sql("insert into orders values (5, 5, 100)")
    assert model.run() is None
    shop.sql("update customers set country = 'dk' where customer = 2")
    shop.sql("insert into customers values (7, 'kim', 'no')")
    shop.sql("insert into orders values (9, 7, 3)")
    assert model.run() is None
    shop.sql("delete from customers where customer = 1")
    assert model.run() is None


SUPPORTED = (
    "select customer, amount, name from orders join customers using (customer)",
    "select customer, amount, name from orders full join customers using (customer)",
    "select coalesce(o.customer, c.customer) as customer, amount from orders o full join customers c "
    "on o.customer = c.customer",
    "select c.customer, amount from orders o right join customers c on o.customer = c.customer and amount > 5",
    "select customer from customers c left anti join orders o on o.customer = c.customer",
    "select customer, name from customers c left semi join orders o on o.customer = c.customer",
    "select o.customer, amount, name from orders o left join customers c on o.customer <=> c.customer",
    "select customer, amount from orders union all select customer, length(name) from customers",
    "select customer from orders union select customer from customers",
    "select distinct customer, amount from orders",
    "with o as (select * from orders where amount > 5), c as (select o.customer, count(*) n from o group by all) "
    "select o.customer, o.id, c.n from o join c on o.customer = c.customer",
    "select customer, id, sum(amount) over (partition by customer order by id) as running from orders",
    "select a.customer, a.id, b.id as other from orders a join orders b on a.customer = b.customer and a.id < b.id",
    "select customer, x from orders lateral view explode(sequence(1, amount)) e as x",
    "select customer, sum(amount) s from orders group by customer having sum(amount) > 10 order by s",
    "from orders |> where amount > 5 |> aggregate count(*) as n group by customer",
    "with o as (select * from orders) select a.customer, b.amount from o a join o b on a.customer = b.id",
    "with o as (select id, customer, amount from orders where amount > 5), p as (select * from o) "
    "select customer, amount from p union all select id, amount from o union all select customer, id from o",
    "with o as (select id, customer from orders), n as (select id, count(*) as n from o group by id) "
    "select o.customer, n.n from o left join n on n.id <=> o.customer",
)

QUALIFIED = "select customer, id from orders qualify row_number() over (partition by customer order by id desc) = 1"


def test_each_supported_form_follows_changes(shop: House) -> None:
    forms = (*SUPPORTED, QUALIFIED) if Version(pyspark.__version__) >= Version("4.3") else SUPPORTED
    models = [Model(shop, query, table=f"t{number}") for number, query in enumerate(forms)]
    shop.sql("insert into orders values (5, 5, 100), (6, null, 2), (10, 1, 1)")
    shop.sql("delete from orders where id = 3")
    shop.sql("update customers set name = 'anna' where customer = 1")
    shop.sql("insert into customers values (null, 'nil', 'no')")
    shop.sql("update orders set customer = 2 where id = 2")
    assert [model.run() for model in models] == [None] * len(models)


WITH_COUNTRY = (
    "select o.customer, n.label, o.amount from orders o join customers c on c.customer = o.customer "
    "join countries n on n.country = c.country"
)


@pytest.mark.connect
def test_a_changed_input_without_the_key_replaces_all_rows(shop: House) -> None:
    model = Model(shop, WITH_COUNTRY)
    shop.sql("insert into orders values (5, 5, 100)")
    assert model.run() is None
    shop.sql("update countries set label = 'Norge' where country = 'no'")
    assert "silt.main.countries has changed, and the query needs all of its rows" in str(model.run())
    shop.sql("create or replace table countries as select * from countries")
    shop.sql("optimize countries")
    assert model.run() is None


def test_a_table_joined_by_another_column_is_needed_as_a_whole(shop: House) -> None:
    model = Model(shop, "select a.customer, b.amount from orders a join orders b on a.id = b.customer")
    shop.sql("insert into orders values (5, 5, 100)")
    assert "needs all of its rows" in str(model.run())


def test_an_expression_or_view_that_is_read_by_key_and_as_a_whole_replaces_all_rows_if_it_changes(
    shop: House,
) -> None:
    shop.sql("create view bought as select customer, amount from orders")
    for query in (
        "with o as (select * from bought) select customer, amount, (select max(amount) from o) as most from o",
        "with o as (select * from bought) select c.customer, c.name from o join customers c on c.customer = o.customer "
        "where o.amount in (select max(amount) from o)",
        "select customer, amount, (select max(amount) from bought) as most from bought",
        "select c.customer, c.name from bought o join customers c on c.customer = o.customer "
        "where o.amount in (select max(amount) from bought)",
    ):
        model = Model(shop, query)
        assert model.run() is None, query
        shop.sql("insert into customers values (1, 'ann', 'no')")
        assert model.run() is None, query
        shop.sql("insert into orders values (5, 2, 1000)")
        assert "main.orders has changed, and the query needs all of its rows" in str(model.run()), query
        shop.sql("delete from orders where id = 5")


def test_only_files_that_hold_a_changed_key_in_some_column_are_read(house: House) -> None:
    house.sql("create table pairs as select int(id) as a, int(id + 100) as b from range(3)")
    first = house.log("pairs").snapshot().files["path"].to_pylist()
    house.sql("insert into pairs values (1000, 500)")
    query = "with p as (select * from pairs) select x.a as k, x.b, y.a as other from p x left join p y on x.a = y.b"
    model = Model(house, query, "k")
    house.sql("insert into pairs values (2000, 1000), (500, 3000)")
    house.sql("delete from pairs where a = 500")
    expected = house.rows(query)
    for path in first:
        house.log("pairs").store.delete(path)
    house.sql(f"insert into totals by name replace {model.clause} {query}")
    assert (reason(house), house.rows("select * from totals")) == (None, expected)


def test_a_view_that_is_read_by_several_keys_follows_changes(shop: House) -> None:
    shop.sql("create view bought as select id, customer, amount from orders where amount < 500")
    shop.sql("create view pairs as select a.customer, b.amount from bought a left join bought b on a.customer = b.id")
    queries = (
        "select customer, amount from bought union all select id, amount from bought",
        "select a.customer, b.amount from bought a left join bought b on a.customer <=> b.id",
        "select p.customer, p.amount, b.id from pairs p left join bought b on p.customer = b.customer",
    )
    models = [Model(shop, query, table=f"t{number}") for number, query in enumerate(queries)]
    shop.sql("insert into orders values (5, 5, 100), (2, 5, 3), (null, 2, 4)")
    assert [model.run() for model in models] == [None] * len(models)
    shop.sql("update orders set id = 4 where id = 2")
    shop.sql("delete from orders where customer = 5 and amount > 50")
    assert [model.run() for model in models] == [None] * len(models)


WIDER = {
    "int": ("bigint", "3000000000"),
    "smallint": ("int", "70000"),
    "decimal(9,2)": ("decimal(12,2)", "5000000000.25"),
    "date": ("timestamp_ntz", "timestamp_ntz'2026-01-03 04:05:06'"),
}
"""A type of a key -> the type to which Spark widens it, and a value that only the wider type has."""


@pytest.mark.parametrize("narrow", WIDER)
@pytest.mark.parametrize("both", ["union", "union all"])
def test_the_part_of_a_union_whose_key_spark_widens_is_needed_as_a_whole(house: House, narrow: str, both: str) -> None:
    wide, value = WIDER[narrow]
    one, two = ("date'2026-01-01'", "date'2026-01-02'") if narrow == "date" else ("1", "2")
    for table, kind in (("a", narrow), ("b", wide)):
        house.sql(f"create table {table} (k {kind}, v int)")
        house.sql(f"insert into {table} values ({one}, 1), ({two}, 2), (null, 3)")
    model = Model(house, f"select k, v from a {both} select k, v from b", "k")
    house.sql(f"insert into b values ({value}, 4), ({one}, 5)")
    house.sql(f"update b set v = 6 where k = {two} or k is null")
    assert model.run() is None
    house.sql(f"delete from a where k = {one}")
    assert "main.a has changed, and the query needs all of its rows" in str(model.run())
    house.sql(f"delete from b where k = {one}")
    assert model.run() is None


def test_a_union_that_widens_the_key_of_each_part_is_refused(house: House) -> None:
    house.sql("create table a (k decimal(10,2), v int)")
    house.sql("create table b (k decimal(12,0), v int)")
    query = "select k, v from a union all select k, v from b"
    with pytest.raises(UnsupportedStatementError, match="casts it to another type"):
        Model(house, query, "k")
    model = Model(house, query, "k", "or replace all")
    assert "casts it to another type" in str(model.run())


def test_a_key_of_the_type_char_is_compared_as_its_column_shows_it(house: House) -> None:
    house.sql("create table t (k char(3), g char(3), v int) partitioned by (g)")
    house.sql("create table u (k char(3), w varchar(3))")
    house.sql("insert into t values ('ab', 'ab', 1), ('abc', 'a', 2), (null, 'ab', 3)")
    house.sql("insert into u values ('ab', 'ab'), ('b', 'b ')")
    queries = (
        "select k, sum(v) as s from t group by k",
        "select g as k, sum(v) as s from t group by g",
        "select t.k, t.v, u.w from t left join u on t.k = u.k",
        "select w as k, k as other from u",
        "with c as (select * from t) select x.k, y.v from c x join c y on x.k = y.g",
    )
    models = [Model(house, query, "k", table=f"m{number}") for number, query in enumerate(queries)]
    house.sql("insert into t values ('ab ', 'b', 10), ('b', 'ab ', 5)")
    house.sql("update u set w = 'x' where k = 'ab'")
    house.sql("delete from t where k = 'abc'")
    assert [model.run() for model in models] == [None] * len(models)


def test_a_key_whose_columns_differ_in_type_is_refused_with_both_types(house: House) -> None:
    house.sql("create table t (k char(3), v int)")
    house.sql("create table u (k string, c char(5))")
    for query, given, table, other in (
        ("select k from t union all select k from u", "char(3)", "u", "string"),
        ("select k from u union all select k from t", "string", "t", "char(3)"),
        ("select k from t union all select c as k from u", "char(3)", "u", "char(5)"),
        ("select t.k from t join u on t.k = u.k", "char(3)", "u", "string"),
    ):
        with pytest.raises(UnsupportedStatementError) as refused:
            house.sql(f"create table bad changed keys (k) as {query}")
        message = str(refused.value).lower()
        assert f"has a key of the type {given}, but".lower() in message, query
        assert f"of silt.main.{table} has the type {other}".lower() in message, query


def test_unpivot_groupings_by_the_key_and_orders_of_rows_are_maintained(shop: House) -> None:
    for query in (
        "select customer, name, value from orders unpivot (value for name in (amount, id))",
        "select * from (select customer, id, amount, amount as `a b` from orders) "
        "unpivot include nulls ((value, other) for name in ((amount, `a b`), (`a b`, id)))",
        "select customer, id, sum(amount) as total from orders group by customer, rollup (id)",
        "select customer, sum(amount) as total, grouping_id() as level from orders "
        "group by grouping sets ((customer, id), (id, customer, amount), (customer))",
        "select * from (select customer, id % 2 as odd, amount from orders) pivot (sum(amount) for odd in (0, 1))",
        "select customer, try_cast(amount as int) as n from orders distribute by customer sort by n",
        "select /*+ repartition(2) */ customer, timestampadd(day, id, date'2026-01-01') as day from orders",
    ):
        model = Model(shop, query)
        shop.sql("insert into orders values (60, 2, 8), (61, 6, null), (62, null, 9)")
        assert model.run() is None, query
        shop.sql("delete from orders where id >= 60")
        assert model.run() is None, query


def test_strings_may_contain_anything_that_a_plan_contains(shop: House) -> None:
    strings = r"""
        select customer, sum(amount) as total, '(customer#1 = customer#2)' as a, max("Project [customer#1]\n+- x") as b,
            max(regexp_replace('a(1)b', '[^0-9]', '')) as c, max(r'\d[#]') as d, max('it\'s') as e
        from orders
        where concat('[', id, ']') <> '[a#b]'
        group by customer
    """
    shop.sql(f"create view in_brackets as {strings}")
    for query in (strings, "select * from in_brackets"):
        model = Model(shop, query)
        shop.sql("insert into orders (id, customer, amount) values (50, 5, 100)")
        assert model.run() is None
        assert "it's" in {row[-1] for row in shop.rows(query)}


UNSUPPORTED = {
    "select customer, amount from orders order by id limit 2": "LIMIT",
    "select customer, amount from orders limit 2 offset 1": "LIMIT",
    "select customer, amount from orders tablesample (50 percent)": "TABLESAMPLE",
    "select customer, row_number() over (order by id) n from orders": "not partitioned by the key",
    "select customer, amount / sum(amount) over () share from orders": "not partitioned by the key",
    "select customer, rand() r from orders": "rand()",
    "select customer, current_date() d from orders": "current_date",
    "select customer, now() d from orders": "now()",
    "select customer + 1 as customer from orders": "computes the column `customer`",
    "select max(customer) as customer from orders": "over all keys",
    "select max(customer) as customer from orders group by id": "computes the column `customer`",
    "select customer, sum(amount) s from orders group by rollup (customer)": "ROLLUP",
    "select customer, sum(amount) s from orders group by grouping sets ((customer, id), (id))": "GROUPING SETS",
    "select customer, sum(amount) s from orders group by cube (customer)": "CUBE",
    "select value as customer, name from (select id, amount from orders) unpivot (value for name in (id, amount))": (
        "UNPIVOT"
    ),
    "select customer from orders except select customer from customers": "EXCEPT",
    "select customer, amount as `a [EUR]` from orders": "the name `a [EUR]`",
    'select customer, from_json(\'[1]\', \'{"type": "array", "elementType": "long", "containsNull": true}\') as j, '
    "from_json('[]', 'array<decimal(9,2)>') d from orders": "determines a type",
    "select customer from orders version as of 1": "newest version",
    "select cast(customer as int) customer from (select cast(customer as bigint) customer from orders)": "computes",
    "select o.customer from orders o full join customers c on o.id = c.customer": "full join",
    "select customer from doubles": "type double",
}


def test_what_is_not_proved_is_refused_by_name(shop: House) -> None:
    shop.sql("create table doubles (customer double)")
    for query, why in UNSUPPORTED.items():
        with pytest.raises(UnsupportedStatementError) as refused:
            shop.sql(f"create table totals changed keys (customer) as {query}")
        assert why in str(refused.value), query


def test_what_is_not_proved_replaces_all_rows_if_that_is_allowed(shop: House) -> None:
    query = "select customer, amount from orders where id > (select 1) order by id limit 2"
    model = Model(shop, query, more="or replace all")
    assert model.run() == "the query uses LIMIT"


def test_bad_keys_are_refused_by_name(shop: House) -> None:
    def refused(clause: str, query: str = TOTALS) -> str:
        with pytest.raises(SiltError) as error:
            shop.sql(f"create table bad changed keys {clause} as {query}")
        assert isinstance(error.value, ColumnNotFoundError | InvalidStatementError | UnsupportedStatementError)
        return str(error.value)

    assert "`region`" in refused("(region)")
    assert "is a map" in refused("(m)", "select map('a', customer) as m from orders")
    assert "`buyer`" in refused("(customer) mapped to orders (buyer)")
    assert "does not read a table `sales`" in refused("(customer) mapped to sales (customer)")
    assert "does not take its key from `id`" in refused("(customer) mapped to main.orders (id)")
    assert "as many columns" in refused("(customer) mapped to orders (customer, id)")


def test_a_query_that_reads_its_own_table_is_refused(shop: House) -> None:
    Model(shop, TOTALS)
    with pytest.raises(InvalidStatementError, match="plain SELECT"):
        shop.sql(
            "insert into totals by name replace changed keys (customer) or replace all "
            "select * from orders where id > (select max(total) from totals)"
        )


def test_the_keys_that_a_transaction_has_changed_itself_are_replaced(shop: House) -> None:
    model = Model(shop, TOTALS)
    for customer in (1, 7):
        shop.sql("begin")
        shop.sql(f"insert into orders values (9, {customer}, 1)")
        shop.sql("update orders set amount = amount + 1 where id = 3")
        shop.sql(f"insert into totals by name replace {model.clause} {model.query}")
        shop.sql("commit")
        assert shop.rows("select * from totals") == shop.rows(TOTALS)
        assert reason(shop) is None
        shop.sql(f"delete from orders where customer = {customer}")
        assert model.run() is None


def test_changed_keys_are_replaced_in_a_transaction_and_not_if_it_is_rolled_back(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into orders values (9, 1, 1)")
    for end in ("rollback", "commit"):
        before = shop.rows("select * from totals")
        shop.sql("begin")
        shop.sql(f"insert into totals by name replace {model.clause} {model.query}")
        shop.sql(end)
        assert shop.rows("select * from totals") == (before if end == "rollback" else shop.rows(TOTALS))
    assert model.run() is None


def test_a_given_mapping_is_checked_against_the_query(shop: House) -> None:
    shop.sql("create table sales (buyer int, amount bigint)")
    shop.sql("insert into sales values (1, 1), (2, 2)")
    query = "select s.buyer as customer, sum(s.amount) as total from sales s group by s.buyer"
    model = Model(shop, query, more="mapped to main.sales (buyer)")
    shop.sql("insert into sales values (1, 5)")
    assert model.run() is None


def test_a_key_of_several_columns_with_nulls(shop: House) -> None:
    shop.sql("create table visits (region string, day date, n int)")
    shop.sql("insert into visits values ('a', date'2025-01-01', 1), (null, date'2025-01-01', 2), (null, null, 3)")
    model = Model(shop, "select region, day, n from visits where n < 9", "region, day")
    shop.sql("insert into visits values ('a', null, 4), ('a', date'2025-01-01', 5)")
    shop.sql("update visits set n = 10 where region is null and day is null")
    assert model.run() is None


def test_a_view_between_is_followed_until_its_definition_changes(shop: House) -> None:
    shop.sql("create view large as select * from orders where amount >= 10")
    model = Model(shop, "select customer, count(*) as n from large group by customer")
    shop.sql("insert into orders values (5, 1, 100), (6, 1, 1)")
    assert model.run() is None
    shop.sql("create or replace view large as select * from orders where amount >= 1")
    assert model.run() == "the query has changed"
    assert model.run() is None


def test_whatever_else_determines_the_rows_replaces_all_of_them(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into totals values (99, 99, 99)")
    assert "was changed by v1" in str(model.run())
    shop.sql("alter table orders add column note string")
    assert model.run() == "the columns of silt.main.orders have changed"
    shop.sql("drop table orders")
    shop.sql("create table orders (id int, customer int, amount bigint, note string)")
    shop.sql("insert into orders values (1, 1, 1, 'x')")
    assert "dropped and created again" in str(model.run())
    model.query = "select customer, max(amount) as total, count(*) as orders from orders group by customer"
    assert model.run() == "the query has changed"
    shop.sql("optimize totals")
    shop.sql("insert into orders values (2, 1, 5, 'x')")
    assert model.run() is None
    shop.sql("create or replace table totals as select customer, amount as total, 1L as orders from orders")
    assert "does not record" in str(model.run())


def test_a_restored_table_is_built_from_all_rows(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into orders values (5, 2, 100)")
    model.run()
    shop.sql("insert into orders values (6, 2, 100)")
    shop.sql("restore table totals to version as of 0")
    assert "RESTORE" in str(model.run())
    assert model.run() is None
    shop.sql("restore table orders to version as of 1")
    assert model.run() is None


def test_changes_that_the_log_no_longer_has_replace_all_rows(shop: House) -> None:
    shop.sql("create or replace table orders tblproperties ('delta.checkpointInterval' = '2') as select * from orders")
    model = Model(shop, TOTALS)
    first = shop.log("orders").snapshot().version
    for _ in range(4):
        shop.sql("insert into orders values (5, 2, 100)")
    for version in range(first + 2):
        shop.log("orders").store.delete(commit_path(version))
    model.house = shop.another()
    assert "the changes of silt.main.orders are not known" in str(model.run())


def test_changes_whose_data_files_are_deleted_replace_all_rows(shop: House) -> None:
    model = Model(shop, TOTALS)
    before = set(shop.log("orders").snapshot().files["path"].to_pylist())
    shop.sql("update orders set amount = amount + 1")
    for path in before - set(shop.log("orders").snapshot().files["path"].to_pylist()):
        shop.log("orders").store.delete(path)
    assert "the changes are not known" in str(model.run())


def test_a_statement_with_a_txn_that_is_recorded_changes_nothing(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("insert into orders values (5, 2, 100)")
    model.run(("run", 1))
    shop.sql("insert into orders values (6, 2, 100)")
    before = shop.rows("select * from totals")
    text = f"insert into totals by name replace {model.clause} {model.query}"
    assert shop.sql(text, ("run", 1)).first().skipped  # type: ignore[union-attr]
    assert shop.rows("select * from totals") == before
    assert model.run(("run", 2)) is None


def test_a_statement_that_fails_leaves_its_changes_for_the_next(shop: House) -> None:
    model = Model(shop, TOTALS)
    shop.sql("alter table totals add constraint few check (total < 1000)")
    model.run()
    shop.sql("insert into orders values (5, 2, 1000)")
    with pytest.raises(SiltError):
        model.run()
    shop.sql("update orders set amount = 999 where id = 5")
    shop.sql("delete from orders where customer = 2 and amount < 10")
    assert model.run() is None


def test_writers_beside_each_other_leave_the_rows_of_a_full_build(patient_house: House) -> None:
    house = patient_house
    house.sql("create table orders (id int, customer int, amount bigint)")
    house.sql("insert into orders values (1, 1, 10), (2, 2, 20)")
    model = Model(house, TOTALS)
    text = f"insert into totals by name replace {model.clause} {model.query}"
    house.sql("insert into orders values (3, 1, 1)")
    writers = [house.another() for _ in range(3)]
    tasks = [lambda writer=writer: writer.sql(text) for writer in writers]
    side_by_side([*tasks, lambda: house.another().sql("insert into orders values (4, 3, 1)")])  # type: ignore[list-item]
    model.run()
    assert model.run() is None


def test_a_table_that_records_its_changes_records_those_of_the_changed_keys(shop: House) -> None:
    shop.sql(
        "create or replace table orders tblproperties (delta.enableDeletionVectors = true) as select * from orders"
    )
    model = Model(shop, TOTALS)
    shop.sql("alter table totals set tblproperties (delta.enableChangeDataFeed = true)")
    model.run()
    shop.sql("delete from orders where id = 1")
    assert model.run() is None
    version = shop.log("totals").snapshot().version
    assert {row.customer for row in shop.fetched(f"select * from table_changes('totals', {version})")} == {1}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.legacy.castComplexTypesToString.enabled", "true"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.comet.enabled", "false"),  # an accelerator is switched off
    ],
)
def test_a_setting_that_changes_values_replaces_all_rows_and_is_named(shop: House, setting: str, value: str) -> None:
    model = Model(
        shop, "select customer, cast(named_struct('a', sum(amount)) as string) as text from orders group by customer"
    )
    shop.sql("update orders set amount = 50 where id = 3")
    shop.sql(f"set {setting} = {value}")
    assert model.run() == f"{setting} has changed since the last run"
    shop.sql("update orders set amount = 51 where id = 3")
    assert model.run() is None


def test_a_setting_that_changes_no_value_replaces_no_row(shop: House) -> None:
    model = Model(shop, TOTALS)
    for name in (
        "spark.sql.shuffle.partitions",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.files.maxPartitionBytes",
    ):
        shop.sql(f"set {name} = 1000")
    assert model.run() is None


def test_rows_without_recorded_settings_are_replaced_once(shop: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(keyed_query, "hashes", lambda _: {})
        model = Model(shop, TOTALS)
    assert str(model.run()).startswith("its rows were computed by an earlier version of dbt-silt")
    assert model.run() is None
