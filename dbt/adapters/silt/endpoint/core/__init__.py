"""The sessions of clients: statements, their results, permissions and expiry, for every door of the endpoint."""
