"""The transaction of a session, the statements that it can contain, and the identifiers of work that tables record."""
