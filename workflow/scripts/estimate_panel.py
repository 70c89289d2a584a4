"""The memorisation profile of a panel that the configuration names."""

from palimpsest import tables
from palimpsest.profiles.kinds import PANEL_PERSISTENCE, PANEL_PROFILE
from palimpsest.profiles.panel import read_panel
from palimpsest.profiles.profile import of_panel
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        panel = read_panel(snakemake.input.panel, snakemake.params.columns)
        cells, since = of_panel(panel, snakemake.wildcards.language)
        tables.write(snakemake.output.profile, cells, PANEL_PROFILE)
        tables.write(snakemake.output.persistence, since, PANEL_PERSISTENCE)
