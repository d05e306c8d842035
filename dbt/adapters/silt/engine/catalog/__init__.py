"""The names of a warehouse: databases, schemas, tables, views and functions, without Spark."""
