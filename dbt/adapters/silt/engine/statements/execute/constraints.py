"""Names the constraints of a table's definition, and separates CHECK constraints from keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.catalog.names.relation_names import check_new_names
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, enforced_keys
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import branch_log
from dbt.adapters.silt.engine.sql.ast import Constraint, ConstraintKind, Name
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace, WarehouseTable
from dbt.adapters.silt.engine.statements.steps.context import Context


@dataclass(frozen=True)
class Constraints:
    """The conditions of CHECK constraints, as SQL, and the keys, both by name.

    Attributes:
        dropping: the names of the CHECK constraints that leave out the rows that break them.
    """

    checks: dict[str, str]
    keys: dict[str, Key]
    dropping: list[str] = field(default_factory=list)


def kept(context: Context, constraints: Iterable[Constraint]) -> list[Constraint]:
    """Returns the constraints with their conditions as the table stores them."""
    return [
        each if each.condition is None else replace(each, condition=context.kept(each.condition))
        for each in constraints
    ]


def named(
    constraints: Iterable[Constraint],
    namespace: Namespace,
    table: str,
    taken: Iterable[str] = (),
    there: Iterable[Key] = (),
) -> Constraints:
    """Returns the constraints by name. Unnamed constraints are named by kind and number: `check_1`, `primary_key_1`.

    Args:
        namespace: namespace that resolves the table that a key refers to.
        taken: names of the table's existing constraints.
        there: the table's existing keys.

    Raises:
        InvalidStatementError: if two constraints have the same name.
        InvalidNameError: if a name contains an invisible character.
        UnsupportedStatementError: if an enforced foreign key references anything but a table.
    """
    constraints = list(constraints)
    primary = [each.columns for each in there if each.enforced and each.kind is KeyKind.PRIMARY_KEY]
    primary += [each.columns for each in constraints if each.enforced and each.kind is ConstraintKind.PRIMARY_KEY]
    found = Constraints({}, {})
    names = {name.lower() for name in taken}
    given = {each.name.lower() for each in constraints if each.name is not None}
    for each in constraints:
        name = each.name or _free_name(each.kind, names | given)
        if name.lower() in names:
            raise InvalidStatementError(
                f"the constraint `{name}` already exists", remedy="Give each constraint a different name", table=table
            )
        check_new_names(name)
        names.add(name.lower())
        if each.kind is ConstraintKind.CHECK:
            found.checks[name] = str(each.condition)
            found.dropping.extend([name] if each.drops_rows else [])
        else:
            found.keys[name] = _key(each, namespace, table, next(iter(primary), ()))
    return found


def _free_name(kind: ConstraintKind, taken: set[str]) -> str:
    stem = kind.value.replace(" ", "_")
    return next(name for number in range(1, len(taken) + 2) if (name := f"{stem}_{number}") not in taken)


def _key(constraint: Constraint, namespace: Namespace, table: str, primary: tuple[str, ...]) -> Key:
    """Returns a key of a table, whose own primary key has the columns `primary`, if any."""
    kind = KeyKind(constraint.kind.value)
    references = _full_name(constraint.references, namespace)
    key = Key(kind, constraint.columns, references, constraint.referenced_columns, constraint.enforced)
    if not key.enforced or not key.references:
        return key
    if ".".join(references) == table:
        return replace(key, to=key.to or primary)
    return _with_parent(key, constraint.references, namespace, table)


def _with_parent(key: Key, name: Name, namespace: Namespace, table: str) -> Key:
    """Returns an enforced foreign key with its parent, and with the columns of the parent's primary key by default."""
    parent = namespace.meaning(name)
    main = parent.log if isinstance(parent, WarehouseTable) else None
    main = branch.main if (branch := branch_log.branch_of(main)) is not None else main
    if not isinstance(parent, WarehouseTable) or main is None or main.publications is None:
        raise UnsupportedStatementError(
            f"an enforced foreign key cannot reference {'.'.join(name)}: it is not a table of the warehouse",
            table=table,
            remedy="Leave ENFORCED out, or reference a table",
        )
    metadata = parent.log.snapshot().metadata
    primary = (each for each in enforced_keys(metadata.configuration).values() if each.kind is KeyKind.PRIMARY_KEY)
    to = key.to or next((each.columns for each in primary), ())
    schema = StructType.from_json(metadata.schema_string)
    to = tuple(schema.require(column, parent.log.name).name for column in to)
    return replace(key, to=to, location=main.publications.location_of(main), parent_id=metadata.id)


def _full_name(name: Name, namespace: Namespace) -> Name:
    """Returns the full name, which means the same table in every session."""
    full = namespace.name_in_warehouse(name) if name else None
    return name if full is None else (full.database, full.schema, full.identifier)
