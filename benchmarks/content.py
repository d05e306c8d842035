"""Computes fingerprints of rows, independent of their order, to compare two results."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Fingerprint:
    """The number of rows and the sum of their hashes, which are equal for equal bags of rows."""

    rows: int
    hash_sum: int


def fingerprint(rows: DataFrame) -> Fingerprint:
    """Returns the fingerprint of a bag of rows, with columns in the order of their names."""
    columns = ", ".join(f"`{name}`" for name in sorted(rows.columns))
    hashes = rows.selectExpr(f"cast(xxhash64({columns}) as decimal(20, 0)) as hash")
    row = hashes.selectExpr("count(*) as rows", "coalesce(sum(hash), 0) as hash_sum").collect()[0]
    return Fingerprint(int(row["rows"]), int(row["hash_sum"]))
