"""`silt sql` reads a profile without Jinja with the same result as dbt."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.dbt_seams import project_values
from dbt.adapters.silt.session.statement_process import fields_of_target

PLAIN = """
shop:
  target: dev
  outputs:
    dev:
      type: silt
      threads: 4
      schema: "4"
      warehouse: 'a folder'
      external_paths: yes
      max_commit_attempts: 07
      run_id: 2026-01-05
      remote: null
      isolation_level: Serializable
        and more
      spark_conf:
        spark.sql.shuffle.partitions: "4"
        spark.executor.cores: 2
        spark.ui.enabled: false
"""


WAREHOUSES = ["a folder", "\"{{ env_var('NOT_SET', 7) }}\"", "|\n        x", '"x\\n"', "{location: x}"]


@pytest.mark.parametrize("warehouse", WAREHOUSES)
def test_the_fields_equal_those_that_dbt_reads(tmp_path: Path, warehouse: str) -> None:
    (tmp_path / "profiles.yml").write_text(PLAIN.replace("'a folder'", warehouse))
    fields = fields_of_target(tmp_path / "profiles.yml", "shop", "dev")
    assert fields["type"] == "silt" and fields["spark_conf"]["spark.executor.cores"] == 2
    assert fields == project_values.fields_of_target(tmp_path, "shop", "dev")
