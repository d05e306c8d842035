"""Checks the configuration of a node of any materialization, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations import unused_configs
from dbt.adapters.silt.materializations.incremental.config import blank_names, named_twice
from dbt.adapters.silt.materializations.incremental.config import problems as incremental_problems
from dbt.adapters.silt.materializations.incremental.strategies import key_warning
from dbt.adapters.silt.runs.once import first_time

if TYPE_CHECKING:
    from dbt.adapters.silt.materializations import audits
    from dbt.adapters.silt.materializations.unused_configs import ConfigNames
else:
    audits = lazy_module("dbt.adapters.silt.materializations.audits")

ALL_ROWS: Final = "all"
DIFFERENCES: Final = "differences"
"""The values of `write`: whether a `table` model replaces all rows, or writes only the rows that differ."""

Node = Mapping[str, Any]

_OF_SNAPSHOTS = ("unique_key", "updated_at", "check_cols", "dbt_valid_to_current")
_OF_TABLES = ("partition_by", "liquid_clustered_by", "location")
_OWN_NAMES = "a config of your own belongs in `meta`"


def check_configs(node: Node, names: ConfigNames, project: str, others: Collection[Node]) -> list[str]:
    """Raises an error if the configuration of a node cannot be used.

    Args:
        node: the node that is about to run.
        names: the names of configs.
        project: the name of the project; a misspelt config in a package, which its user cannot change, is a warning.
        others: all nodes of the run; a warning also names the other nodes that it concerns.

    Returns:
        Warnings, each once in a run: of configs and keys without effect, and of a strategy that lacks its key.

    Raises:
        CompilationError: the configuration cannot be used; the message lists all problems.
        DbtRuntimeError: a config has a value that no table can be made with.
    """
    config = node["config"]
    misspelt = dict(names.misspelt(config))
    is_own = node.get("package_name", project) == project
    found = [_unknown(name, nearest) for name, nearest in misspelt.items()] if is_own else []
    if config.get("materialized") == "incremental":
        found += incremental_problems(config)
    elif node.get("resource_type") == "snapshot":
        found += [*blank_names(config, _OF_SNAPSHOTS), *named_twice(config), *_of_snapshots(config)]
    if node.get("language") == "python" and config.get("materialized") == "view":
        found.append("a view has no python code: use `materialized: table` or `incremental`")
    found += [*audits.problems(config), *_of_writing(node), *_of_later_statements(config)]
    found += [*blank_names(config, _OF_TABLES), *_of_delimiter(node)]
    if found:
        listed = "\n".join(f"  - {each}" for each in found)
        raise CompilationError(f"The configuration of this {_kind(node)} cannot be used:\n{listed}")
    return [
        *_of_a_package({} if is_own else misspelt, node),
        *_of_no_key(node),
        *(_of_constraints(node) if is_own else ()),
        *_of_keys(node),
        *unused_configs.warnings(node, others),
    ]


def sample_warning(selected: Collection[Node], inputs: Mapping[str, Node]) -> str | None:
    """Returns the warning that `--sample` reads all rows of inputs without `event_time`; once in a command.

    Inputs that the command builds itself have only the rows of the sample.

    Args:
        selected: the nodes of the run.
        inputs: all nodes and sources of the project, by their unique ids.
    """
    if not first_time("inputs without event_time are read completely"):
        return None
    built = {each["unique_id"] for each in selected}
    read = {id for each in selected if each.get("language") == "sql" for id in each["depends_on"]["nodes"]} - built
    whole = [inputs[id] for id in sorted(read & inputs.keys()) if _is_whole(inputs[id]["config"])]
    if not whole:
        return None
    names = ", ".join(".".join(filter(None, (each.get("source_name"), each["name"]))) for each in whole)
    return f"`--sample` reads all rows of {names}: configure `event_time` there, the column that rows are sampled by"


def _is_whole(config: Mapping[str, Any]) -> bool:
    return not config.get("event_time") and config.get("materialized") != "ephemeral"


def _of_writing(node: Node) -> Iterator[str]:
    """Yields the problems of `write`, the config of a table that is replaced by the rows that differ."""
    config, write = node["config"], node["config"].get("write")
    if write in (None, ALL_ROWS):
        return
    if write != DIFFERENCES:
        yield f"`write` must be `{ALL_ROWS}` or `{DIFFERENCES}`, but is {write!r}"
    elif node.get("resource_type", "model") != "model" or config.get("materialized") != "table":
        yield f"`write: {DIFFERENCES}` is for models with `materialized: table`: leave it out"
    elif not config.get("unique_key"):
        yield f"`write: {DIFFERENCES}` needs `unique_key`, the columns that tell the rows apart"
    else:
        yield from [*blank_names(config, ("unique_key",)), *named_twice(config)]


def _of_snapshots(config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the problems of values that dbt refuses without their config, or turns into other values."""
    if config.get("hard_deletes") not in (None, *_HARD_DELETES):
        yield f"`hard_deletes` must be one of {', '.join(_HARD_DELETES)}, but is {config['hard_deletes']!r}"
    current = config.get("dbt_valid_to_current")
    if isinstance(current, str) and _BARE_DATE.fullmatch(current.strip()):
        yield (
            f"`dbt_valid_to_current` is the expression {current}, a subtraction: write the date as "
            f"\"timestamp'{current.strip()}'\""
        )


_HARD_DELETES: Final = ("ignore", "invalidate", "new_record")
_BARE_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}( [\d:.]+)?")


def _of_delimiter(node: Node) -> Iterator[str]:
    """Yields the problem of a delimiter, which may be a blank character: a tab, or a space."""
    given = node["config"].get("delimiter")
    if given == "":
        yield from blank_names(node["config"], ("delimiter",))
    elif given is not None and node.get("resource_type") == "seed" and (not isinstance(given, str) or len(given) != 1):
        yield f'`delimiter` must be one character, but is {given!r}: a tab is "\\t" in double quotes'


def _of_keys(node: Node) -> Iterator[str]:
    """Yields a warning for each unknown key of a config that is a mapping, which dbt ignores."""
    for name, known in _KEYS.items():
        # dbt drops unknown keys of configs that are classes.
        given = (node.get("unrendered_config") or {}).get(name) or node["config"].get(name)
        for key in given if isinstance(given, Mapping) else ():
            if key not in known and first_time(f"{name} of {node.get('unique_id')} has {key}"):
                near = nearest(str(key), known)
                meant = f": did you mean `{near}`?" if near else ""
                yield f"{node['name']}: `{name}` has no `{key}`, only {listed(known)}: it has no effect{meant}"


_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "persist_docs": ("relation", "columns"),
    "snapshot_meta_column_names": (
        "dbt_valid_from",
        "dbt_valid_to",
        "dbt_scd_id",
        "dbt_updated_at",
        "dbt_is_deleted",
    ),
}


def _of_later_statements(config: Mapping[str, Any]) -> Iterator[str]:
    given = config.get("after_publish")
    texts = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
        yield f"`after_publish` must be a statement or a list of statements, but is {given!r}"


def _of_constraints(node: Node) -> Iterator[str]:
    """Yields the warning that constraints are not enforced, because dbt ignores them without a contract."""
    if (node["config"].get("contract") or {}).get("enforced") and node.get("resource_type", "model") == "model":
        return
    columns = (node.get("columns") or {}).values()
    given = [
        *(node.get("constraints") or ()),
        *(each for column in columns for each in column.get("constraints") or ()),
    ]
    kinds = sorted({str(each["type"]) for each in given if each["type"] in _ENFORCED})
    if kinds and first_time(f"{node.get('unique_id')} has constraints without a contract"):
        is_model = node.get("resource_type", "model") == "model"
        remedy = "set `contract: {enforced: true}`, with the `data_type` of each column, or use" if is_model else "use"
        yield (
            f"{node['name']}: the constraints {listed(kinds)} have no effect, because "
            f"{'the model has no contract' if is_model else 'only a model has a contract'}: {remedy} data tests"
        )


_ENFORCED: Final = ("check", "not_null")


def _unknown(name: str, nearest: str) -> str:
    return f"`{name}` is unknown: did you mean `{nearest}`? If not, {_OWN_NAMES}"


def _kind(node: Node) -> str:
    config, kind = node["config"], node.get("resource_type", "model")
    return f"{config['materialized']} model" if kind == "model" and config.get("materialized") else str(kind)


def _of_no_key(node: Node) -> Iterator[str]:
    warning = key_warning(node["config"]) if node["config"].get("materialized") == "incremental" else None
    if warning is not None and first_time(f"{node.get('unique_id')} has no key"):
        yield f"{node['name']}: {warning}"


def _of_a_package(misspelt: Mapping[str, str], node: Node) -> Iterator[str]:
    for name, meant in misspelt.items():
        if first_time(f"the config {name} of {node['package_name']} is unknown"):
            yield (
                f"The config `{name}` is unknown and has no effect; `{meant}` is a config "
                f"({node['name']} of the package {node['package_name']})"
            )
