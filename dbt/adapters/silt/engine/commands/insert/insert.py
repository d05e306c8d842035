"""Runs INSERT INTO, and INSERT OVERWRITE of the whole table."""

from __future__ import annotations

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.insertion import Replacement
from dbt.adapters.silt.engine.commands.insert.placement import Placement, place
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet


def append(target: Target, query: DataFrame, placement: Placement, settings: WriteSettings) -> Outcome:
    """Adds the rows of a query to the table; reads nothing of the table itself.

    Raises:
        ColumnNotFoundError, TypeMismatchError: if the query's columns do not fit.
        DataRejectedError: if a row breaks a rule of the table.
        ConcurrentModificationError: if another writer changed the table's schema or properties.
    """
    placed = place(query, target, placement).with_numbers()
    written = insertion.write(target, placed)
    return insertion.finish(target, placed, written, Replacement("Append"), settings)


def overwrite(target: Target, query: DataFrame, placement: Placement, settings: WriteSettings) -> Outcome:
    """Replaces all rows of the table with the rows of a query; raises as `append`, and:

    Raises:
        ConcurrentModificationError: if another writer changed any file of the table.
    """
    placed = place(query, target, placement).with_numbers()
    written = insertion.write(target, placed)
    everything = Replacement("Overwrite", target.snapshot.files, reads=ReadSet(whole_table=True, transactions=True))
    return insertion.finish(target, placed, written, everything, settings)
