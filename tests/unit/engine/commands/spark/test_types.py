"""Types are converted between the kernel's schema and Spark's without change."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.silt.engine.commands.spark import types
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY, ArrayType, PrimitiveType

EVERY_TYPE = T.StructType(
    [
        *(T.StructField(f"c{at}", kind) for at, kind in enumerate(
            (
                T.StringType(), T.LongType(), T.IntegerType(), T.ShortType(), T.ByteType(), T.DoubleType(),
                T.FloatType(), T.BooleanType(), T.BinaryType(), T.DateType(), T.TimestampType(),
                T.TimestampNTZType(), T.DecimalType(38, 10), T.NullType(),
            )
        )),
        T.StructField("nested", T.ArrayType(T.StructType([T.StructField("a", T.LongType(), False)]), False), False),
        T.StructField("map", T.MapType(T.StringType(), T.DoubleType(), False), True, {"comment": "by name"}),
    ]
)  # fmt: skip


def test_every_type_survives_the_conversion_to_spark_and_back() -> None:
    assert types.spark_schema(types.kernel_schema(EVERY_TYPE)) == EVERY_TYPE


def test_a_length_becomes_metadata_of_a_string() -> None:
    schema = T.StructType(
        [T.StructField("a", T.VarcharType(5)), T.StructField("b", T.ArrayType(T.CharType(2)), True, {"comment": "x"})]
    )
    first, second = types.kernel_schema(schema)
    assert (first.type, first.metadata) == (PrimitiveType("string"), {CHAR_VARCHAR_KEY: "varchar(5)"})
    assert second.type == ArrayType(PrimitiveType("string"))
    assert second.metadata == {"comment": "x", CHAR_VARCHAR_KEY: "array<char(2)>"}


def test_a_column_type_is_read_from_sql(spark: object) -> None:
    assert types.column_type("array<decimal(5,2)>").type.sql_name == "array<decimal(5,2)>"
    with pytest.raises(StatementSyntaxError, match="no such type"):
        types.column_type("no such type")
