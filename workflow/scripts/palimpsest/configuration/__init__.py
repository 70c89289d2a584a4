"""The configuration: read, checked before any job starts, and asked for what it says.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""
