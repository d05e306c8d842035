"""A relation: three parts, always written with all of them in backquotes, compared without regard to case."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation, Policy
from dbt.adapters.contracts.relation import ComponentName, RelationType
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.silt.engine.catalog.names import RelationName


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
class SiltRelation(SparkRelation):
    """A table or view of the warehouse, or (without database and schema) a temporary view of the session."""

    quote_policy: Policy = field(default_factory=SiltQuotePolicy)
    include_policy: Policy = field(default_factory=SiltIncludePolicy)
    quote_character: str = "`"
    is_delta: bool | None = True
    require_alias: bool = False
    renameable_relations = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations = frozenset({RelationType.Table, RelationType.View})

    def __post_init__(self) -> None:
        """Without dbt-spark's check, which forbids a database."""

    def render(self) -> str:
        # dbt-spark's own refuses three parts.
        return BaseRelation.render(self)

    def quoted(self, identifier: str) -> str:
        return quote(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        own = self.path.get_lowered_part(field)
        return own is not None and own == value.lower()

    @property
    def is_temporary(self) -> bool:
        """Whether this names a temporary view of the session: it has no schema."""
        return self.schema is None

    def relation_name(self, database: str) -> RelationName:
        """The name as the catalog takes it; `database` stands in for one that is not given.

        Raises:
            InvalidNameError: a part cannot be a name.
        """
        return RelationName(self.database or database, self.schema or "", self.identifier or "")


def quote(identifier: str) -> str:
    """The identifier in backquotes, those within it doubled, as Spark SQL reads it."""
    return "`" + identifier.replace("`", "``") + "`"


def unquote(identifier: str) -> str:
    """The identifier itself, where it is given as `quote` writes it."""
    if len(identifier) > 1 and identifier[0] == identifier[-1] == "`":
        return identifier[1:-1].replace("``", "`")
    return identifier
