"""A relation with three parts, which are written in backquotes and compared in the catalog's form.

Empty parts are omitted, and so is a database without a schema, which SQL would read as a schema. A source on
files has three parts as well; its text is the query of its files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter, InformationSchema
from dbt.adapters.contracts.relation import ComponentName, HasQuoting, Policy, RelationConfig, RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.silt.dbt_seams.command_state import flags
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, normalize
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.materializations.external.sources import external_of
from dbt.adapters.silt.materializations.incremental.config_columns import without_quotes
from dbt.adapters.silt.runs.cut_relation_marks import MARK
from dbt.adapters.silt.runs.once import first_time

logger = AdapterLogger("Silt")


@dataclass
class SiltQuotePolicy(Policy):
    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass
class SiltIncludePolicy(Policy):
    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class SiltInformationSchema(InformationSchema):
    """The information schema of a database, or a relation in it."""

    quote_character: str = "`"


@dataclass(frozen=True, eq=False, repr=False)
class SiltRelation(SparkRelation):
    """A table or view of the warehouse, a temporary view of the session (without database and schema), or files.

    Attributes:
        external: the SQL that reads the files of a source on files.
        external_location: the place of these files.
        external_format: `delta`, or the files' format.
        replaces: whether a new table may replace another table of this name; if unset, the cache of relations
            decides.
    """

    quote_policy: Policy = field(default_factory=SiltQuotePolicy)
    include_policy: Policy = field(default_factory=SiltIncludePolicy)
    quote_character: str = "`"
    is_delta: bool | None = True
    require_alias: bool = False
    external: str | None = None
    external_location: str | None = None
    external_format: str | None = None
    replaces: bool | None = None
    renameable_relations = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations = frozenset({RelationType.Table, RelationType.View})

    def __post_init__(self) -> None:
        """Without dbt-spark's check, which forbids a database."""

    @classmethod
    def create_from(cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any) -> SiltRelation:
        if str(relation_config.resource_type) == "source":
            # dbt passes no config for a source: the flags name the project's folder.
            root = getattr(flags(), "PROJECT_DIR", None)
            files = external_of(relation_config, str(root or "."))
            if files is not None:
                if files.types_are_guessed:
                    _warn_of_guessed_types(relation_config)
                kwargs |= {
                    "external": files.text,
                    "external_location": files.location,
                    "external_format": files.format,
                    "type": RelationType.External,
                }
        return super().create_from(quoting, relation_config, **kwargs)

    def render(self) -> str:
        # dbt-spark refuses three parts. dbt compares this text to find two nodes that would write the same table.
        written = self._written_parts()
        if self.external and ComponentName.Identifier in written:
            return self.external
        return normalize(".".join(written.values()))

    def _written_parts(self) -> dict[ComponentName, str]:
        """Returns the parts of the text, in order and in quotes."""
        parts = self._render_iterator()
        written = {key: part for key, part in parts if key and part and self.path.get_part(key)}
        if ComponentName.Identifier in written and ComponentName.Schema not in written:
            written.pop(ComponentName.Database, None)
        return written

    def incorporate(self, **kwargs: Any) -> SiltRelation:
        """Returns a copy of this relation with changes; with another name, it no longer stands for files."""
        like = self.replace(external=None, external_location=None, external_format=None) if "path" in kwargs else self
        changed: SiltRelation = BaseRelation.incorporate(like, **kwargs)
        return changed

    def _render_subquery_alias(self, namespace: str) -> str:
        """Marks the subquery that replaces the relation: the SQL after it decides whether it needs an alias."""
        return "" if namespace == "limit" and self.limit == 0 else MARK

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        # dbt quotes the names of columns in double quotes, which delimit a string in Spark.
        name = quote(without_quotes(event_time_filter.field_name))
        is_quoted = event_time_filter.field_name.startswith('"')
        found = replace(event_time_filter, field_name=name) if is_quoted else event_time_filter
        return super()._render_event_time_filtered(found)

    def information_schema(self, view_name: Any = None) -> SiltInformationSchema:
        """Returns the information schema of the relation's database; a macro may leave `view_name` undefined."""
        schema = SiltInformationSchema.from_relation(self, view_name if isinstance(view_name, str) else None)
        whole: SiltInformationSchema = schema.incorporate(path={"schema": None})
        return whole

    def quoted(self, identifier: str) -> str:
        return quote(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        own = self.path.get_part(field)
        return own is not None and normalize(own) == normalize(value)

    @property
    def is_temporary(self) -> bool:
        """Whether the text is the identifier alone, which can name a temporary view of the session."""
        return list(self._written_parts()) == [ComponentName.Identifier]

    def relation_name(self, database: str) -> RelationName:
        """Returns the name for the catalog; `database` is the default.

        Raises:
            InvalidNameError: if a part is not a valid name.
        """
        return RelationName(self.database or database, self.schema or "", self.identifier or "")


def _warn_of_guessed_types(source: RelationConfig) -> None:
    name = f"{getattr(source, 'source_name', source.schema)}.{source.name}"
    if first_time(f"guessed types of {name}"):
        logger.warning(
            f"source {name}: none of its columns has a `data_type`, so each read guesses the types from the files' "
            "current content: `01234` becomes the number 1234, and a column may have another type after the next file. "
            "Declare `columns` with `data_type`, or set the option `inferSchema: false`, which reads them as strings"
        )
