"""Columns that tables of several kinds have in common, so that they join."""

from dataclasses import replace

from palimpsest.tables.kinds import Column

MODEL = Column("model", str, "name of the model, a row of config/models.tsv; `-twin` is its twin")
LANGUAGE = Column(
    "language", str, "name of the language or text: config/languages/{language}.pcfg or .txt"
)
SIZE = Column("size", int, "training strings asked for, copies counted")
SEED = Column("seed", int, "seed of the sample, the initialisation and the order of the data")
VARIANT = Column(
    "variant",
    str,
    "base, dedup, dedup-matched, with-s0, without-s0, original, retain, ...; in the folder "
    "leave-one-out without-{string_id}, the run without that training string; in folders of draws "
    "original-{draw} and retain-{draw}, one of many trainings",
)
STRING_ID = Column("string_id", str, "name of the string: 12 hexadecimal digits of its SHA-256")
EPOCH = Column("epoch", int, "passes over the training data before the measurement; 0 is untrained")
MEASURE = Column("measure", str, "name of the measure, such as contextual (docs/measures.md)")
EVIDENCE = Column(
    "evidence",
    str,
    "where the threshold comes from: constant, same-frequency (test strings), retraining "
    "(without the string) or language (exact probabilities)",
)
GROUP_SEED = (MODEL, LANGUAGE, SIZE, SEED, VARIANT)
LOG_PROB = Column(
    "log_prob",
    float,
    "exact log probability, nats, under the language of the training strings (for dedup-matched, "
    "the high-entropy counterpart)",
)
# Of strings that may be of a text
KNOWN_LOG_PROB = replace(LOG_PROB, meaning=f"{LOG_PROB.meaning}; null of a text", nullable=True)
COUNT = Column("count", int, "how often in the training multiset")
PREDICTED = (
    Column("nll", float, "nats, summed over the predicted tokens"),
    Column("n_tokens", int, "predicted tokens"),
    Column("n_correct", int, "tokens whose most probable prediction is right"),
    Column("rank_sum", int, "sum of the ranks of the true tokens; best rank is 1"),
)
