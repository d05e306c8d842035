"""Which schemas no table can have."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable


def test_names_that_differ_in_case_only_are_refused_within_structs_too() -> None:
    twice = StructType((StructField("a", PrimitiveType("long")), StructField("A", PrimitiveType("long"))))
    for schema in (twice, StructType((StructField("s", ArrayType(twice)),))):
        with pytest.raises(InvalidNameError, match="`a`, `A`"):
            check_storable(schema)


def test_a_type_that_no_table_holds_is_refused() -> None:
    schema = StructType((StructField("i", ArrayType(PrimitiveType("interval year to month"))),))
    with pytest.raises(TypeMismatchError, match="`i` has the type interval year to month"):
        check_storable(schema)
