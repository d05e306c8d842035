"""The dbt commands of a run that is published as a whole: their documents, and the reasons against its publication."""
