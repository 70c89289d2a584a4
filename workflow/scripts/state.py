"""List the stale state (of runs and jobs that are not in the configuration), and may remove it."""

from palimpsest.jobs import inventory
from palimpsest.requests import Unfinished
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.params
        wanted = [inventory.Wanted(**runs) for runs in given.wanted]
        unfinished = [Unfinished(**job) for job in given.unfinished]
        stale = inventory.stale(given.state, given.models, wanted, unfinished, given.sections)
        print(*inventory.listing(stale), sep="\n")
        if given.delete:
            inventory.remove(stale)
