"""Planning: what an experiment needs, in memory, time and on disk, before anything of it is run.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""
