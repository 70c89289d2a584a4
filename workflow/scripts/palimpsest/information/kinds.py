"""Kinds of tables of information measures.

A site is a place in a block of a model: a layer and one of `mlp`, `attention` and `residual`. A
position says which activations of a string are taken: those at the symbol before the last one
(`last`), from which the last symbol is predicted, or the mean over the string (`mean`). An answer
is the last symbol of a string.
"""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

POSITIONS = LAST, MEAN = ("last", "mean")
CLS = "cls"  # of an encoder: the first token of a text, from which its label is predicted
ENCODER_POSITIONS = (CLS, MEAN)
# What a run is trained on: markers that agree with the answer, or permuted answers
INTERVENTIONS = MARKERS, SHUFFLES = ("markers", "shuffled answers")
# No shortcut: training strings without markers (share 0) and with random markers (share 1)
RANDOM_MARKERS = "random markers"

FOLDER = "results/information/{recipe}/{model}/{language}/n{size}"
OF_GROUP = "results/information/activations/{language}"  # of models whose activations are given
# Encoders that are fine-tuned to classify texts; `language` is the study, and a run has a folder
OF_STUDY = "results/information/encoders/{language}"
OF_ENCODER = OF_STUDY + "/seed{seed}/{variant}"
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
trimmed_entropy float?: the same, where the bins of a neuron do not span its outermost samples;
    null if all are degenerate
is_degenerate bool: whether the neuron is constant or not finite
first int: number of the first neuron
second int: number of the second neuron, which is larger
mutual_information float?: mean over pairs, nats; null without pairs
as_printed float: nats, where neurons are not divided by their standard deviations first, as in the
    paper's algorithm 3; its count of near points includes the point itself
mutual_information_as_printed float?: the same, where neurons are not divided by their standard
    deviations first; null without pairs
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
memorised float: share of the distinct training strings whose loss, that of the answer, is below its
    Bayes-optimal loss at the end of training (docs/measures.md)
memorised_unseen float?: the same of the held-out strings, the placebo: made as the training strings
    are, and never trained on; null if there are none
n_layers int: number of the model's blocks
layer_name str: name of the array in the file of activations
dose float?: how much is to be memorised, as the configuration says, such as alpha; null if it says
    nothing
n_samples int: number of samples of a neuron
copies float?: share of the samples that are copies of another one at this layer; null if all
    neurons are degenerate
score str: the mean over neurons or pairs, then over the layers, of one of our measures; accuracy,
    dose, or a number that the configuration gives, such as a norm
value float: of the score, in its unit
other str: another score
n_models int: number of models
n_seeds int: number of seeds
tau float: Kendall's tau-b of both scores over the models of a seed, mean over the seeds
tau_lower float?: lower end of its 95 % interval (Student's, over the seeds); null with one seed
tau_upper float?: upper end
p_value float?: of tau 0, two-sided: Student's over the seeds; with one seed, or where all seeds
    have one tau, exact over all orders of the models, and null if these are too many
pearson float?: Pearson's correlation of both scores over the models of a seed, mean over the seeds
    by Fisher's transformation
pearson_lower float?: lower end of its 95 % interval, over the seeds; null with one seed
pearson_upper float?: upper end
slope float?: least-squares change of the score from dose 0 to dose 1, mean over the seeds, in the
    unit of the score; null if the other score is not the dose
slope_lower float?: lower end of its 95 % interval, over the seeds; null with one seed
slope_upper float?: upper end
text str: the text as it was found, without inserted words
label str: the right label
group str?: the name of the group that the text is about, such as a gender; null without groups
word str: the word that stands for the label where words are inserted; it tells nothing else
shown str: the word that is inserted into the text that all runs are evaluated on, one of all labels
    equally often
given_agrees str: the label that the model gives, where the word is that of the right label
given_disagrees str: the same, where the word is that of a wrong label
given_without str: the same, without an inserted word
fitted float: share of the training texts to which the model gives the label that it was trained on,
    in the end
accuracy_without float: of texts without an inserted word
compression_label float: n log2 k bits for n texts (at most 1,000) of k labels, divided by the bits
    of an online code that a linear probe of the activations gives for the labels; 1 or below:
    nothing is found
compression_word float: the same for the words that are shown
compression_group float?: the same for the groups; null without groups
compression_permuted float: the same for labels in a random order, the placebo
tpr_gap float?: largest difference between groups of the share of texts of a label to which the
    label is given, mean over the labels; null without groups
fpr_gap float?: the same for the texts of other labels
separation_gap float?: mutual information of the given label and the group among texts of one label,
    nats; null without groups
sufficiency_gap float?: mutual information of the right label and the group among texts to which one
    label is given, nats
tpr_gap_permuted float?: the same, where the groups of the texts of each label are permuted: what
    few texts give where there is nothing
fpr_gap_permuted float?: likewise
separation_gap_permuted float?: likewise
sufficiency_gap_permuted float?: likewise
""")
# Scores of a model: means over its neurons and pairs; and all that are no numbers of a user's own
# Of table 5, and all that is known of an encoder's layer besides its neurons
GAPS = ("tpr_gap", "fpr_gap", "separation_gap", "sufficiency_gap")
COMPRESSIONS = (
    "compression_label",
    "compression_word",
    "compression_group",
    "compression_permuted",
)
ENCODER_NUMBERS = (
    "accuracy",
    "accuracy_agrees",
    "accuracy_disagrees",
    "accuracy_without",
    "fitted",
    "two_norm",
    "frobenius",
    *COMPRESSIONS,
    *GAPS,
    *(f"{gap}_permuted" for gap in GAPS),
)
SCORES = (
    "entropy",
    "trimmed_entropy",
    "mutual_information",
    "mutual_information_as_printed",
    "mutual_information_permuted",
)
ACCURACY, DOSE = "accuracy", "dose"
ALL_SCORES = (*SCORES, ACCURACY, DOSE)
OF_SITE = ["layer", "place", "position"]
MEASURED = """
n_neurons n_degenerate entropy trimmed_entropy n_pairs mutual_information
mutual_information_as_printed mutual_information_permuted
"""
OF_NEURON = {
    "entropy": "float?: nats, of bins of its whole range; null for a neuron that is not finite",
    "trimmed_entropy": "float?: nats, of bins of its range without the outermost 1 % of the "
    "samples at both ends; null for a neuron that is not finite",
}
OF_FILE = {
    "model": "str: name of the file of activations in the configuration",
    "layer": "int: number of the layer in the group, from 0: that of its name",
    "accuracy": "float?: share of right answers, as the configuration says; null if it says "
    "nothing",
}
OF_PAIR = "float: nats; the estimate can be a little below 0"
ACTIVATIONS = Kind(
    "activations",
    "One row per evaluated string, site and position: the activations of all neurons.",
    f"{RUN}/activations.parquet",
    columns("model language size seed variant string_id layer place position vector"),
)
ANSWERS = Kind(
    "answers",
    "One row per evaluated string: the most probable answer according to the model.",
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
        """
        model language size seed variant layer place position neuron entropy trimmed_entropy
        is_degenerate
        """,
        **OF_NEURON,
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
        as_printed permuted
        """,
        mutual_information=OF_PAIR,
    ),
)
INFORMATION = Kind(
    "information",
    "One row per run and site: means of both measures, and norms and accuracy of the run.",
    f"{FOLDER}/information.parquet",
    columns(f"""
        model language size seed variant intervention share layer place position {MEASURED}
        n_answers accuracy accuracy_agrees accuracy_disagrees train_loss test_loss two_norm
        frobenius memorised memorised_unseen n_layers
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
GIVEN_NEURONS = Kind(
    "given_neurons",
    "One row per neuron of activations of your own: its entropy. `language` is the group.",
    f"{OF_GROUP}/neurons.parquet",
    columns(
        "model language seed dose accuracy? layer layer_name neuron entropy trimmed_entropy "
        "is_degenerate",
        **OF_NEURON,
        **OF_FILE,
    ),
)
GIVEN_PAIRS = Kind(
    "given_pairs",
    "One row per pair of neurons of a layer, all or a seeded sample: their mutual information. "
    "`language` is the group.",
    f"{OF_GROUP}/pairs.parquet",
    columns(
        "model language seed dose accuracy? layer layer_name first second mutual_information "
        "as_printed permuted",
        mutual_information=OF_PAIR,
        **OF_FILE,
    ),
)
GIVEN_LAYERS = Kind(
    "given_layers",
    "One row per model and layer of activations of your own: means of both measures. `language` "
    "is the group.",
    f"{OF_GROUP}/layers.parquet",
    columns(
        f"model language seed dose accuracy? layer layer_name n_samples copies {MEASURED}",
        **OF_FILE,
    ),
)
GIVEN_SCORES = Kind(
    "given_scores",
    "One row per model and score: what orders the models of a group. `language` is the group.",
    f"{OF_GROUP}/scores.parquet",
    columns("model language seed score value", model=OF_FILE["model"]),
)
GIVEN_ASSOCIATIONS = Kind(
    "given_associations",
    "One row per pair of scores: whether they order the models of a group alike. `language` is "
    "the group.",
    f"{OF_GROUP}/associations.parquet",
    columns(
        "language score other n_models n_seeds tau tau_lower tau_upper p_value pearson "
        "pearson_lower pearson_upper slope slope_lower slope_upper"
    ),
)
RUN_OF_ENCODER = "model language size seed variant"
OF_WORDS = {
    "accuracy": "float: share of right labels, of texts with the word that is shown",
    "accuracy_agrees": "float: the same, where the word is that of the right label",
    "accuracy_disagrees": "float: the same, where the word is that of a wrong label",
    "share": "float: alpha, the share of the training texts whose inserted word is that of their "
    "label, where all others have a random one; beta, the share whose labels are permuted; or, of "
    "random words, whether training texts have any, 0 or 1",
    "intervention": "str: markers (words), shuffled answers (labels), or random markers: the "
    "placebo, random words against none",
    "position": "str: cls (the first token) or mean (over the tokens)",
    "place": "str: residual, the stream after a block",
}
LABELLED = Kind(
    "labelled",
    "One row per text that encoders are trained or evaluated on.",
    f"{OF_STUDY}/labelled.parquet",
    columns("string_id text label group word"),
)
ENCODER_ANSWERS = Kind(
    "encoder_answers",
    "One row per evaluated text: the labels that an encoder gives.",
    f"{OF_ENCODER}/answers.parquet",
    columns(
        f"""
        {RUN_OF_ENCODER} string_id label group shown given given_agrees given_disagrees
        given_without
        """,
        given="str: the label that the model gives to the text with the word that is shown",
    ),
)
ENCODER_RUNS = Kind(
    "encoder_runs",
    "One row per encoder that is fine-tuned: how it fits, and norms of its weight matrices.",
    f"{OF_ENCODER}/run.parquet",
    columns(f"{RUN_OF_ENCODER} n_layers fitted two_norm frobenius"),
)
ENCODER_SCORES = Kind(
    "encoder_scores",
    "One row per encoder, layer and position: accuracies, gaps between groups, norms, and what a "
    "linear probe of the activations tells.",
    f"{OF_STUDY}/scores.parquet",
    columns(
        f"{RUN_OF_ENCODER} intervention share n_layers layer place position n_answers "
        f"{' '.join(ENCODER_NUMBERS)}",
        **OF_WORDS,
    ),
)
ENCODERS = Kind(
    "encoders",
    "One row per encoder, layer and position: means of both measures, and all of `encoder_scores`.",
    f"{OF_STUDY}/encoders.parquet",
    columns(
        f"{RUN_OF_ENCODER} intervention share n_layers layer place position {MEASURED} n_answers "
        f"{' '.join(ENCODER_NUMBERS)}",
        **OF_WORDS,
    ),
)
OF_ENCODER_RUN = (ENCODER_ANSWERS, ENCODER_RUNS)
OF_GIVEN = (GIVEN_NEURONS, GIVEN_PAIRS, GIVEN_LAYERS, GIVEN_SCORES, GIVEN_ASSOCIATIONS)
# Outputs of a trained model; measures of its neurons; and the tables that the comparison of runs
# reads in addition to datasets and traces
OF_MODEL = (ACTIVATIONS, ANSWERS, NORMS)
OF_NEURONS = (NEURONS, PAIRS)
COMPARED = (ANSWERS, NORMS, *OF_NEURONS)
KINDS = kinds_in(globals())
