"""The configuration: reading it, checking it before any job starts, and querying it."""
