"""Finds the macros and values that the code around a node's compiled code uses: hooks, and macros instead of dbt's.

Such code runs between the compilation of a node and its write, so that its result is not in the compiled code. All
macros that it reaches count, and the values of the variables of dbt that they use.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Final

from dbt_common.clients.jinja import get_environment
from jinja2 import TemplateError, nodes

_PACKAGES: Final = ("dbt", "dbt_spark", "dbt_silt")
_OF_TESTS: Final = r"test_\w+|get_where_subquery"
_NAMES_IN_CODE: Final = re.compile(
    rf"((silt|spark|default)__)?(generate_\w+_name|ref|source|is_incremental|{_OF_TESTS})"
)
"""Macros whose results are in the compiled code."""

_MATERIALIZATION: Final = "materialization_"
_VALUES: Final = ("var", "env_var", "target", "flags", "dbt_version")
_NODE: Final = ("config", "model")
_UNKNOWN: Final = (
    *("graph", "run_query", "load_result", "context", "builtins", "env", "render", "invocation_args_dict"),
    *("run_started_at", "invocation_id", "thread_id", "selected_resources", "database_schemas", "dbt_metadata_envs"),
)
_PROPERTIES: Final = (
    *("name", "description", "meta", "tags", "columns", "path", "fqn", "access", "group", "config", "constraints"),
    *("docs", "version", "latest_version", "contract", "sources", "refs", "package_name", "language"),
)
_UNKNOWN_ATTRIBUTES: Final = {"adapter": ("execute", "run_sql"), "modules": ("datetime",)}


@dataclass(frozen=True)
class Around:
    """The values of dbt that macros may use.

    Attributes:
        variables: the variables of the project and of `--vars`.
        target: `target` of macros.
        flags: the flags of the command.
        dispatch: the configured orders in which dispatch looks for macros.
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    flags: Any = None
    dispatch: Any = None


@dataclass(frozen=True)
class Reached:
    """The macros and values that some code reaches.

    Attributes:
        code: the macros of the project and its packages: name -> code.
        values: the values that the code and these macros use.
        unknown: the values that cannot be known, as reasons.
        of_node: `config` and `model`, if they use the node's configs or its other properties.
    """

    code: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    of_node: frozenset[str] = frozenset()

    @property
    def parts(self) -> list[Any]:
        """The parts of the hash of a build."""
        return [dict(self.code), dict(self.values)]


@dataclass(frozen=True)
class Macros:
    """The macros of a project.

    Args:
        manifest: dbt's manifest.
    """

    manifest: Any
    around: Around = field(default_factory=Around)

    def replacing(self) -> Reached:
        """Follows the macros that replace macros of dbt or of this adapter.

        Macros that compute names of relations are left out, because the names are in the compiled code.
        """
        own = {each.name for each in self.manifest.macros.values() if each.package_name in _PACKAGES}
        bases = own | {name.partition("__")[2] for name in own if "__" in name}
        roots = [each for each in self._of_project() if _replaces(each.name, bases)]
        found = self._reached(roots)
        dispatch = {"dispatch": self.around.dispatch} if self.around.dispatch else {}
        return Reached(found.code, {**found.values, **dispatch}, found.unknown, found.of_node)

    def of_hooks(self, model: Mapping[str, Any]) -> Reached:
        """Follows the hooks of a node, if they have Jinja.

        Hooks that write something else in each run, such as an audit, do not prevent reuse.
        """
        texts = [_text(each) for name in ("pre-hook", "post-hook") for each in _listed(model["config"].get(name))]
        texts = [each for each in texts if "{{" in each or "{%" in each]
        if not texts:
            return Reached()
        ids = (model.get("depends_on") or {}).get("macros") or ()
        known = [self.manifest.macros[each] for each in ids if each in self.manifest.macros]
        return self._reached([each for each in known if each.package_name not in _PACKAGES], texts)

    def _of_project(self) -> Iterator[Any]:
        return (each for each in self.manifest.macros.values() if each.package_name not in _PACKAGES)

    def _reached(self, roots: Iterable[Any], texts: Iterable[str] = ()) -> Reached:
        """Follows calls from the roots, by dbt's list of them and by names, which may be more."""
        by_name: dict[str, list[Any]] = {}
        for each in self._of_project():
            by_name.setdefault(each.name, []).append(each)
        left, macros, uses = list(roots), {}, _Uses()
        for text in texts:
            found = _uses(text, "a hook")
            uses.add(found)
            left += [each for name in found.names for each in by_name.get(name, ())]
        while left:
            macro = left.pop()
            if macro.unique_id in macros or macro.package_name in _PACKAGES:
                continue
            macros[macro.unique_id] = macro
            found = _uses(str(macro.macro_sql), f"the macro {macro.name}")
            uses.add(found)
            left += [each for name in found.names for each in by_name.get(name, ())]
            left += [self.manifest.macros[each] for each in macro.depends_on.macros if each in self.manifest.macros]
        code = {f"{each.package_name}.{each.name}": str(each.macro_sql) for each in macros.values()}
        values = {name: self._value(name, uses) for name in _VALUES if name in uses.names}
        unknown = tuple(sorted(f"{where}, which runs when it is written, uses {name}" for where, name in uses.unknown))
        return Reached(dict(sorted(code.items())), values, unknown, frozenset(uses.names.intersection(_NODE)))

    def _value(self, name: str, uses: _Uses) -> Any:
        values: Mapping[str, Callable[[], Any]] = {
            "var": lambda: self._variables(uses),
            "env_var": lambda: {each: os.environ.get(each) for each in sorted(uses.environment)},
            "target": lambda: self.around.target,
            "flags": lambda: {each: getattr(self.around.flags, each, None) for each in sorted(uses.flags)},
            "dbt_version": lambda: metadata.version("dbt-core"),
        }
        return values[name]()

    def _variables(self, uses: _Uses) -> Any:
        """Returns the variables that code names, even in the scope of a package; all of them if a name is computed."""
        given = {name: each for name, each in self.around.variables.items() if not name.startswith("silt_")}
        if uses.any_variable:
            return given
        scopes = {"": given, **{name: each for name, each in given.items() if isinstance(each, Mapping)}}
        return {
            f"{scope}.{name}": each[name] for scope, each in scopes.items() for name in uses.variables if name in each
        }


def properties_of(model: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Returns the properties of a node that are the same in each run of the same project, as far as they are used.

    Args:
        used: the names `config` and `model`, under which macros find them.
    """
    names = (*(["config"] if "config" in used else []), *(_PROPERTIES if "model" in used else []))
    return {name: model.get(name) for name in names}


@dataclass
class _Uses:
    """The names that code uses.

    Attributes:
        names: all names.
        variables: the variables of dbt, unless `any_variable` says that a name is computed.
        environment: the environment variables.
        flags: the flags.
        unknown: the place, and the name whose value cannot be known.
    """

    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    environment: set[str] = field(default_factory=set)
    flags: set[str] = field(default_factory=set)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    any_variable: bool = False

    def add(self, other: _Uses) -> None:
        self.any_variable |= other.any_variable
        for name in ("names", "variables", "environment", "flags", "unknown"):
            getattr(self, name).update(getattr(other, name))


@functools.lru_cache(maxsize=1_000)
def _uses(text: str, where: str) -> _Uses:
    """Returns the names that Jinja code uses; strings and comments have no names."""
    try:
        tree = get_environment(None, capture_macros=False).parse(text)
    except TemplateError:
        return _Uses(unknown={(where, "code that cannot be read")})
    uses = _Uses({each.name for each in tree.find_all(nodes.Name)})
    unknown = {each for each in _UNKNOWN if each in uses.names}
    for each in tree.find_all(nodes.Getattr):
        uses.names.add(each.attr)
        owner = each.node.name if isinstance(each.node, nodes.Name) else ""
        if owner == "flags":
            uses.flags.add(each.attr)
        if each.attr in _UNKNOWN_ATTRIBUTES.get(owner, ()):
            unknown.add(f"{owner}.{each.attr}")
    unknown.update(_dynamic(tree, uses))
    uses.unknown.update((where, each) for each in unknown)
    return uses


def _dynamic(tree: nodes.Template, uses: _Uses) -> Iterator[str]:
    """Yields the calls with a computed name; notes the variables with a constant name."""
    times = sum(each.name == "var" for each in tree.find_all(nodes.Name))
    for call in tree.find_all(nodes.Call):
        first = call.args[0].value if call.args and isinstance(call.args[0], nodes.Const) else None
        name = getattr(call.node, "name", None) or getattr(call.node, "attr", None)
        if name == "env_var" and first is not None:
            uses.environment.add(str(first))
        elif name == "var" and first is not None:
            uses.variables.add(str(first))
            times -= 1
        elif name in ("env_var", "dispatch") and first is None:
            yield f"{name} with a computed name"
        elif name == "statement" and any(each.key == "fetch_result" and _is_true(each.value) for each in call.kwargs):
            yield "the result of a statement"
    uses.any_variable = times > 0
    if "flags" in uses.names and not uses.flags:
        yield "flags"


def _is_true(value: nodes.Node) -> bool:
    return not isinstance(value, nodes.Const) or bool(value.value)


def _replaces(name: str, bases: set[str]) -> bool:
    if _NAMES_IN_CODE.fullmatch(name):
        return False
    return name in bases or name.startswith(_MATERIALIZATION) or name.partition("__")[2] in bases


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _text(hook: Any) -> str:
    return str(hook.get("sql", "")) if isinstance(hook, Mapping) else str(hook)
