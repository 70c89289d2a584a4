"""Kinds of tables of information measures.

A site is a place in a block of a model: a layer and one of `mlp`, `attention` and `residual`. A
position says which activations of a string are taken: those at the symbol before the last one
(`last`), from which the last symbol is predicted, or the mean over the string (`mean`). An answer
is the last symbol of a string.
"""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

POSITIONS = LAST, MEAN = ("last", "mean")
# What a run is trained on: markers that agree with the answer, or permuted answers
INTERVENTIONS = MARKERS, SHUFFLES = ("markers", "shuffled answers")

FOLDER = "results/information/{recipe}/{model}/{language}/n{size}"
RUN = FOLDER + "-seed{seed}/{variant}"

columns = SHARED.extended("""
layer int: number of the block, from 0
place str: mlp, attention or residual (docs/information.md)
position str: last (the symbol before the answer) or mean (over the string)
vector vector: one activation per neuron
answer str: the string's last symbol
given str: the symbol that the model gives among all answers
is_right bool: whether they are equal
role str?: agrees or disagrees: does the string's marker with its answer? Null without markers
two_norm float: mean over the weight matrices of the log of the largest singular value
frobenius float: mean over the weight matrices of the log of the Frobenius norm
neuron int: number of the neuron, from 0
entropy float?: mean over neurons, nats; null if all are degenerate
is_degenerate bool: whether the neuron is constant or not finite
first int: number of the first neuron
second int: number of the second neuron, which is larger
mutual_information float?: mean over pairs, nats; null without pairs
permuted float: the same, after the strings of the second neuron are permuted (put in a random
    order): what the estimator finds where there is nothing
intervention str: markers or shuffled answers
share float: alpha, the share of the training strings that are given their answer as marker, where
    the markers of all others are random; or beta, the share whose answers are permuted
n_neurons int: number of neurons
n_degenerate int: of these, constant or not finite: in no mean
n_pairs int: number of pairs
mutual_information_permuted float?: the same, after the strings of each second neuron are permuted
    (put in a random order): what the estimator finds where there is nothing; null without pairs
n_answers int: number of evaluated strings
accuracy float: share of right answers on the evaluated strings
accuracy_agrees float?: of strings whose marker agrees; null without markers
accuracy_disagrees float?: of strings whose marker disagrees; null without markers
train_loss float: of the training strings at the end of training, nats per token
test_loss float: of the evaluated strings at the end of training, nats per token
memorised float: share of the distinct training strings whose loss at the end of training is below
    their Bayes-optimal loss (docs/measures.md)
memorised_unseen float?: the same of the evaluated strings that the language of the training strings
    has, the placebo; null if there are none
contextual float?: share of the distinct training strings with stand-ins whose loss at the end is
    below their contextual threshold; stand-ins are strings of equal frequency that are never
    trained on, and thresholds are their lowest losses at the measured epochs; null without
    stand-ins
contextual_unseen float?: the same of the strings never trained on, the placebo: at most about half
    of them are below their thresholds, which are lowest losses of strings like them
coverage float?: share of the distinct training strings with stand-ins
n_layers int: number of the model's blocks
""")
OF_SITE = ["layer", "place", "position"]
MEASURED = "n_neurons n_degenerate entropy n_pairs mutual_information mutual_information_permuted"
ACTIVATIONS = Kind(
    "activations",
    "One row per evaluated string, site and position: the activations of all neurons.",
    f"{RUN}/activations.parquet",
    columns("model language size seed variant string_id layer place position vector"),
)
ANSWERS = Kind(
    "answers",
    "One row per evaluated string: the answer that the model gives. It is the one whose log "
    "probability is the highest after the mean of this answer over all evaluated strings is "
    "subtracted.",
    f"{RUN}/answers.parquet",
    columns(
        "model language size seed variant string_id answer given is_right role nll",
        nll="float: negative log likelihood of the answer, nats",
    ),
)
NORMS = Kind(
    "norms",
    "One row per run: norms of the model's weight matrices.",
    f"{RUN}/norms.parquet",
    columns("model language size seed variant two_norm frobenius"),
)
NEURONS = Kind(
    "neurons",
    "One row per neuron: its entropy.",
    f"{RUN}/neurons.parquet",
    columns(
        "model language size seed variant layer place position neuron entropy is_degenerate",
        entropy="float?: nats, of 100 bins; null for a neuron that is not finite",
    ),
)
PAIRS = Kind(
    "pairs",
    "One row per pair of neurons of a site, all or a seeded sample: their mutual information. "
    "Degenerate neurons are in no pair.",
    f"{RUN}/pairs.parquet",
    columns(
        """
        model language size seed variant layer place position first second mutual_information
        permuted
        """,
        mutual_information="float: nats; the estimate can be a little below 0",
    ),
)
INFORMATION = Kind(
    "information",
    "One row per run and site: means of both measures, and norms and accuracy of the run.",
    f"{FOLDER}/information.parquet",
    columns(f"""
        model language size seed variant intervention share layer place position {MEASURED}
        n_answers accuracy accuracy_agrees accuracy_disagrees train_loss test_loss two_norm
        frobenius memorised memorised_unseen contextual contextual_unseen coverage n_layers
    """),
)
LAYERS = Kind(
    "layers",
    "One row per epoch and site of a run that is fine-tuned: means of both measures.",
    f"{RUN}/layers.parquet",
    columns(f"model language size seed variant epoch layer place position {MEASURED}"),
)
EPOCHS = Kind(
    "epochs",
    "One row per seed, variant, epoch and site: means of both measures before and while a model is "
    "fine-tuned, with losses and the share of memorised strings.",
    f"{FOLDER}/epochs.parquet",
    columns(
        f"""
        model language size seed variant epoch layer place position {MEASURED} train_loss test_loss
        memorised memorised_unseen coverage
        """,
        train_loss="float?: of the training strings, nats per token; null for fresh strings: each "
        "is trained on once",
        test_loss="float: of strings never trained on, nats per token",
        memorised="float?: share of the training strings with stand-ins whose contextual "
        "memorisation has started; stand-ins are strings of equal frequency that are never "
        "trained on; null for fresh strings",
        memorised_unseen="float?: the same of the strings never trained on, the placebo: at most "
        "about half of them are below the threshold in the end, because it is the loss of "
        "equally frequent strings",
        coverage="float?: share of the training strings that have stand-ins; null for fresh "
        "strings",
    ),
)
# Outputs of a trained model; measures of its neurons; and the tables that the comparison of runs
# reads in addition to datasets and traces
OF_MODEL = (ACTIVATIONS, ANSWERS, NORMS)
OF_NEURONS = (NEURONS, PAIRS)
COMPARED = (ANSWERS, NORMS, *OF_NEURONS)
KINDS = kinds_in(globals())
