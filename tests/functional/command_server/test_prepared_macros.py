"""The templates of macros are those that dbt looks for in a project: a new dbt fails here first.

They were read from dbt-core 1.11.16 and dbt-common 1.39.0.
"""

from __future__ import annotations

from typing import Any

from dbt.tests.util import run_dbt
from dbt_common.clients import jinja

from dbt.adapters.silt.dbt_seams import prepared_classes

PACKAGES = ("dbt", "dbt_spark", "dbt_silt")


class TestPreparedMacros:
    def test_each_macro_of_dbt_and_of_the_adapter_has_a_template_before_a_project_is_read(self, project: Any) -> None:
        jinja.template_cache.clear()
        for file in prepared_classes.macro_files():
            prepared_classes.compile_macros(file)
        prepared = set(jinja.template_cache.file_cache)
        manifest = run_dbt(["parse"])
        macros = [each for each in manifest.macros.values() if each.package_name in PACKAGES]
        assert {each.package_name for each in macros} == set(PACKAGES)
        assert [each.unique_id for each in macros if each.macro_sql not in prepared] == []
