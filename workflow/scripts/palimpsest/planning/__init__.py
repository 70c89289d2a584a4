"""Planning: estimates of the memory, time and disk that an experiment needs, before it runs.

Only modules that load fast are imported, because Snakemake reads them before it builds its graph of
jobs.
"""
