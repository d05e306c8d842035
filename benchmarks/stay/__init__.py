"""Times `dbt` and `silt dbt` commands, with a breakdown of the time."""
