"""Names the constraints of a table's definition, and separates CHECK constraints from keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.catalog.names.relation_names import check_new_names
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind
from dbt.adapters.silt.engine.sql.ast import Constraint, ConstraintKind, Name
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.steps.context import Context


@dataclass(frozen=True)
class Constraints:
    """The conditions of CHECK constraints, as SQL, and the keys, both by name."""

    checks: dict[str, str]
    keys: dict[str, Key]


def kept(context: Context, constraints: Iterable[Constraint]) -> list[Constraint]:
    """Returns the constraints with their conditions as the table stores them."""
    return [
        each if each.condition is None else replace(each, condition=context.kept(each.condition))
        for each in constraints
    ]


def named(
    constraints: Iterable[Constraint], namespace: Namespace, table: str, taken: Iterable[str] = ()
) -> Constraints:
    """Returns the constraints by name. Unnamed constraints are named by kind and number: `check_1`, `primary_key_1`.

    Args:
        namespace: namespace that resolves the table that a key refers to.
        taken: names of the table's existing constraints.

    Raises:
        InvalidStatementError: if two constraints have the same name.
        InvalidNameError: if a name contains an invisible character.
        UnsupportedStatementError: if a foreign key is to be enforced.
    """
    constraints = list(constraints)
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
        else:
            found.keys[name] = _key(each, namespace, table)
    return found


def _free_name(kind: ConstraintKind, taken: set[str]) -> str:
    stem = kind.value.replace(" ", "_")
    return next(name for number in range(1, len(taken) + 2) if (name := f"{stem}_{number}") not in taken)


def _key(constraint: Constraint, namespace: Namespace, table: str) -> Key:
    kind = KeyKind(constraint.kind.value)
    if constraint.enforced and kind is KeyKind.FOREIGN_KEY:
        raise UnsupportedStatementError(
            "a FOREIGN KEY is recorded, and cannot be enforced",
            table=table,
            remedy="Leave ENFORCED out, and test it with dbt's `relationships` test",
        )
    references = _full_name(constraint.references, namespace)
    return Key(kind, constraint.columns, references, constraint.referenced_columns, constraint.enforced)


def _full_name(name: Name, namespace: Namespace) -> Name:
    """Returns the full name, which means the same table in every session."""
    full = namespace.name_in_warehouse(name) if name else None
    return name if full is None else (full.database, full.schema, full.identifier)
