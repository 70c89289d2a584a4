"""What changes inside of models while they are fine-tuned, beside losses and memorisation."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.information.epochs import epochs_table
from palimpsest.information.kinds import EPOCHS, LAYERS
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, params = snakemake.input, snakemake.params
        files = zip(given.datasets, given.traces, given.layers, strict=True)
        runs = (
            (tables.read(dataset, STRINGS), traces.read(trace), tables.read(layers, LAYERS))
            for dataset, trace, layers in files
        )
        found = epochs_table(runs, params.start, params.stand_in_gap)
        tables.write(snakemake.output.table, found, EPOCHS)
