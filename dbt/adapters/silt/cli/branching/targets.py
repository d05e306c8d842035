"""Compares the relations of two targets of the project's profile by their names without the target's schema."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from dbt.adapters.silt.cli.project import profile
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, open_warehouse
from dbt.adapters.silt.engine.arrow.branch_diff import RelationDiff, Side, diff_sides
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

KeyOf = Callable[[Sequence[RelationName], Snapshot], Sequence[str]]
"""Returns the columns that identify a row of a relation, given its names on both sides and its newer version."""

_Place: TypeAlias = tuple[str, str, str]
"""The location, schema and branch of a target."""

_AUDIT = "dbt_test__audit"
"""The custom schema for the stored failures of tests, which belong to no model."""


@dataclass(frozen=True)
class _TargetSide:
    """A target: its warehouse, and the schemas in which dbt builds for it.

    Attributes:
        schemas: the schemas of the target -> the custom schema; empty for the target's own schema.
    """

    name: str
    warehouse: OpenWarehouse
    schemas: Mapping[str, str]

    def relations(self) -> dict[str, RelationName]:
        """Returns the relations and functions by their names without the target's schema."""
        catalog, database = self.warehouse.catalog, self.warehouse.database
        found: dict[str, RelationName] = {}
        for schema, custom in self.schemas.items():
            names = [each.name for each in catalog.relations(database, schema)] + catalog.functions(database, schema)
            found |= {f"{custom}.{each.identifier}" if custom else each.identifier: each for each in names}
        return found

    def code(self, text: str) -> str:
        """Returns the text of a view without the target's schemas, as dbt writes them."""
        for schema, custom in self.schemas.items():
            text = text.replace(f"`{self.warehouse.database}`.`{schema}`.", f"`{custom}`.")
        return text


def target_names(arguments: Namespace) -> tuple[str, ...]:
    """Returns the targets of the project's profile; empty without a project.

    Raises:
        InvalidSettingError: if the project or its profile cannot be read.
    """
    project = None if arguments.warehouse is not None else profile.find_project(arguments)
    return () if project is None else profile.targets_of(project, arguments)


def diff_targets(arguments: Namespace, known: Sequence[str], key_of: KeyOf) -> list[RelationDiff]:
    """Returns how the relations of two targets differ, sorted by name; relations of one target only differ too.

    Args:
        known: all targets of the profile: the schema of another target is not a custom schema of these two.

    Raises:
        InvalidArgumentError: if a target does not exist, both name the same tables, or neither has the table `--table`.
        InvalidSettingError: if a target cannot be opened.
    """
    names = (arguments.first, arguments.second)
    for each in names:
        if each not in known:
            raise InvalidArgumentError(
                f"`{each}` is not a target of the profile, which has the targets {', '.join(known)}",
                remedy="Name two targets, two branches or two tables",
            )
    opened = {each: _opened(arguments, each) for each in names}
    places = {_place(each) for each in opened.values()}
    if len(places) == 1:
        raise InvalidArgumentError(
            f"the targets {names[0]} and {names[1]} have the same warehouse and schema, so they are the same tables",
            remedy="Name two targets with different schemas or warehouses",
        )
    places |= _other_places(arguments, set(known) - set(names))
    sides = [_side(each, opened[each], places) for each in names]
    before, after = (each.relations() for each in sides)
    wanted = sorted({*before, *after})
    if arguments.table is not None:
        wanted = [each for each in wanted if each == arguments.table.lower()]
        if not wanted:
            raise InvalidArgumentError(
                f"neither {names[0]} nor {names[1]} has `{arguments.table}`",
                remedy="Give its name without the target's schema, as in `orders`, or `staging.orders`",
            )
    pairs = {each: (before.get(each), after.get(each)) for each in wanted}
    both = tuple(Side(each.warehouse.catalog, each.code) for each in sides)
    return diff_sides((both[0], both[1]), pairs, key_of, arguments.rows)


def _side(name: str, opened: OpenWarehouse, places: Collection[_Place]) -> _TargetSide:
    """Returns a target with the schemas that belong to it; the places of other targets tell which belong to them."""
    location, own, _ = _place(opened)
    bases = {schema for there, schema, _ in places if there == location}
    schemas = {}
    for each in opened.catalog.schemas(opened.database):
        owner = max((schema for schema in bases if _is_within(each, schema)), key=len, default=None)
        custom = each[len(own) + 1 :]
        if owner == own and custom != _AUDIT:
            schemas[each] = custom
    return _TargetSide(name, opened, schemas)


def _opened(arguments: Namespace, name: str) -> OpenWarehouse:
    return open_warehouse(Namespace(**{**vars(arguments), "target": name}))


def _other_places(arguments: Namespace, names: Iterable[str]) -> set[_Place]:
    """Returns the places of targets, as far as their fields can be read."""
    found = set()
    for each in names:
        with suppress(InvalidSettingError):  # another target may need a variable, or has never been built
            found.add(_place(_opened(arguments, each)))
    return found


def _is_within(schema: str, base: str) -> bool:
    return schema == base or schema.startswith(f"{base}_")


def _place(warehouse: OpenWarehouse) -> _Place:
    return warehouse.locations[warehouse.database], warehouse.schema.lower(), warehouse.branch
