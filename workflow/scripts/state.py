"""List the state of runs that nobody asks for any more and, if told to, remove it."""

from palimpsest.script_job import script_job
from palimpsest.training import inventory

if __name__ == "__main__":
    with script_job(snakemake):
        wanted = [inventory.Wanted(**runs) for runs in snakemake.params.wanted]
        stale = inventory.stale(snakemake.params.state, snakemake.params.models, wanted)
        print(*inventory.listing(stale), sep="\n")
        if snakemake.params.delete:
            inventory.remove(stale)
