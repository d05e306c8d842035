"""The values that a table is made of: actions, schema, properties, features, predicates."""
