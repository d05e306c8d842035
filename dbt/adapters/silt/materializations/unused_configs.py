"""Warns about configs without an effect: configs of other adapters, and misspelt and misplaced configs.

A model's rows never depend on a config in this module. A config that could change rows is applied, or rejected before
anything is written. dbt passes on every name in a config, and ignores every key outside of `config`, so a mistake would
change the result.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.dbt_seams.project_values import CONFIGS
from dbt.adapters.silt.materializations.partitioning import clustering, partitioning
from dbt.adapters.silt.runs.once import first_time

_OPTIMIZE = "to order the rows in files, add the post_hook `{{ silt_optimize(this, zorder_by=[...]) }}`"
_SIZES = "files are left out by their statistics instead"
_ACCESS = "everyone who can read the warehouse's folder can read the table"
_ENGINE = "every model runs on the profile's Spark"
_INSTALLED = "a python model imports the packages that are installed with dbt"
_FOREIGN = "it belongs to another warehouse"
_FOLDERS = f"only columns have partition folders; {_SIZES}. `insert_overwrite` uses it anyway"

UNUSED: Mapping[str, str] = {
    # Spark and Databricks
    "location_root": "the warehouse chooses the folder of a table",
    "buckets": f"Delta tables have no buckets; {_SIZES}",
    "clustered_by": f"Delta tables have no buckets; {_SIZES}",
    "auto_liquid_cluster": "no columns are chosen for you; name them in `liquid_clustered_by`",
    "zorder_by": f"a table is not rewritten after each run; {_OPTIMIZE}",
    "zorder": f"a table is not rewritten after each run; {_OPTIMIZE}",
    "options": "a Delta table has no options; put information for readers into `tblproperties`",
    "merge_schema": "`on_schema_change` decides about new columns",
    "databricks_tags": "only `tblproperties` and comments are kept with a table",
    "databricks_compute": _ENGINE,
    "submission_method": _ENGINE,
    "job_cluster_config": _ENGINE,
    "cluster_id": _ENGINE,
    **dict.fromkeys(
        (
            "access_control_list",
            "create_notebook",
            "environment_key",
            "http_path",
            "notebook_access_control_list",
            "notebook_scoped_libraries",
            "python_job_config",
            "timeout",
            "user_folder_for_python",
        ),
        _ENGINE,
    ),
    **dict.fromkeys(("additional_libs", "environment_dependencies", "index_url"), _INSTALLED),
    "row_filter": _ACCESS,
    "column_masks": _ACCESS,
    # Snowflake
    "transient": _FOREIGN,
    "automatic_clustering": _FOREIGN,
    "copy_grants": _FOREIGN,
    "secure": _ACCESS,
    "snowflake_warehouse": _ENGINE,
    "use_anonymous_sproc": _ENGINE,
    "python_version": _INSTALLED,
    "target_lag": _FOREIGN,
    "tmp_relation_type": _FOREIGN,
    "table_tag": _FOREIGN,
    "row_access_policy": _ACCESS,
    # BigQuery
    "labels": _FOREIGN,
    "resource_tags": _FOREIGN,
    "kms_key_name": _FOREIGN,
    "hours_to_expiration": "a table is kept until it is dropped",
    "partition_expiration_days": "rows are kept until they are deleted",
    "require_partition_filter": _FOREIGN,
    "copy_partitions": _FOREIGN,
    "partitions": "it chooses the partitions that BigQuery's `insert_overwrite` replaces",
    "enable_refresh": _FOREIGN,
    # Redshift and Postgres
    "sort": f"{_FOREIGN}; {_SIZES}",
    "sort_type": f"{_FOREIGN}; {_SIZES}",
    "dist": _FOREIGN,
    "bind": _FOREIGN,
    "backup": _FOREIGN,
    "auto_refresh": _FOREIGN,
    "indexes": f"{_FOREIGN}; {_SIZES}",
    "unlogged": _FOREIGN,
    # Athena, Glue, Trino
    "s3_data_dir": "the warehouse chooses the folder of a table",
    "s3_data_naming": "the warehouse chooses the folder of a table",
    "external_root": "the warehouse chooses the folder of a table",
    "bucketed_by": f"Delta tables have no buckets; {_SIZES}",
    "bucket_count": f"Delta tables have no buckets; {_SIZES}",
    "lf_tags_config": _ACCESS,
    "lf_grants": _ACCESS,
    "table_properties": "put information for readers into `tblproperties`",
    "properties": "put information for readers into `tblproperties`",
    # DuckDB
    "merge_returning_columns": "a run shows no rows; the counts of a merge are in its `adapter_response`",
}
"""Why each config has no effect, and the alternative."""

_FORMAT_CONFIGS = ("file_format", "table_format", "table_type")
_FORMATS = frozenset(("parquet", "orc", "csv", "json", "text", "avro", "hive", "hudi", "iceberg", "hiveserde"))
_DELTA = frozenset(("delta", "default"))
_NAMED_MODELS = 5

_OF_DBT_BY_NAME = frozenset(
    (
        "config_keys_defaults",
        "config_keys_used",
        "hard_deletes",
        "invalidate_hard_deletes",
        "meta_keys_defaults",
        "meta_keys_used",
        "predicates",
        "sql_header",
    )
)
"""The configs without a field in dbt that dbt reads, or writes for a python model."""
_LIKE_ENOUGH = 0.85
_CONFIGURED = ("models", "seeds", "snapshots")
_PROPERTIES = frozenset("access docs enabled freshness group meta quote_columns tags".split())
"""The names of configs that are also properties next to `config`, or were in earlier versions of dbt."""


class ConfigNames:
    """The names that a config of a node may have.

    Args:
        own: the adapter's class of configs.
    """

    def __init__(self, own: type) -> None:
        given = {name for each in (own, *CONFIGS) for name in _spelled(each)}
        self._with_effect = sorted((given | _OF_DBT_BY_NAME) - {"_extra"} - UNUSED.keys())
        self._known = {*self._with_effect, *UNUSED}

    def misspelt(self, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yields each unknown name that resembles a config with an effect, and that config.

        Other unknown names may belong to macros of a project or a package.
        """
        for name, value in config.items():
            if value in (None, "") or name in self._known:
                continue
            nearest = _closest(name, self._with_effect)
            if nearest is not None:
                yield name, nearest

    def misplaced(self, files: Iterable[Any], project: str) -> Iterator[str]:
        """Yields a warning for each config in a properties file that has no effect because it is not below `config`.

        Args:
            files: the files that dbt has read.
            project: the name of the project; files of packages are left out.
        """
        for file in files:
            for section in _CONFIGURED if getattr(file, "project_name", None) == project else ():
                for entry in (getattr(file, "dict_from_yaml", None) or {}).get(section) or ():
                    found = [f"`{key}`" for key in entry if key in self._with_effect and key not in _PROPERTIES]
                    if found:
                        yield (
                            f"{file.path.original_file_path}: {entry.get('name')} has {', '.join(found)} outside of "
                            "`config`, where dbt ignores them: indent them below `config:`"
                        )


def warnings(model: Mapping[str, Any], others: Collection[Mapping[str, Any]]) -> list[str]:
    """Returns a sentence for each config of the model that has no effect; once in a run for each config.

    Args:
        model: the node that is about to run.
        others: all nodes of the run; the sentence names the nodes that also have the config.

    Raises:
        DbtRuntimeError: if a config has an invalid value, or a value that rows could depend on.
    """
    check(model["config"])
    found = dict(_unused(model["config"]))
    fresh = [name for name in found if first_time(f"the config {name} has no effect")]
    return [_sentence(name, found[name], _names(name, model, others)) for name in fresh]


def check(config: Mapping[str, Any]) -> None:
    """Checks that no config prevents the table.

    Raises:
        DbtRuntimeError: if a config has a value that the rows depend on, and that is not supported here.
    """
    if not isinstance(config.get("tblproperties") or {}, Mapping):
        raise DbtRuntimeError("`tblproperties` must map names to values")
    if config.get("incremental_strategy") != "insert_overwrite":
        return
    partitioning(config.get("partition_by")).replaced_by()
    if config.get("partitions"):
        raise DbtRuntimeError(
            "`partitions` is BigQuery's list of the partitions that `insert_overwrite` replaces. Use "
            "`incremental_strategy: replace_where`, and give the rows to replace by `incremental_predicates`"
        )


def _unused(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the configs that have a value and no effect, each with the reason."""
    for name in _FORMAT_CONFIGS:
        value = str(config.get(name) or "delta").lower()
        if value not in _DELTA and (value in _FORMATS or name != "table_type"):
            yield name, "tables here are Delta tables"
    left_out = partitioning(config.get("partition_by")).left_out
    if left_out:
        yield "partition_by", f"`{', '.join(left_out)}` is not a column, and {_FOLDERS}"
    clustered = clustering(config)
    if clustered.left_out:
        yield clustered.name, clustered.left_out
    if config.get("on_failure") == "quarantine" and config.get("materialized") == "view":
        yield "on_failure", "a view stores no rows to quarantine, and its tests run after it, as without audits"
    for name, reason in UNUSED.items():
        if config.get(name):
            yield name, reason


def _names(name: str, model: Mapping[str, Any], others: Collection[Mapping[str, Any]]) -> list[str]:
    same = [each["name"] for each in others if name in dict(_unused(each.get("config") or {}))]
    return [model["name"], *sorted(set(same) - {model["name"]})]


def _sentence(name: str, reason: str, models: list[str]) -> str:
    shown = ", ".join(models[:_NAMED_MODELS])
    rest = len(models) - _NAMED_MODELS
    return f"The config `{name}` has no effect: {reason} ({shown}{f' and {rest} more' if rest > 0 else ''})"


def _closest(name: str, names: Iterable[str]) -> str | None:
    """Returns the name that is most similar to a given name, ignoring case; None if no name is similar."""
    found = difflib.get_close_matches(name.lower(), list(names), 1, _LIKE_ENOUGH)
    return found[0] if found else None


def _spelled(configs: type) -> Iterator[str]:
    for each in fields(configs):
        yield from {each.name, each.metadata.get("alias") or each.name}
