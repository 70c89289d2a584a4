"""How often a twin writes records of its training data unasked, beside the expected number.

Run as a script: `python tests/benchmarks/bench_propensity.py`. See `planted_records` for the
records. The twin draws texts after its start token alone; a record counts if a text begins with it.
The peer is the number that the language `people` makes us expect, which is exact. Beside it stands
the number that the probabilities of the records under the twin make us expect, so that no text need
be drawn, as in the study `extraction`. Records that were never trained on are the placebo.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from planted_records import COPIES, GRAMMAR, PlantedRecords
from rows import Row, main, shown

from palimpsest import audit
from palimpsest.languages import Grammar
from palimpsest.models.checkpoints import opened

EPOCHS = 24  # as in bench_record_fields: the twin then infers an e-mail from a name


def rows(tiny: bool = False) -> Iterator[Row]:
    """For each number of copies: records among the texts, and how many are expected."""
    n_trained, n_samples, epochs = (24, 64, 2) if tiny else (240, 20_000, EPOCHS)
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, [0], epochs=epochs)
        (model,) = planted.models()
        planted.run(model)
        records = planted.records
        checkpoint = opened(planted.folder / model)
        encoded = checkpoint.tokenizer(records["text"].tolist())["input_ids"]
        of_twin = np.exp(-audit.passed(checkpoint, records["text"].tolist()).nll)
        generated = audit.free_generations(checkpoint, n_samples, max(map(len, encoded)))
    characters = Grammar.from_file(GRAMMAR).of_characters()
    log_prob = characters.log_prefix_probability([*map(tuple, records["text"])])
    found = audit.propensity(generated, records["text"], log_prob, records["copies"])
    by_twin = n_samples * pd.Series(of_twin).groupby(records["copies"].to_numpy()).sum()
    for row in found.set_index("group").loc[[*COPIES, 0]].itertuples():
        who = f"copies: {row.Index}" if row.Index else "never trained on"
        ends = f"{row.lower:.3g} to {row.upper:.3g}"
        what = f"{row.n_strings} records, {who}; ratio {ends}; by the twin's probabilities "
        what += f"{by_twin[row.Index]:,.0f}; peer: expected"
        yield shown(what, row.count, row.expected, "texts", row.ratio)


if __name__ == "__main__":
    main(rows)
