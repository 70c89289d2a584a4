"""The configuration: reading it, checking it before any job starts, and querying it.

Only modules that load fast are imported, because Snakemake reads them before it builds its graph of
jobs.
"""
