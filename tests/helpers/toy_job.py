"""An example of a job that queries trained models: the size of their hidden states.

The job only defines four flags, a kind of table, and the function `sizes`.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

SIZES = Kind(
    "sizes",
    "One row per replicate and string: how large its hidden states are.",
    "results/toy/{model}/sizes.parquet",
    SHARED(
        "model language size seed replicate string_id square nll continuation",
        replicate="int: of the training",
        square="float: mean square of the last layer's states over the string's tokens",
        continuation="str: the two most probable tokens after the first two",
    ),
)


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__.splitlines()[0])
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--weights", nargs="+", required=True)
    parser.add_argument("--replicates", nargs="+", type=int, required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--manifest", required=True)
    return command.parsed(parser)


def work(arguments: argparse.Namespace, attempts) -> None:
    command.begin(arguments)
    with launch.importing():
        from palimpsest.jobs.delivery import Files
        from palimpsest.jobs.model_queries import ModelQuery, run_model_queries

    query = ModelQuery(
        name="sizes",
        section="toy",
        assignment=command.Assignment.of(arguments),
        dataset=arguments.dataset,
        weights=arguments.weights,
        about={"replicates": arguments.replicates},
        n_models=len(arguments.replicates),
        files=Files(arguments.manifest, ((arguments.table, SIZES),)),
        make_tables=partial(sizes, arguments.replicates),
    )
    run_model_queries([query], attempts=attempts)


def sizes(replicates, bench, weights, places):
    """One table about some of the models."""
    import numpy as np
    import pandas as pd
    import torch

    from palimpsest.models import generate

    replicates = [replicates[place] for place in places]
    models = bench.holder.open([weights.of("original", replicate) for replicate in replicates])
    strings, last = bench.material.encoded, len(models.layers()) - 2
    squares = np.zeros((models.count, len(strings.lengths)))
    words = np.empty(squares.shape, dtype=object)
    for row, length in enumerate(strings.lengths):
        ids = torch.from_numpy(strings.ids[row, :length]).to(models.device)
        ids_MBT = ids.expand(models.count, 1, length)
        with torch.no_grad():
            states = models.hidden(ids_MBT, last)
        squares[:, row] = states.double().square().mean((1, 2, 3)).cpu().numpy()
        for model, tokens in enumerate(generate(models, ids_MBT[..., :2], 2)[:, 0].tolist()):
            words[model, row] = " ".join(map(str, tokens))
    n_strings = len(strings.lengths)
    table = {
        **bench.keys,
        "replicate": np.repeat(replicates, n_strings),
        "string_id": np.tile(bench.material.string_ids, models.count),
        "square": squares.ravel(),
        "nll": bench.measure(models)[:, 0].ravel(),
        "continuation": words.ravel(),
    }
    return [pd.DataFrame(table)]


def main() -> None:
    arguments = parse_arguments()
    sys.exit(supervise(arguments, ["sizes"], [partial(work, arguments)]))


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
