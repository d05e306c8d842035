"""The values that describe a table: actions, schema, properties, features, predicates."""
