def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    return dbt.ref("events").selectExpr("id", "part", "round")
