"""What the macros reach that replace dbt's: a change of it builds the nodes again.

Random projects of macros compare the hash with the text that the macros write.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from dbt.adapters.silt.materializations.reached_macros import Around, Macros, Reached, properties_of


@dataclass
class Macro:
    name: str
    macro_sql: str
    package_name: str = "shop"
    calls: tuple[str, ...] = ()

    @property
    def unique_id(self) -> str:
        return f"macro.{self.package_name}.{self.name}"

    @property
    def depends_on(self) -> Any:
        return SimpleNamespace(macros=[f"macro.{self.package_name}.{name}" for name in self.calls])


@dataclass
class Project:
    macros: dict[str, Macro] = field(default_factory=dict)


OWN = [
    *(Macro(name, "", "dbt") for name in ("create_table_as", "default__get_merge_sql", "generate_schema_name")),
    *(Macro(name, "", "dbt") for name in ("test_not_null", "get_where_subquery", "materialization_table_default")),
    Macro("silt__create_table_as", "", "dbt_silt"),
]


def reached(*macros: Macro, around: Around | None = None) -> Reached:
    return Macros(Project({each.unique_id: each for each in (*OWN, *macros)}), around or Around()).replacing()


def replacing(body: str, *calls: str, name: str = "silt__create_table_as") -> Macro:
    return Macro(name, f"{{% macro {name}(temporary, relation, sql) %}}{body}{{% endmacro %}}", calls=calls)


def helper(name: str, body: str, *calls: str) -> Macro:
    return Macro(name, f"{{% macro {name}() %}}{body}{{% endmacro %}}", calls=calls)


CREATED = replacing("{{ sql ~ row_filter() }}", "row_filter")


def test_the_helpers_of_a_replacing_macro_are_reached() -> None:
    found = reached(
        CREATED, helper("row_filter", "{{ deeper() }}", "deeper"), helper("deeper", "x"), helper("other", "y")
    )
    assert set(found.code) == {"shop.silt__create_table_as", "shop.row_filter", "shop.deeper"}
    assert found.unknown == () and found.of_node == frozenset()


@pytest.mark.parametrize(
    "body", ["{% set f = row_filter %}{{ f() }}", "{{ shop.row_filter() }}", "{{ run(row_filter) }}"]
)
def test_a_helper_that_is_called_by_another_name_is_reached(body: str) -> None:
    assert "shop.row_filter" in reached(replacing(body), helper("row_filter", "x")).code


def test_macros_in_a_circle_are_reached_once() -> None:
    assert (
        len(reached(CREATED, helper("row_filter", "{{ silt__create_table_as() }}", "silt__create_table_as")).code) == 2
    )


@pytest.mark.parametrize(
    "name",
    [
        "create_table_as",
        "default__get_merge_sql",
        "spark__get_merge_sql",
        "bigquery__create_table_as",
        "materialization_mine_silt",
    ],
)
def test_a_macro_that_replaces_one_of_dbt_counts(name: str) -> None:
    assert list(reached(replacing("x", name=name)).code) == [f"shop.{name}"]


@pytest.mark.parametrize(
    "name", ["generate_schema_name", "default__star", "test_not_null", "get_where_subquery", "my_macro"]
)
def test_a_macro_whose_result_is_in_the_compiled_code_does_not_count(name: str) -> None:
    assert reached(replacing("{{ run_query('x') }}", name=name)) == Reached()


def test_the_variables_that_are_named_count() -> None:
    macros = (CREATED, helper("row_filter", "{{ var('cut', 0) }}"))
    values = [
        reached(*macros, around=Around(each)).values for each in ({}, {"cut": 1}, {"cut": 2}, {"shop": {"cut": 3}})
    ]
    assert len({str(each) for each in values}) == 4
    assert reached(*macros, around=Around({"cut": 1, "other": 2})).values == values[1]


@pytest.mark.parametrize("body", ["{{ var(name) }}", "{% set v = var %}{{ v('cut') }}", "{{ var.has_var('cut') }}"])
def test_all_variables_count_if_a_name_is_computed(body: str) -> None:
    one, other = (reached(replacing(body), around=Around({"cut": each, "silt_run_id": each})) for each in (1, 2))
    assert one.values == {"var": {"cut": 1}} and other.values == {"var": {"cut": 2}}


def test_environment_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    macros = (CREATED, helper("row_filter", "{{ env_var('CUT', '0') }}"))
    before = reached(*macros).values
    monkeypatch.setenv("CUT", "2")
    assert reached(*macros).values != before


def test_the_target_the_order_of_dispatch_and_flags_count() -> None:
    macro = replacing("{{ target.name }} {{ flags.STORE_FAILURES }}")
    values = [
        reached(
            macro, around=Around(target={"name": target}, flags=SimpleNamespace(STORE_FAILURES=store), dispatch=order)
        ).values
        for target, store, order in (
            ("a", 1, None),
            ("b", 1, None),
            ("a", 2, None),
            ("a", 1, [{"macro_namespace": "dbt"}]),
        )
    ]
    assert len({str(each) for each in values}) == 4


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("{{ graph.nodes }}", "graph"),
        ("{{ run_query('x') }}", "run_query"),
        ("{{ invocation_id }}", "invocation_id"),
        ("{{ run_started_at }}", "run_started_at"),
        ("{{ modules.datetime.date.today() }}", "modules.datetime"),
        ("{{ adapter.execute('x') }}", "adapter.execute"),
        ("{{ context['row_filter']() }}", "context"),
        ("{{ invocation_args_dict.vars }}", "invocation_args_dict"),
        ("{{ env_var('A' ~ 'B') }}", "env_var with a computed name"),
        ("{{ adapter.dispatch(name)() }}", "dispatch with a computed name"),
        ("{% call statement('a', fetch_result=True) %}x{% endcall %}", "the result of a statement"),
        ("{% for each in flags %}{% endfor %}", "flags"),
        ("{% if %}", "code that cannot be read"),
    ],
)
def test_what_cannot_be_known_is_a_reason_to_build(body: str, name: str) -> None:
    found = reached(CREATED, helper("row_filter", body))
    assert found.unknown == (f"the macro row_filter, which runs when it is written, uses {name}",)


@pytest.mark.parametrize(
    "body",
    [
        "{# graph #} 'run_query' graph",
        "{{ modules.re.match('a', 'b') }} {{ adapter.dispatch('x', 'shop')() }}",
        "{% call statement('main') %}x{% endcall %}",
        "{% call statement('main', fetch_result=False) %}x{% endcall %}",
    ],
)
def test_what_is_the_same_in_each_run_is_no_reason(body: str) -> None:
    assert reached(replacing(body)).unknown == ()


def test_properties_of_the_node_count_if_macros_use_them() -> None:
    model = {"config": {"meta": {"owner": "a"}}, "description": "d", "created_at": 5}
    assert reached(replacing("{{ config.get('meta') }}")).of_node == {"config"}
    assert properties_of(model, {"config"}) == {"config": model["config"]}
    assert properties_of(model, {"model"})["description"] == "d" and "created_at" not in properties_of(model, {"model"})
    assert properties_of(model, ()) == {}


def hooked(sql: str, macros: list[str]) -> dict[str, Any]:
    return {"config": {"post-hook": [{"sql": sql}]}, "depends_on": {"macros": macros}}


def test_hooks_count_by_the_macros_and_variables_that_they_use() -> None:
    project = Project({each.unique_id: each for each in (*OWN, helper("clean", "{{ var('cut') }}"))})
    macros = Macros(project, Around({"cut": 1, "day": 2}))
    assert macros.of_hooks(hooked("delete from t", ["macro.shop.clean"])) == Reached()
    assert macros.of_hooks(hooked("delete {{ var('day') }}", [])).values == {"var": {".day": 2}}
    found = macros.of_hooks(hooked("{{ clean() }}", ["macro.shop.clean", "macro.dbt.create_table_as"]))
    assert list(found.code) == ["shop.clean"] and found.values == {"var": {".cut": 1}}


NAMES = ("a", "b", "c", "d")
PIECES = (
    "{{ var('v') }}",
    "{{ var('w', 1) }}",
    "{{ env_var('E', '') }}",
    "{{ target.name }}",
    "x",
    "y",
    "{{ flags.F }}",
)


class History:
    """A project whose macros, variables and environment change at random; `written` is what its macros write."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bodies = {name: self.body(name) for name in NAMES}
        self.variables, self.target, self.flag = {"v": 1}, "dev", 0
        self.environment: dict[str, str] = {}

    def body(self, name: str) -> str:
        calls = [f"{{{{ {each}() }}}}" for each in NAMES if each > name]
        return "".join(self.random.choice((*PIECES, *calls)) for _ in range(2))

    def step(self) -> None:
        name = self.random.choice(NAMES)
        self.random.choice(
            (
                lambda: self.bodies.update({name: self.body(name)}),
                lambda: self.variables.update({self.random.choice("vw"): self.random.randint(0, 2)}),
                lambda: self.environment.update(E=str(self.random.randint(0, 2))),
                lambda: setattr(self, "target", self.random.choice(("dev", "prod"))),
                lambda: setattr(self, "flag", self.random.randint(0, 1)),
            )
        )()

    def reached(self) -> Reached:
        around = Around(self.variables, {"name": self.target}, SimpleNamespace(F=self.flag))
        return reached(replacing("{{ a() }}"), *(helper(*each) for each in self.bodies.items()), around=around)

    def written(self) -> str:
        text = "".join(f"{{% macro {name}() %}}{self.bodies[name]}{{% endmacro %}}" for name in NAMES)
        return jinja2.Template(text + "{{ a() }}").render(
            var=lambda name, default=None: self.variables.get(name, default),
            env_var=self.environment.get,
            target={"name": self.target},
            flags={"F": self.flag},
        )


def stale(history: History, monkeypatch: pytest.MonkeyPatch, hashed: Any = lambda found: found.parts) -> list[str]:
    """Returns the texts that were written otherwise before, with the same hash."""
    known: dict[str, Any] = {}
    found: list[Any] = []
    for _ in range(40):
        history.step()
        monkeypatch.delenv("E", raising=False)
        for name, value in history.environment.items():
            monkeypatch.setenv(name, value)
        reached, text = history.reached(), history.written()
        if known.setdefault(repr(hashed(reached)), text) != text and not reached.unknown:
            found.append(text)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_macros_with_the_same_hash_write_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stale(History(seed), monkeypatch) == []


@pytest.mark.parametrize("bug", ["only its own text", "no values"])
def test_a_hash_that_leaves_something_out_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hashed(found: Reached) -> Any:
        own = {"shop.silt__create_table_as": found.code["shop.silt__create_table_as"]}
        return [own, found.values] if bug == "only its own text" else [found.code]

    assert any(stale(History(seed), monkeypatch, hashed) for seed in range(5))
