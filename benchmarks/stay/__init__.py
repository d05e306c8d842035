"""Times dbt commands by themselves and by `silt dbt`, with a breakdown of where the time goes."""
