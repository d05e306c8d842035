"""The profile of type `silt`: its fields, their defaults, and the checks of their values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.silt.dbt_seams.parse_errors import explain_missing_results, explain_parse_errors
from dbt.adapters.silt.dbt_seams.project_values import keep_enforced
from dbt.adapters.silt.engine.catalog.names.relation_names import check_identifier
from dbt.adapters.silt.engine.commands.spark import shown_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import storage_settings
from dbt.adapters.silt.engine.kernel.storage.urls import Service, is_url, parse_url
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records import locations
from dbt.adapters.silt.runs.logical_run.publish_mode import PublishMode
from dbt.adapters.silt.runs.logical_run.resume import OFF, is_off, parse_duration, parse_resume
from dbt.adapters.silt.runs.logical_run.run_id import run_id_text

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams import target_type as shown_type
    from dbt.adapters.silt.engine.sql.query import quotes as sql_quotes
else:
    shown_type = lazy_module("dbt.adapters.silt.dbt_seams.target_type")
    sql_quotes = lazy_module("dbt.adapters.silt.engine.sql.query.quotes")


@dataclass
class SiltCredentials(Credentials):
    """The fields of a profile; all except `type: silt` are optional.

    Attributes:
        database: the name of the warehouse as a database.
        schema: the schema in which models are built.
        warehouse: the location of the tables: a folder, relative to the project, a `file://` URI, or the URL of an
            object store: `s3://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`,
            `gs://bucket/prefix`. The first command creates the folder and says so; its parent folder must exist.
        storage: the settings of object stores; by default the settings in the environment. Its fields are below.
        master: the Spark master of an embedded session or a cluster; not with `remote`.
        remote: the address of a Spark Connect server (`sc://host:port`).
        databases: more warehouses: name of the database -> its location, as in `warehouse`, or a mapping of `location`
            and `storage`, which then replaces the `storage` of the profile.
        storage_jars: the folder of the jars with which Spark reaches object stores; by default missing jars are
            downloaded in the same way as `spark.jars.packages`.
        accelerator: `comet` lets Apache DataFusion Comet run scans, joins, aggregates and shuffles natively, below
            Spark; by default Spark runs alone.
        accelerator_jars: the folder of the jar of the accelerator; by default a missing jar is downloaded in the same
            way as `spark.jars.packages`.
        accelerator_required: whether Spark does not start without the accelerator. With `false`, a Spark or a machine
            without it runs alone, with a warning.
        spark_conf: settings of the Spark session; `dbt debug` shows only the values of harmless settings.
        run_id: the id of the logical run, set by an orchestrator; a rerun with the same id applies nothing twice.
        isolation_level: Serializable, WriteSerializable or SnapshotIsolation, for every commit; by default the level of
            the table.
        max_commit_attempts: the maximum number of attempts to commit when other writers commit first.
        statement_attempts: the maximum number of runs of a statement that loses conflicts, each on a fresh snapshot; 1
            means that it is not run again.
        python_functions: whether functions in Python, whose code is stored in the warehouse, may be created and called.
        stored_code: whether views and SQL functions of the warehouse may run scripts, call Java methods and read
            through any provider.
        target_type: the value of `target.type` for projects and packages, such as `spark`; by default `silt`. With
            `databricks`, their macros for Databricks take precedence over their macros for Spark.
        resume: for how long ("2 hours") the same command continues its last run if that run did not finish; by default
            12 hours for a killed run on a terminal, and otherwise never; `off` means never.
        external_paths: whether tables may name files outside of their own folders and the warehouse, and views may name
            files that the project does not declare.
        keep_alive: for how long ("15 minutes") Spark, private to this user, keeps running after a command to serve the
            next command; only with a local `master`. By default Spark ends with the command.
        reuse: With `unchanged`, a node is reused instead of built if its table already holds what the build would
            write, and a data test is not run again on the rows on which it has passed; the node's own config `reuse`
            takes precedence. By default every node is built, and every test is run.
        audit: With `before_commit`, the data tests of each node judge its rows before their commit; the node's own
            config `audit` takes precedence.
        publish: when the changes of `dbt build`, `run`, `seed`, `snapshot` and `clone` become visible: With
            `at_once`, each change is visible when its statement ends; with `after_tests`, all changes become visible
            together at the end of the run's last command, if no node and no test has failed; with `after_run`, if no
            node has failed; with `on_request`, only by `silt publish`.
        branch: the named branch (`silt branch NAME`) on which every command reads and writes; by default none. With
            `publish`, the changes of a run become visible on it together.
        publish_attempts: how often a command that publishes at its end tries to do so at most. After a conflict, only
            the nodes whose tables conflict, the nodes that have read older rows of their inputs, and the nodes below
            them run again.
        held_inputs: which rows of its inputs a held run reads when it is continued: With `newest`, it reads the newest
            rows, and builds again what it has built from older rows; with `first`, it reads the rows as they were when
            the run first read them.
        enforced_keys: whether the primary keys, unique keys and foreign keys of contracts are enforced by every commit,
            unless a constraint or the config `enforced_keys` of its model says otherwise; by default they are recorded.
        catalog: the catalog in which tables are registered after their commits, so that other engines find them by
            name: `hive` is the Hive metastore of `spark_conf`. Not with `remote` or `keep_alive`.
        duckdb_file: a file of DuckDB, relative to the project, for BI tools: each command that writes replaces it at
            its end by a file with a view for each visible table, as `silt catalog duckdb` does. It needs DuckDB, and a
            warehouse in a folder.
        upkeep: With `budget: 5 minutes`, each command that builds compacts the tables of the warehouse at its end, the
            best first, and deletes files whose retention is over, for at most that time. Not if anything has failed or
            is held, and not on a branch. By default only `silt upkeep` does.
    """

    database: str = locations.DATABASE
    schema: str = locations.SCHEMA
    warehouse: str = locations.WAREHOUSE
    master: str | None = None
    remote: str | None = None
    databases: dict[str, Any] = field(default_factory=dict)
    storage: dict[str, Any] = field(default_factory=dict)
    storage_jars: str | None = None
    accelerator: str | None = None
    accelerator_jars: str | None = None
    accelerator_required: bool = True
    spark_conf: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    isolation_level: str | None = None
    max_commit_attempts: int = 20
    statement_attempts: int = 5
    resume: str | None = None
    python_functions: bool = False
    stored_code: bool = False
    target_type: str | None = None
    external_paths: bool = False
    keep_alive: str | None = None
    reuse: str | None = None
    audit: str | None = None
    publish: str = "at_once"
    branch: str = ""
    publish_attempts: int = 3
    held_inputs: str = "newest"
    enforced_keys: bool = False
    catalog: str | None = None
    duckdb_file: str | None = None
    upkeep: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_names(self)
        check_storage(self)
        check_spark_conf(self.spark_conf)
        check_accelerator(self)
        if self.master and self.remote:
            raise ValidationError("a profile has either `master` or `remote`, not both")
        if not self.remote:
            self.master = self.master or "local[*]"
        if self.isolation_level is not None:
            self.isolation_level = isolation_level(self.isolation_level)
        for name in ("max_commit_attempts", "statement_attempts", "publish_attempts"):
            if getattr(self, name) < 1:
                raise ValidationError(f"`{name}` must be at least 1, not {getattr(self, name)}")
        shown_type.show_target_type()
        if is_off(self.resume):
            self.resume = OFF
        parse_resume(self.resume)
        if self.reuse not in (None, "unchanged", "never"):
            raise ValidationError(f"`reuse` must be `unchanged` or `never`, not {self.reuse!r}")
        if self.audit not in (None, "before_commit", "never"):
            raise ValidationError(f"`audit` must be `before_commit` or `never`, not {self.audit!r}")
        check_keep_alive(self)
        check_catalog(self)
        check_duckdb_file(self)
        check_upkeep(self.upkeep)
        modes = [each.value for each in PublishMode]
        if self.publish not in modes:
            raise ValidationError(f"`publish` must be one of {', '.join(modes)}, not {self.publish!r}")
        if self.held_inputs not in ("newest", "first"):
            raise ValidationError(f"`held_inputs` must be `newest` or `first`, not {self.held_inputs!r}")
        # Not when the adapter starts: `dbt retry` reads the results of the last command, and dbt parses the project,
        # before it creates an adapter. At that moment only the profile's class has run.
        keep_enforced()
        explain_missing_results()
        explain_parse_errors()

    @property
    def quotes(self) -> sql_quotes.Quotes:
        """The session's reading of quoted strings, according to the profile."""
        given = {name: str(value).lower() for name, value in self.spark_conf.items()}
        is_strict = given.get("spark.sql.ansi.enabled") != "false"
        return sql_quotes.Quotes(
            double_quoted_identifiers=is_strict and given.get("spark.sql.ansi.doubleQuotedIdentifiers") == "true",
            escaped_string_literals=given.get("spark.sql.parser.escapedStringLiterals") == "true",
            consecutive_string_literals=given.get("spark.sql.legacy.consecutiveStringLiterals.enabled") == "true",
        )

    @property
    def keep_alive_time(self) -> timedelta | None:
        """The seconds for which Spark keeps running after the last command; None if it ends with its command."""
        return None if not self.keep_alive or is_off(self.keep_alive) else parse_duration(self.keep_alive, "keep_alive")

    @property
    def type(self) -> str:
        return "silt"

    @property
    def unique_field(self) -> str:
        return self.warehouse

    def _connection_keys(self) -> tuple[str, ...]:
        # Without run_id: dbt hashes these keys, and parses the whole project again when any of them changes.
        return (
            "database",
            "schema",
            "warehouse",
            "databases",
            "storage",
            "storage_jars",
            "accelerator",
            "accelerator_jars",
            *(("accelerator_required",) if self.accelerator else ()),
            "master",
            "remote",
            "spark_conf",
            "isolation_level",
            "max_commit_attempts",
            "statement_attempts",
            "resume",
            "python_functions",
            "stored_code",
            "target_type",
            "external_paths",
            "keep_alive",
            "reuse",
            "publish",
            *(("branch",) if self.branch else ()),
            "publish_attempts",
            "held_inputs",
            *(("enforced_keys",) if self.enforced_keys else ()),
            "catalog",
            "duckdb_file",
            *(("upkeep",) if self.upkeep else ()),
        )

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Yields the fields that are set, without secrets, as `dbt debug` prints them."""
        for name, value in super().connection_info(with_aliases=with_aliases):
            if value not in (None, {}):
                yield name, _without_secrets(name, value)

    @classmethod
    def validate(cls, data: Any) -> None:
        """Refuses an unknown field instead of ignoring it.

        Raises:
            ValidationError: a field is unknown, or a value is of another type.
        """
        if isinstance(data, Mapping):
            check_fields(data)
            data = _run_fields_as_text(data)
        try:
            super().validate(data)
        except ValidationError as error:
            raise _of_type(error) from error

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        return _run_fields_as_text(super().__pre_deserialize__(data))  # type: ignore[no-untyped-call]


def _of_type(error: ValidationError) -> ValidationError:
    """Returns the error for a value of a wrong type, with the field and without the value, which may be a secret."""
    expected = error.validator_value
    types = expected if isinstance(expected, list) else [{"type": expected}]
    known = [_TYPES[each["type"]] for each in types if each.get("type") in _TYPES]
    if not (error.path and known):
        return error
    given = _GIVEN.get(type(error.instance), "a value of another type")
    return ValidationError(f"`{error.path[0]}` must be {' or '.join(known)}, not {given}")


_TYPES = {"string": "text", "object": "a mapping", "integer": "a whole number", "boolean": "true or false"}
_GIVEN = {
    bool: "true or false",
    dict: "a mapping",
    float: "a number",
    int: "a number",
    list: "a list",
    str: "text",
    NoneType: "empty",
}


def _run_fields_as_text(data: Mapping[str, Any]) -> dict[str, Any]:
    """Converts values that YAML reads otherwise to strings: a `run_id` like a number or a date, and the duration `off`.

    Raises:
        ValidationError: if the run id is invalid.
    """
    fields_ = dict(data)
    try:
        if "run_id" in fields_:
            fields_["run_id"] = run_id_text(fields_["run_id"], "`run_id`") or None
    except InvalidSettingError as error:
        raise ValidationError(str(error)) from error
    for name in {"resume", "keep_alive", "accelerator"} & set(fields_):
        given = fields_[name]
        fields_[name] = OFF if given is False else str(given or "").strip() or None
    return fields_


def _without_secrets(name: str, value: Any) -> Any:
    """Returns a field's value with asterisks in place of possible secrets."""
    if name == "spark_conf":
        return shown_settings.settings(value)
    if name == "storage":
        return storage_settings(value).shown()
    if isinstance(value, dict):
        return {key: _database_without_secrets(each) for key, each in value.items()}
    if name == "remote":
        return shown_settings.remote(str(value))
    return shown_settings.address(value) if isinstance(value, str) else value


def _database_without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {"location": shown_settings.address(str(value["location"])), **_storage_of(value)}
    return shown_settings.address(str(value))


def _storage_of(database: Mapping[str, Any]) -> dict[str, Any]:
    return {"storage": storage_settings(database["storage"] or {}).shown()} if "storage" in database else {}


def check_fields(data: Mapping[str, Any]) -> None:
    """Raises ValidationError with the first unknown field of a profile and the most similar known field."""
    known = {each.name for each in fields(SiltCredentials)} - {"_ALIASES"}
    for name in data:
        if name in known or name in ("type", "threads"):
            continue
        hint = _FIELDS_ELSEWHERE.get(name.lower()) or _similar_fields(name, known)
        raise ValidationError(f"`{name}` is not a field of a silt profile{hint}")


def _similar_fields(name: str, known: Collection[str]) -> str:
    if "memory" in name.lower():
        return "; set Spark's memory with `spark_conf: {spark.driver.memory: 4g}`"
    nearest = difflib.get_close_matches(name, sorted({*known, "threads"}), n=1, cutoff=_SIMILAR)
    return f"; did you mean `{nearest[0]}`?" if nearest else f"; the fields are {', '.join(sorted(known))}"


_SIMILAR: Final = 0.6
_NO_LOGIN: Final = (
    ": a warehouse is a folder or a bucket without a login. `warehouse` names it; the credentials of a bucket are in "
    "`storage`"
)
_NO_CLUSTER: Final = ": Spark runs in dbt's process; for a cluster or a server, set `master` or `remote`"
_NO_CONNECTION: Final = ": dbt connects to no server here, so leave it out"
_FIELDS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("account", "user", "username", "password", "pass", "role", "token", "private_key_path"), _NO_LOGIN
    ),
    **dict.fromkeys(("keyfile", "host", "server", "port", "http_path"), _NO_LOGIN),
    **dict.fromkeys(("project", "dbname"), "; the field is `database`"),
    "dataset": "; the field is `schema`",
    **dict.fromkeys(("path", "location", "location_root"), "; the field is `warehouse`"),
    **dict.fromkeys(("method", "driver", "cluster", "organization", "compute"), _NO_CLUSTER),
    **dict.fromkeys(("session_properties", "server_side_parameters", "settings"), "; the field is `spark_conf`"),
    **dict.fromkeys(("attach", "catalogs"), "; the field is `databases`"),
    **dict.fromkeys(("retries", "connect_retries", "job_retries", "retry_all", "connect_timeout"), _NO_CONNECTION),
    **dict.fromkeys(("query_timeout", "client_session_keep_alive", "keepalives_idle", "sslmode"), _NO_CONNECTION),
}
"""Hints for the fields of other adapters' profiles."""


def check_names(credentials: SiltCredentials) -> None:
    """Raises ValidationError if the name of a database or schema could lead outside of the warehouse."""
    try:
        check_identifier(credentials.schema, "schema")
        databases = [check_identifier(name, "database") for name in credentials.databases]
        own = check_identifier(credentials.database, "database")
    except InvalidNameError as error:
        raise ValidationError(str(error)) from error
    for name in databases:
        if databases.count(name) > 1:
            raise ValidationError(f"`databases` names `{name}` twice: names are case-insensitive")
    if own in databases:
        raise ValidationError(f"`databases` names `{own}` again, which is the profile's own `database`")


def check_storage(credentials: SiltCredentials) -> None:
    """Raises ValidationError, without values, if a database has no location or the settings of a storage are wrong."""
    given = credentials
    try:
        places = locations.locations(given.database, given.warehouse, given.databases, Path())
        locations.storages_of(places, given.storage, given.databases)
    except InvalidSettingError as error:
        raise ValidationError(error.sentences) from error
    services = {parse_url(place).service for place in places.values() if is_url(place)}
    for name in given.spark_conf:
        if any(service in services and pattern.search(name) for service, pattern in _OF_STORAGE.items()):
            raise ValidationError(
                f"`spark_conf` sets {name}, which applies to Spark only: set it in `storage`, which both clients use"
            )


_OF_STORAGE = {
    Service.S3: re.compile(
        r"\bfs\.s3a\.(bucket\.[^.]+\.)?(access\.key|secret\.key|session\.token|endpoint|aws\.credentials\.provider)"
    ),
    Service.AZURE: re.compile(r"\bfs\.azure\.(account\.(key|auth|oauth)|sas\.|abfs\.endpoint)"),
    Service.GOOGLE: re.compile(r"\bfs\.gs\.auth\."),
}


def check_spark_conf(settings: Mapping[str, Any]) -> None:
    """Raises ValidationError, without values, if a setting of Spark is a mapping or a list, which has no effect."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            inner = next(iter(value), "name")
            raise ValidationError(
                f"`spark_conf` has a mapping below `{name}`: write whole names, `{name}.{inner}: value`"
            )
        if isinstance(value, list):
            raise ValidationError(f"`{name}` in `spark_conf` must be a text or a number, not a list: join it by commas")


def check_accelerator(credentials: SiltCredentials) -> None:
    """Raises ValidationError if `accelerator` names none; `off` becomes None."""
    given = credentials
    if is_off(given.accelerator):
        given.accelerator = None
    if given.accelerator not in (None, *ACCELERATORS):
        raise ValidationError(f"`accelerator` must be {' or '.join(ACCELERATORS)}, or off, not `{given.accelerator}`")
    if given.accelerator is None and given.accelerator_jars is not None:
        raise ValidationError("`accelerator_jars` has no effect without `accelerator: comet`")


ACCELERATORS = ("comet",)
"""The accelerators that a profile can ask for."""


def check_keep_alive(credentials: SiltCredentials) -> None:
    """Raises ValidationError if `keep_alive` is set with a profile or settings that a kept Spark does not support."""
    if credentials.keep_alive_time is None:
        return
    if credentials.remote:
        raise ValidationError("`keep_alive` is for a Spark that dbt starts, and must not be set together with `remote`")
    if not _LOCAL_MASTER.fullmatch(credentials.master or ""):
        raise ValidationError(f"`keep_alive` is for a Spark on this machine, `local[*]`, not on `{credentials.master}`")
    if credentials.keep_alive_time < timedelta(seconds=1):
        raise ValidationError("`keep_alive` must be at least 1 second, or `off`")
    given = next((name for name in credentials.spark_conf if name.startswith(_OF_KEPT_SPARK)), None)
    if given is not None:
        raise ValidationError(f"`spark_conf` must not set {given} together with `keep_alive`, which sets it itself")


def check_upkeep(given: Mapping[str, Any]) -> None:
    """Raises ValidationError if the profile's `upkeep` is anything but a budget."""
    if not given:
        return
    if given.keys() != {"budget"}:
        raise ValidationError("`upkeep` must be `{budget: 5 minutes}`, or another length of time")
    if not parse_duration(given["budget"], "budget"):
        raise ValidationError("the `budget` of `upkeep` must be above 0, such as `5 minutes`")


def check_duckdb_file(credentials: SiltCredentials) -> None:
    """Raises ValidationError if the tables cannot be shown in the profile's `duckdb_file`."""
    given = credentials.duckdb_file
    if given is None:
        return
    if not given.strip() or is_url(given):
        raise ValidationError(f"`duckdb_file` must be the path of a file on this machine, not {given!r}")
    if is_url(credentials.warehouse):
        raise ValidationError(
            "`duckdb_file` is for a warehouse in a folder: DuckDB reads a table in an object store with its own "
            "extension, `delta_scan('s3://...')`"
        )


def check_catalog(credentials: SiltCredentials) -> None:
    """Raises ValidationError if tables cannot be registered in the profile's `catalog`."""
    if credentials.catalog is None:
        return
    if credentials.catalog not in CATALOGS:
        raise ValidationError(
            f"`catalog` must be {' or '.join(CATALOGS)}, not `{credentials.catalog}`: the first part of a table's name "
            "is `database`"
        )
    for other in ("remote", "keep_alive"):
        if getattr(credentials, other):
            raise ValidationError(
                f"`catalog` cannot be combined with `{other}`: it needs a Spark driver in dbt's own process"
            )


CATALOGS = ("hive",)
"""The catalogs in which tables can be registered."""
_LOCAL_MASTER = re.compile(r"local(\[[^\]]*\])?")
_OF_KEPT_SPARK = ("spark.connect.grpc.binding.", "spark.connect.authenticate.", "spark.connect.grpc.port.")


def isolation_level(text: str) -> str:
    """Returns the level as the format spells it, in whatever case it was written.

    Raises:
        ValidationError: the level does not exist.
    """
    for level in IsolationLevel:
        if level.value.lower() == text.lower():
            return level.value
    raise ValidationError(
        f"`isolation_level` must be one of {', '.join(level.value for level in IsolationLevel)}, not `{text}`"
    )
