"""Times writes and builds that are audited, next to the same without audits."""
