"""Kinds of tables of information measures.

A site is a place in a block of a model: a layer and one of `mlp`, `attention` and `residual`. A
position says which activations of a string are taken: those at the symbol before the last one
(`last`), from which the last symbol is predicted, or the mean over the string (`mean`). An answer
is the last symbol of a string.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.tables.columns import EPOCH, GROUP_SEED, STRING_ID
from palimpsest.tables.kinds import VECTOR, Column, Kind

POSITIONS = LAST, MEAN = ("last", "mean")
# What a run is trained on: markers that agree with the answer, or permuted answers
INTERVENTIONS = MARKERS, SHUFFLES = ("markers", "shuffled answers")

RUN = "results/information/{model}/{language}/n{size}-seed{seed}/{variant}"
FOLDER = "results/information/{model}/{language}/n{size}"
LAYER = Column("layer", int, "number of the block, from 0")
PLACE = Column("place", str, "mlp, attention or residual (docs/information.md)")
POSITION = Column("position", str, "last (the symbol before the answer) or mean (over the string)")
SITE = (LAYER, PLACE, POSITION)
OF_SITE = [column.name for column in SITE]

ACTIVATIONS = Kind(
    "activations",
    "One row per evaluated string, site and position: the activations of all neurons.",
    f"{RUN}/activations.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        *SITE,
        Column("vector", VECTOR, "one activation per neuron"),
    ),
)
ANSWERS = Kind(
    "answers",
    "One row per evaluated string: the answer that the model gives. It is the one whose log "
    "probability is the highest after the mean of this answer over all evaluated strings is "
    "subtracted.",
    f"{RUN}/answers.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        Column("answer", str, "the string's last symbol"),
        Column("given", str, "the symbol that the model gives among all answers"),
        Column("is_right", bool, "whether they are equal"),
        Column(
            "role",
            str,
            "agrees or disagrees: does the string's marker with its answer? Null without markers",
            True,
        ),
        Column("nll", float, "negative log likelihood of the answer, nats"),
    ),
)
NORMS = Kind(
    "norms",
    "One row per run: norms of the model's weight matrices.",
    f"{RUN}/norms.parquet",
    (
        *GROUP_SEED,
        Column(
            "two_norm", float, "mean over the matrices of the log of the largest singular value"
        ),
        Column("frobenius", float, "mean over the matrices of the log of the Frobenius norm"),
    ),
)
NEURONS = Kind(
    "neurons",
    "One row per neuron: its entropy.",
    f"{RUN}/neurons.parquet",
    (
        *GROUP_SEED,
        *SITE,
        Column("neuron", int, "number of the neuron, from 0"),
        Column("entropy", float, "nats, of 100 bins; null for a neuron that is not finite", True),
        Column("is_degenerate", bool, "whether the neuron is constant or not finite"),
    ),
)
PAIRS = Kind(
    "pairs",
    "One row per pair of neurons of a site, all or a seeded sample: their mutual information. "
    "Degenerate neurons are in no pair.",
    f"{RUN}/pairs.parquet",
    (
        *GROUP_SEED,
        *SITE,
        Column("first", int, "number of the first neuron"),
        Column("second", int, "number of the second neuron, which is larger"),
        Column("mutual_information", float, "nats; the estimate can be a little below 0"),
        Column(
            "exchanged",
            float,
            "the same, after the strings of the second neuron are put in a random order: what the "
            "estimator finds where there is nothing",
        ),
    ),
)
MEASURED = (
    Column("n_neurons", int, "number of neurons"),
    Column("n_degenerate", int, "of these, constant or not finite: in no mean"),
    Column("entropy", float, "mean over neurons, nats; null if all are degenerate", True),
    Column("n_pairs", int, "number of pairs"),
    Column("mutual_information", float, "mean over pairs, nats; null without pairs", True),
    Column(
        "mutual_information_exchanged",
        float,
        "the same, after the strings of each second neuron are put in a random order: what the "
        "estimator finds where there is nothing; null without pairs",
        True,
    ),
)
INFORMATION = Kind(
    "information",
    "One row per run and site: means of both measures, and norms and accuracy of the run.",
    f"{FOLDER}/information.parquet",
    (
        *GROUP_SEED,
        Column("intervention", str, "markers or shuffled answers"),
        Column(
            "share",
            float,
            "alpha, the share of the training strings that are given their answer as marker, where "
            "the markers of all others are random; or beta, the share whose answers are permuted",
        ),
        *SITE,
        *MEASURED,
        Column("n_answers", int, "number of evaluated strings"),
        Column("accuracy", float, "share of right answers on the evaluated strings"),
        Column(
            "accuracy_agrees", float, "of strings whose marker agrees; null without markers", True
        ),
        Column(
            "accuracy_disagrees",
            float,
            "of strings whose marker disagrees; null without markers",
            True,
        ),
        Column(
            "train_loss", float, "of the training strings at the end of training, nats per token"
        ),
        Column(
            "test_loss", float, "of the evaluated strings at the end of training, nats per token"
        ),
        Column(
            "two_norm",
            float,
            "mean over the weight matrices of the log of the largest singular value",
        ),
        Column(
            "frobenius", float, "mean over the weight matrices of the log of the Frobenius norm"
        ),
        Column(
            "memorised",
            float,
            "share of the distinct training strings whose loss at the end of training is below "
            "their Bayes-optimal loss (docs/measures.md)",
        ),
        Column(
            "memorised_unseen",
            float,
            "the same of the evaluated strings that the language of the training strings has, the "
            "placebo; null if there are none",
            True,
        ),
        Column(
            "contextual",
            float,
            "share of the distinct training strings with stand-ins whose loss at the end is below "
            "their contextual threshold; stand-ins are strings of equal frequency that are never "
            "trained on, and thresholds are their lowest losses at the measured epochs; null "
            "without stand-ins",
            True,
        ),
        Column(
            "contextual_unseen",
            float,
            "the same of the strings never trained on, the placebo: at most about half of them are "
            "below their thresholds, which are lowest losses of strings like them",
            True,
        ),
        Column("coverage", float, "share of the distinct training strings with stand-ins", True),
        Column("n_layers", int, "number of the model's blocks"),
    ),
)
LAYERS = Kind(
    "layers",
    "One row per epoch and site of a run that is fine-tuned: means of both measures.",
    f"{RUN}/layers.parquet",
    (*GROUP_SEED, EPOCH, *SITE, *MEASURED),
)
EPOCHS = Kind(
    "epochs",
    "One row per seed, variant, epoch and site: means of both measures before and while a model is "
    "fine-tuned, with losses and the share of memorised strings.",
    "results/information/{model}/{language}/n{size}/epochs.parquet",
    (
        *GROUP_SEED,
        EPOCH,
        *SITE,
        *MEASURED,
        Column(
            "train_loss",
            float,
            "of the training strings, nats per token; null for fresh strings: each is "
            "trained on once",
            True,
        ),
        Column("test_loss", float, "of strings never trained on, nats per token"),
        Column(
            "memorised",
            float,
            "share of the training strings with stand-ins whose contextual memorisation has "
            "started; stand-ins are strings of equal frequency that are never trained on; null for "
            "fresh strings",
            True,
        ),
        Column(
            "memorised_unseen",
            float,
            "the same of the strings never trained on, the placebo: at most about half of them are "
            "below the threshold in the end, because it is the loss of equally frequent strings",
            True,
        ),
        Column(
            "coverage",
            float,
            "share of the training strings that have stand-ins; null for fresh strings",
            True,
        ),
    ),
)
# What a trained model is asked for; what is measured of its neurons; and what the comparison of
# runs reads, in addition to datasets and traces
OF_MODEL = (ACTIVATIONS, ANSWERS, NORMS)
OF_NEURONS = (NEURONS, PAIRS)
COMPARED = (ANSWERS, NORMS, *OF_NEURONS)
KINDS = (ACTIVATIONS, ANSWERS, NORMS, NEURONS, PAIRS, INFORMATION, LAYERS, EPOCHS)
