"""Describes the build of a node, so that the engine can decide whether the node's table already holds its rows."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.__version__ import version as package_version
from dbt.adapters.silt.engine.builds.settings import machine_settings
from dbt.adapters.silt.engine.kernel.lengths_of_time import length_of_time
from dbt.adapters.silt.engine.kernel.log.builds import Build, Effect
from dbt.adapters.silt.engine.sql.tokens import normal_text
from dbt.adapters.silt.materializations.reached_macros import Reached, properties_of
from dbt.adapters.silt.runs.done_again import is_repeatable

UNCHANGED: Final = "unchanged"
"""The value of `reuse` with which a node is reused."""

_FROM: Final = "from"
_NAMES: Final = ("database", "schema", "alias")
"""The configs that name the table, which may differ in each target."""

VARIABLE: Final = "silt_reuse"
"""The dbt variable that switches reuse off."""

_LAG: Final = "lag_tolerance"
_OFF: Final = (None, False, "", "never")
_CHANGED_KEYS: Final = "changed_keys"
_OWN_STRATEGIES: Final = (
    *(None, "default", "append", "merge", "delete+insert", "insert_overwrite", "replace_where"),
    _CHANGED_KEYS,
)
_EXPRESSIONS_OF_SNAPSHOTS: Final = ("unique_key", "updated_at", "check_cols", "dbt_valid_to_current")
_LOCAL_TIME: Final = "/etc/localtime"
_NAME_IN_HOOK: Final = r"""(['"][\w$ -]*['"]|v(ersion)?\s*=\s*['"]?\w+['"]?|[\s,])*"""
_NAMED_IN_HOOK: Final = re.compile(r"\{\{-?\s*((this|target)(\.\w+)?|(ref|source)\(" + _NAME_IN_HOOK + r"\))\s*-?\}\}")
"""The expressions in a hook whose values are names of relations, or of the target, which each node's hash contains."""

_JINJA: Final = re.compile(r"\{[{%]")
_NOT_OF_ROWS: Final = frozenset(
    """
    access batch_size begin concurrent_batches config_keys_defaults config_keys_used docs enabled event_time freshness
    full_refresh grants group isolation_level lookback meta meta_keys_defaults meta_keys_used packages persist_docs pure
    query_tag query_tags reuse state static_analysis tags user_metadata
    """.split()
)
"""The configs that determine no row, or only through the compiled code."""


@dataclass(frozen=True)
class ProjectFacts:
    """The facts that determine the rows of a project's nodes, besides their code.

    Attributes:
        spark_conf: the settings of sessions in the profile.
        macros: macros of the project and of its packages that replace macros of dbt or of this adapter: name -> code.
        spark: the Spark of the profile: a server, or None for a Spark that this machine starts.
        schema: the database and the schema in which names without a schema are looked up.
        written_by: all macros that these macros reach, and the values that they use.
        hooks_of: follows the hooks of a node.
    """

    spark_conf: Mapping[str, Any]
    macros: Mapping[str, str]
    spark: str | None = None
    schema: tuple[str, str] = ("", "")
    written_by: Reached = field(default_factory=Reached)
    hooks_of: Callable[[Mapping[str, Any]], Reached] = lambda _: Reached()

    @property
    def has_own_strategies(self) -> bool:
        """Whether a project's macro may replace a strategy of this adapter."""
        return any("get_incremental_" in name or "get_merge" in name for name in self.macros)

    @cached_property
    def hash(self) -> str:
        """The hash of all of this and of the versions, settings and time zone that a local Spark would have."""
        return _hash([*self._parts, self.schema])

    @cached_property
    def portable_hash(self) -> str:
        """The hash of all of this but the schema, which is another in each target."""
        return _hash(self._parts)

    @property
    def _parts(self) -> list[Any]:
        settings = {name: str(value) for name, value in self.spark_conf.items()}
        spark = self.spark or [_spark_version(), machine_settings()]
        zone = settings.get("spark.sql.session.timeZone") or _local_zone()
        return [package_version, spark, zone, settings, dict(self.macros), *self.written_by.parts]


IN_BATCHES: Final = "it is built in batches"
"""Why a microbatch model is never reused: each batch has other code than the batch before it."""


def is_built_in_batches(model: Mapping[str, Any]) -> bool:
    config = model["config"]
    return bool(config.get("materialized") == "incremental" and config.get("incremental_strategy") == "microbatch")


def is_reusable(model: Mapping[str, Any], default: str | None) -> bool:
    """Returns whether a node, or the result of a data test, is reused when it is unchanged.

    Its config `reuse` decides, else the profile's.

    Raises:
        CompilationError: if `reuse` or `state` has a value that is not supported here.
    """
    config = model["config"]
    state = config.get("state") or {}
    if state and model["resource_type"] == "test":
        raise CompilationError("`state` has no meaning for a data test: leave it out; `reuse` alone decides")
    unknown = sorted(set(state) - {_LAG}) if isinstance(state, Mapping) else [repr(state)]
    if unknown:
        raise CompilationError(f"`state` cannot have {', '.join(unknown)}: its only key is `{_LAG}`")
    tolerance_ms(state)
    reuse = config.get("reuse", default)
    if isinstance(reuse, Mapping):
        source_target(model)
        return True
    if reuse not in (*_OFF, UNCHANGED):
        raise CompilationError(
            f"`reuse` cannot be {reuse!r}: set it to `{UNCHANGED}`, to `never`, or to a mapping such as {{from: prod}}"
        )
    return bool(reuse == UNCHANGED)


def source_target(model: Mapping[str, Any]) -> str | None:
    """Returns the target whose table may be cloned, by the config `reuse: {from: prod}`; None without it.

    Raises:
        CompilationError: if the mapping has another form.
    """
    reuse = model["config"].get("reuse")
    if not isinstance(reuse, Mapping):
        return None
    target = reuse.get(_FROM)
    if set(reuse) != {_FROM} or not isinstance(target, str) or not target.strip():
        raise CompilationError(f"`reuse` cannot be {dict(reuse)!r}: it has one key, `{_FROM}`, the name of a target")
    return target


def cannot_be_cloned(build: Build) -> str | None:
    """Returns why no table of another target can hold the rows of a build, if so."""
    if build.effect is not Effect.REPLACES:
        return "only tables and seeds are cloned, which are built from their inputs alone"
    return None if build.portable else "python models are not compared"


def tolerance_ms(state: Mapping[str, Any]) -> int:
    """Returns `lag_tolerance` in milliseconds; 0 if it is not set.

    Raises:
        CompilationError: if it is not a duration.
    """
    value = state.get(_LAG)
    if value is None:
        return 0
    try:
        return length_of_time(str(value)) // timedelta(milliseconds=1)
    except ValueError as error:
        raise CompilationError(
            f"`state` cannot have `{_LAG}: {value!r}`: give a number and a unit, such as 30m, 4 hours or 7d"
        ) from error


def is_switched_off(variables: Mapping[str, Any], name: str = VARIABLE) -> bool:
    """Returns whether `--vars` switch reuse off for a command, or another feature with its own variable.

    Raises:
        CompilationError: if the variable is neither true nor false.
    """
    value = variables.get(name, True)
    if str(value).lower() not in ("true", "false"):
        raise CompilationError(f"the variable `{name}` cannot be {value!r}: it is true or false")
    return str(value).lower() == "false"


def has_hooks_after(model: Mapping[str, Any]) -> bool:
    """Returns whether a node has statements that run after its own write."""
    return any(model["config"].get(name) for name in ("post-hook", "post_hook", "after_publish"))


def has_hooks(model: Mapping[str, Any]) -> bool:
    """Returns whether a node has hooks."""
    return any(model["config"].get(name) for name in ("pre-hook", "post-hook", "pre_hook", "post_hook"))


def build_of(model: Mapping[str, Any], checksum: str | None, around: ProjectFacts, at_ms: int) -> Build:
    """Describes the build of a node.

    Args:
        model: the node as macros see it.
        checksum: checksum of a seed's file.
        at_ms: the present time, in milliseconds since 1970-01-01 UTC.
    """
    is_sql = model.get("language", "sql") == "sql"
    code = str(model.get("compiled_code") or "")
    is_seed = model["resource_type"] == "seed"
    hooks = around.hooks_of(model)
    beside = [*hooks.parts, properties_of(model, hooks.of_node | around.written_by.of_node)]
    portable = _hash([_checked(model, checksum), _configs(model, _NAMES), beside, around.portable_hash])
    return Build(
        owner=str(model["unique_id"]),
        code=_hash([normal_text(code) if is_sql else code, _checked(model, checksum), _configs(model), beside]),
        environment=around.hash,
        at_ms=at_ms,
        effect=_effect(model, code),
        text=_snapshot_text(model, code) if model["resource_type"] == "snapshot" else None,
        views=is_seed or not is_sql,
        unknown=tuple(_unknown(model, is_sql, around)),
        tolerance_ms=tolerance_ms(model["config"].get("state") or {}),
        portable=portable if is_sql and _effect(model, code) is Effect.REPLACES else "",
        query=None if is_seed else code,
    )


def dbt_version() -> str:
    """Returns the version of dbt, whose macros and comparison determine the result of a unit test."""
    return version("dbt-core")


def build_of_test(test: Mapping[str, Any], texts: Sequence[str], around: ProjectFacts, at_ms: int) -> Build:
    """Describes a test, as a build that writes no table.

    Args:
        test: the test as macros see it.
        texts: the query whose rows are the test's result, and everything else in the project that determines it.
        at_ms: the present time, in milliseconds since 1970-01-01 UTC.
    """
    return Build(
        # Two targets of one warehouse run the same test on other tables.
        owner=f"{test['unique_id']} in {test['schema']}",
        code=_hash([normal_text(texts[0]), *texts[1:]]),
        environment=around.hash,
        at_ms=at_ms,
        unknown=(*(["it has a sql_header"] if test["config"].get("sql_header") else []), *around.written_by.unknown),
    )


def build_of_view(model: Mapping[str, Any], around: ProjectFacts, at_ms: int) -> Build:
    """Describes the creation of a view; arguments as for `build_of`."""
    described = [model["config"], *(model.get(name) for name in ("columns", "description", "constraints"))]
    return build_of_test(model, [str(model.get("compiled_code") or ""), _hash(described)], around, at_ms)


def _effect(model: Mapping[str, Any], code: str) -> Effect:
    if model["resource_type"] == "snapshot":
        return Effect.ADDS if str(model["alias"]).lower() in code.lower() else Effect.KEEPS
    if model["config"].get("materialized") != "incremental":
        return Effect.REPLACES
    follows_inputs = model["config"].get("incremental_strategy") == _CHANGED_KEYS
    return Effect.REPEATS if follows_inputs or is_repeatable(model) else Effect.ADDS


def _unknown(model: Mapping[str, Any], is_sql: bool, around: ProjectFacts) -> Iterator[str]:
    config = model["config"]
    yield from around.written_by.unknown
    if not is_sql and not config.get("pure"):
        yield "it is a python model without `pure: true`"
    if config.get("sql_header"):
        yield "it has a sql_header"
    if _has_computed_pre_hook(config):
        yield "its pre-hook has macros or variables"
    if config.get("materialized") == "incremental":
        strategy = config.get("incremental_strategy")
        if is_built_in_batches(model):
            yield IN_BATCHES
        elif strategy not in _OWN_STRATEGIES or around.has_own_strategies:
            yield "its incremental strategy is the project's own"


def _has_computed_pre_hook(config: Mapping[str, Any]) -> bool:
    """Returns whether the statements of a pre-hook are known only when it runs, because it is more than SQL and names.

    The hook may then do other work than in the last build, or other work on the same day.
    """
    given = [each for name in ("pre-hook", "pre_hook") for each in _listed(config.get(name))]
    texts = [str(each.get("sql")) if isinstance(each, Mapping) else str(each) for each in given]
    return any(_JINJA.search(_NAMED_IN_HOOK.sub("", text)) for text in texts)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _snapshot_text(model: Mapping[str, Any], code: str) -> str:
    """Returns the SQL that determines a snapshot's rows: its query, and its configs that may contain expressions."""
    given = [model["config"].get(name) for name in _EXPRESSIONS_OF_SNAPSHOTS]
    texts = [text for each in given for text in (each if isinstance(each, list) else [each]) if isinstance(text, str)]
    return "\n, ".join([code, *texts])


def _configs(model: Mapping[str, Any], without: Container[str] = ()) -> list[Any]:
    given = model["config"].items()
    config = {name: value for name, value in given if name not in _NOT_OF_ROWS and name not in without}
    columns = model.get("columns") or {}
    typed = {
        name: [each.get("data_type"), each.get("constraints"), each.get("quote")]
        for name, each in columns.items()
        if isinstance(each, Mapping)
    }
    return [config, typed, model.get("constraints")]


def _checked(model: Mapping[str, Any], checksum: str | None) -> str | None:
    return checksum if model["resource_type"] == "seed" else None


def _spark_version() -> str | None:
    for name in ("pyspark", "pyspark-client", "pyspark-connect"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def _local_zone() -> list[Any]:
    return [*time.tzname, time.timezone, os.path.realpath(_LOCAL_TIME)]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]
