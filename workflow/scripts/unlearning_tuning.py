"""The points of the grids of unlearning methods, each method's best first, and the best methods."""

import json

import yaml

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.script_job import script_job
from palimpsest.unlearning.kinds import SEARCHED, TUNING
from palimpsest.unlearning.samples import PROBLEM_KEYS, read_trained
from palimpsest.unlearning.tuning import chosen_methods, search_problem, tuning
from palimpsest.variants import RETAIN

if __name__ == "__main__":
    with script_job(snakemake):
        given, asked = snakemake.input, snakemake.params
        searched = tables.read_all(given.searched, SEARCHED)
        problems = {}
        for dataset, traces in zip(given.datasets, asked.traces, strict=True):
            strings = tables.read(dataset, STRINGS)
            retrained = read_trained(traces, RETAIN, strings["string_id"].to_numpy(dtype=object))
            key = tuple(retrained.problem[name] for name in PROBLEM_KEYS)
            problems[key] = search_problem(strings, retrained, asked.epochs, asked.batch_size)
        settings = json.loads(asked.settings)
        by_method = {name: searched[searched["method"] == name] for name in settings}
        table = tuning(by_method, problems, settings, asked.cutoff)
        tables.write(snakemake.output.table, table, TUNING)
        methods = chosen_methods(json.loads(asked.phases), table)
        with open(snakemake.output.methods, "w") as file:
            yaml.safe_dump(methods, file, sort_keys=False)
