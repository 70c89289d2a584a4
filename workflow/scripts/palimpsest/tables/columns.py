"""Columns that several kinds of tables share, so that the tables can be joined."""

from dataclasses import replace

from palimpsest.tables.kinds import Column

MODEL = Column("model", str, "name of the model, a row of config/models.tsv; `-twin` is its twin")
LANGUAGE = Column(
    "language", str, "name of the language or text: config/languages/{language}.pcfg or .txt"
)
SIZE = Column("size", int, "number of training strings asked for, with copies")
SEED = Column("seed", int, "seed of the sample, the initialisation and the order of the data")
VARIANT = Column(
    "variant",
    str,
    "base, dedup, dedup-matched, with-s0, without-s0, original, retain, ...; in the folder "
    "leave-one-out: without-{string_id}, the run without that training string; in folders draws-*: "
    "original-{replicate} or retain-{replicate}, one of many trainings",
)
STRING_ID = Column("string_id", str, "name of the string: 12 hexadecimal digits of its SHA-256")
EPOCH = Column("epoch", int, "epochs trained before the measurement; 0: the untrained model")
MEASURE = Column("measure", str, "name of the measure, such as contextual (docs/measures.md)")
EVIDENCE = Column(
    "evidence",
    str,
    "source of the threshold: constant, same-frequency (test strings), retraining (without the "
    "string) or language (exact probabilities)",
)
GROUP_SEED = (MODEL, LANGUAGE, SIZE, SEED, VARIANT)
LOG_PROB = Column(
    "log_prob",
    float,
    "exact log probability, nats, under the language of the training strings (for dedup-matched, "
    "the high-entropy counterpart)",
)
# For strings that may come from a text
KNOWN_LOG_PROB = replace(LOG_PROB, meaning=f"{LOG_PROB.meaning}; null for a text", nullable=True)
COUNT = Column("count", int, "copies of the string in the training data")
PREDICTED = (
    Column("nll", float, "negative log likelihood in nats, summed over the predicted tokens"),
    Column("n_tokens", int, "number of predicted tokens"),
    Column("n_correct", int, "number of tokens whose most probable prediction is right"),
    Column("rank_sum", int, "sum of the ranks of the true tokens; the best rank is 1"),
)
