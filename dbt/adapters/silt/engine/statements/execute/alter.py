"""Runs ALTER TABLE, ALTER VIEW on properties, COMMENT ON, DROP TABLE, and RENAME of a table or view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.tables import alter, alter_columns, clustering
from dbt.adapters.silt.engine.commands.target import Outcome, Target
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.table.keys import constraint_names, table_keys
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, ObjectKind, OnObject, OnTable
from dbt.adapters.silt.engine.statements.execute import create_table
from dbt.adapters.silt.engine.statements.execute.constraints import kept, named
from dbt.adapters.silt.engine.statements.execute.functions import refuse_calls
from dbt.adapters.silt.engine.statements.execute.views import drop_temporary
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseView
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark
from dbt.adapters.silt.engine.statements.steps.on_table import Texts, Verb, change_table, refuse_unsupported

_NOTHING = Result()


def _add_columns(context: Context, statement: ast.AddColumns) -> Result:
    """Runs ALTER TABLE ... ADD COLUMNS."""
    for column in statement.columns:
        refuse_calls(context, column.default, "a column's default", ".".join(statement.table))
        refuse_calls(context, column.generated, f"the generated column `{column.path[-1]}`", ".".join(statement.table))
    columns = tuple(
        replace(
            column,
            default=_default(context, column.default),
            generated=None if column.generated is None else context.kept(column.generated),
        )
        for column in statement.columns
    )
    return _altered(
        context,
        statement,
        lambda target: alter_columns.add_columns(
            context.spark, target, columns, statement.if_not_exists, context.settings
        ),
    )


def _drop_columns(context: Context, statement: ast.DropColumns) -> Result:
    """Runs ALTER TABLE ... DROP COLUMNS."""
    return _altered(
        context,
        statement,
        lambda target: alter_columns.drop_columns(
            context.spark, target, statement.columns, statement.if_exists, context.settings
        ),
    )


def _alter_columns(context: Context, statement: ast.AlterColumns) -> Result:
    """Runs ALTER TABLE ... ALTER | CHANGE | RENAME COLUMN."""
    for change in statement.changes:
        refuse_calls(context, change.default, "a column's default", ".".join(statement.table))
    changes = tuple(
        replace(change, default=None if change.default is None else context.kept(change.default))
        for change in statement.changes
    )
    return _altered(
        context,
        statement,
        lambda target: alter_columns.change_columns(context.spark, target, changes, context.settings),
    )


def _set_properties(context: Context, statement: ast.SetProperties) -> Result:
    """Runs ALTER TABLE | VIEW ... SET TBLPROPERTIES."""
    return _view_or_table_altered(
        context,
        statement,
        lambda view: replace(view, properties={**view.properties, **statement.properties}),
        lambda target: alter.set_properties(target, statement.properties, context.settings),
    )


def _unset_properties(context: Context, statement: ast.UnsetProperties) -> Result:
    """Runs ALTER TABLE | VIEW ... UNSET TBLPROPERTIES."""

    def unset(view: View) -> View:
        kept = {key: value for key, value in view.properties.items() if key not in statement.keys}
        return replace(view, properties=kept)

    return _view_or_table_altered(
        context,
        statement,
        unset,
        lambda target: alter.unset_properties(target, statement.keys, statement.if_exists, context.settings),
    )


def _add_constraint(context: Context, statement: ast.AddConstraint) -> Result:
    """Runs ALTER TABLE ... ADD CONSTRAINT: CHECK is enforced, keys are recorded."""
    refuse_calls(context, statement.constraint.condition, "a check constraint", ".".join(statement.table))

    def add(target: Target) -> Outcome:
        configuration = target.snapshot.metadata.configuration
        names, keys = constraint_names(configuration), table_keys(configuration).values()
        found = named(kept(context, (statement.constraint,)), context.namespace, target.name, names, keys)
        if found.keys:
            return alter.add_keys(target, found.keys, context.settings)
        [(name, condition)] = found.checks.items()
        drops_rows = statement.constraint.drops_rows
        return alter.add_constraint(context.spark, target, name, condition, context.settings, drops_rows)

    return _altered(context, statement, add)


def _drop_constraint(context: Context, statement: ast.DropConstraint) -> Result:
    """Runs ALTER TABLE ... DROP CONSTRAINT."""
    return _altered(
        context,
        statement,
        lambda target: alter.drop_constraint(target, statement.constraint, statement.if_exists, context.settings),
    )


def _cluster_by(context: Context, statement: ast.AlterClustering) -> Result:
    """Runs ALTER TABLE ... CLUSTER BY."""
    return _altered(
        context, statement, lambda target: clustering.cluster_by(target, statement.columns, context.settings)
    )


def _comment_on(context: Context, statement: ast.CommentOn) -> Result:
    """Runs COMMENT ON TABLE | VIEW | COLUMN."""
    if statement.kind in (ObjectKind.SCHEMA, ObjectKind.DATABASE):
        raise errors.UnsupportedStatementError(
            "comments on schemas are not stored", table=".".join(statement.name), remedy="Comment on its tables"
        )
    if statement.kind is ObjectKind.COLUMN:
        change = ast.ColumnChange(statement.name[-1:], comment=statement.comment or "")
        return _altered(
            context,
            statement,
            lambda target: alter_columns.change_columns(context.spark, target, (change,), context.settings),
        )
    return _view_or_table_altered(
        context,
        statement,
        lambda view: replace(view, comment=statement.comment),
        lambda target: alter.set_comment(target, statement.comment, context.settings),
    )


def _alter_other(context: Context, statement: ast.AlterOther) -> Result:
    """Passes any other ALTER on a relation of Spark to Spark, and refuses it on a relation of a warehouse."""
    if not context.namespace.may_be_in_warehouse(statement.name):
        return pass_to_spark(context, statement)
    refuse_unsupported(statement, ".".join(statement.name))
    raise errors.UnsupportedStatementError(
        "this ALTER is not supported",
        table=".".join(statement.name),
        remedy="See the supported statements in the documentation",
    )


def _view_or_table_altered(
    context: Context, statement: OnObject, edit: Callable[[View], View], command: Callable[[Target], Outcome]
) -> Result:
    meaning = context.namespace.meaning(statement.name)
    if not isinstance(meaning, WarehouseView):
        return _altered(context, statement, command)
    context.catalog.put_view(edit(meaning.view), replace=True)
    return Result()


def _altered(context: Context, statement: OnTable | OnObject, command: Callable[[Target], Outcome]) -> Result:
    return change_table(
        context, statement, Verb("ALTER TABLE"), lambda _: Texts(), lambda change: command(change.target)
    )


def _default(context: Context, text: str | None) -> str | None:
    """Returns the default of a column; the default `null` means no default."""
    return None if text is None or text.strip().lower() == "null" else context.kept(text)


def _drop_table(context: Context, statement: ast.DropTable) -> Result:
    """Runs DROP TABLE: ends the log, deletes the folder. A temporary view of that name takes precedence."""
    if drop_temporary(context, statement.table):
        return _NOTHING
    if ast.is_path(statement.table):
        raise errors.UnsupportedStatementError(
            "a table that is named by its path cannot be dropped",
            table=statement.table[1],
            remedy="Delete its folder when nothing reads it",
        )
    name = context.namespace.name_in_warehouse(statement.table)
    if name is None:
        return pass_to_spark(context, statement)
    context.catalog.drop_table(name, if_exists=statement.if_exists)
    return _NOTHING


def _rename(context: Context, statement: ast.Rename) -> Result:
    """Runs ALTER TABLE | VIEW ... RENAME TO; a new name without a schema keeps the old schema."""
    if context.namespace.is_temporary(statement.name):
        return _rename_temporary(context, statement)
    old = context.namespace.name_in_warehouse(statement.name)
    if old is None:
        return pass_to_spark(context, statement)
    new = statement.new_name
    target = old.sibling(new[0]) if len(new) == 1 else context.namespace.writable(new)
    if target is None:
        raise errors.UnsupportedStatementError(
            f"it cannot be renamed to `{'.'.join(new)}`, which is not in a warehouse", table=str(old)
        )
    entry = context.catalog.find(old)
    if entry is None:
        raise errors.RelationNotFoundError(f"the {statement.kind.value} does not exist", table=str(old))
    if entry.kind.value != statement.kind.value:
        raise errors.RelationNotFoundError(
            f"it is a {entry.kind.value}, not a {statement.kind.value}",
            remedy=f"Write `alter {entry.kind.value} ... rename to`",
            table=str(old),
        )
    if context.transaction.is_open and statement.kind is ObjectKind.TABLE:
        _move_on_branch(context, statement, old, target)
    else:
        context.catalog.rename(old, target)
    return _NOTHING


def _move_on_branch(context: Context, statement: ast.Rename, old: RelationName, new: RelationName) -> None:
    """Copies a table to its new name and drops the old name: the name of a published table cannot change at the moment
    of a merge, because in a folder it is the name of the table's folder.
    """
    context.catalog.check_movable(old)
    source = context.catalog.table(old)
    before = source.snapshot()
    alone = replace(context, settings=replace(context.settings, txn=None, audits=None))
    table, origin = ((each.database, each.schema, each.identifier) for each in (new, old))
    copy = ast.Clone(text=statement.text, table=table, mode=CreateMode.CREATE, source=origin, shallow=False)
    create_table.run_clone(alone, copy)
    if before.metadata.description is not None:
        made = context.catalog.table(new)
        alter.set_comment(Target(made.name, made, made.snapshot()), before.metadata.description, alone.settings)
    context.catalog.drop_table(old, version=before.version)


def _rename_temporary(context: Context, statement: ast.Rename) -> Result:
    """Renames a temporary view that is kept here; Spark renames its own views."""
    kept = context.namespace.temporary.get(statement.name[0].lower())
    if kept is None:
        return pass_to_spark(context, statement)
    new = statement.new_name
    if len(new) != 1 or context.namespace.is_temporary(new):
        raise errors.InvalidStatementError(
            f"a temporary view cannot be renamed to `{'.'.join(new)}`",
            table=statement.name[0],
            remedy="Give a name without a schema, which no other temporary view has",
        )
    context.namespace.temporary[new[0].lower()] = context.namespace.temporary.pop(statement.name[0].lower())
    return _NOTHING


ROUTES: Routes = {
    ast.DropTable: _drop_table,
    ast.Rename: _rename,
    ast.AddColumns: _add_columns,
    ast.DropColumns: _drop_columns,
    ast.AlterColumns: _alter_columns,
    ast.SetProperties: _set_properties,
    ast.UnsetProperties: _unset_properties,
    ast.AddConstraint: _add_constraint,
    ast.DropConstraint: _drop_constraint,
    ast.AlterClustering: _cluster_by,
    ast.CommentOn: _comment_on,
    ast.AlterOther: _alter_other,
}
