"""How a command ends: done, interrupted, or refused because its target is misspelt.

Only modules that load fast are imported, because Snakemake's main process imports this package.
"""
