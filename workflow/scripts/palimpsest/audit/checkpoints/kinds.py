"""Kinds of tables on checkpoints that another program saved.

In paths, `language` is the name of a corpus of records, and `model` that of a checkpoint or of a
set of checkpoints in the configuration.
"""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Document, Kind, kinds_in

# Versions of an answer
ANSWER, PARAPHRASED, PERTURBED = "answer", "paraphrased", "perturbed"
FORGET, RETAIN, HOLDOUT = "forget", "retain", "holdout"
ORIGINAL, RETRAINED, UNLEARNED = ROLES = ("original", "retrained", "unlearned")
ALL_MODELS = "all"  # in place of the name of one model
OF_CHECKPOINT = "results/audit/{language}/checkpoints/{model}"
OF_SET = "results/audit/{language}/{model}"

columns = SHARED.extended("""
id str: name of the record
group str: name of the record's group; records of a group are not independent
split str: train, test, holdout, forget or retain
version str: answer, paraphrased (another answer that says the same) or perturbed (a false answer)
place int: number of the answer among those of its record and version, from 0
answer str: the answer
predicted str: what is predicted of the answer, decoded from its tokens
generated str?: how greedy decoding answers; null: of a paraphrased or perturbed answer
log_probs vector: log probability of each token of the answer, and of the end token, nats
means vector: mean log probability of a token that the model itself draws in its place, nats
deviations vector: standard deviation of this log probability, nats
ranks vector: rank of each token among all tokens of the vocabulary, 1 for the most probable
loss float: nats per token of the answer, with the end token
probability float: exp(-loss), the geometric mean of the tokens' probabilities
rouge_l_recall float: words of the answer in the longest common subsequence with the generated one,
    over all its words, after stemming
exact_match float: 1 if the generated answer is the answer, else 0
exact_memorisation float: share of the answer's tokens that are the most probable ones
extraction_strength float: share of the answer's tokens that follow greedily from the true tokens
    before them up to the end
truth_ratio float?: probability of the false answers over that of the true one; null: the record has
    no false answers
zlib float: minus the loss over the bytes of the compressed answer, as far as it is predicted
min_k float: mean log probability of the least probable 40 % of the answer's tokens, nats
min_k_plus float: the same of log probabilities that are standardised by the model's own draws
checkpoint str: name of the model
role str: original, retrained or unlearned
metric str: name of the mean
value float: the value
lower float?: lower end of its 95 % interval; null: too little is known for one
upper float?: its upper end; null likewise
n_records int: records that count
share float?: share of the gap closed; null: the gap is not clear, or the model is the only one of
    its role, and there is nothing to compare it with
against str: name of the retrained model that this one is compared with
p_value float: of the Kolmogorov-Smirnov test that both models have the same truth ratios
distance float: largest distance of their distribution functions
attack str: loss, zlib, min_k or min_k_plus
statistic str: what is compared
""")
ANSWERS = Kind(
    "checkpoint_answers",
    "One row per answer to a record's prompt: what a checkpoint says of every token of it. Secrets "
    "are not masked: do not hand on the folder `raw`.",
    f"{OF_CHECKPOINT}/raw/answers.parquet",
    columns(
        """
        language model id group split version place answer predicted generated log_probs means
        deviations ranks
        """
    ),
)
SCORES = Kind(
    "checkpoint_scores",
    "One row per record: how well a checkpoint knows its answer.",
    f"{OF_CHECKPOINT}/scores.parquet",
    columns(
        """
        language model id group split n_tokens loss probability rouge_l_recall exact_match
        exact_memorisation extraction_strength truth_ratio zlib min_k min_k_plus
        """,
        n_tokens="int: tokens of the answer, with the end token",
    ),
)
METRICS = Kind(
    "checkpoint_metrics",
    "One row per checkpoint of a set, split and metric: a mean over records.",
    f"{OF_SET}/metrics.parquet",
    columns("language model checkpoint role split metric value lower upper n_records"),
)
GAPS = Kind(
    "checkpoint_gaps",
    "One row per checkpoint and records: how far it is on the way from the original to the "
    "retrained models, as a share of the gap of the forget records.",
    f"{OF_SET}/gaps.parquet",
    columns(
        """
        language model checkpoint role split share lower upper n_records n_original n_retrained
        original_loss retrained_loss
        """,
        checkpoint="str: name of the model, or `all`: the unlearned models together",
        n_original="int: original models from which the gap begins, without the model itself",
        n_retrained="int: retrained models to which it leads, without the model itself",
        original_loss="float: mean loss of the forget records under all original models, nats per "
        "token",
        retrained_loss="float: the same under all retrained models",
    ),
)
FORGET_QUALITY = Kind(
    "checkpoint_forget_quality",
    "One row per checkpoint and retrained model: TOFU's forget quality.",
    f"{OF_SET}/forget_quality.parquet",
    columns("language model checkpoint role against p_value distance n_records"),
)
MEMBERSHIP = Kind(
    "checkpoint_membership",
    "One row per checkpoint, attack and statistic: how well the attack tells forget records from "
    "records never trained on.",
    f"{OF_SET}/membership.parquet",
    columns(
        "language model checkpoint role attack statistic value? lower upper",
        statistic="str: auc, or tpr@x: the share of forget records found at a share x of false "
        "positives",
        value="float: the statistic; null: too few groups of records never trained on for so few "
        "false positives",
    ),
)
TOLD_APART = Kind(
    "checkpoint_tests",
    "One row per statistic: whether the unlearned models of a set can be told from the retrained "
    "ones. Without rows, there are fewer than four of either.",
    f"{OF_SET}/tests.parquet",
    columns(
        "language model side statistic value p_value? attainable? n_unlearned n_retrained",
        side="str: unlearned, or placebo: one half of the retrained models takes their place",
        statistic="str: mean_difference (of the logit-scaled confidence of the forget records), "
        "joint_errors (share of the models whose kind an attacker on all records tells wrongly) or "
        "epsilon_bound (share of the forget records whose epsilon is above 0 with 95 % confidence)",
        p_value="float: by relabelling the models; null: a bound needs none",
        attainable="float: the largest bound that so many models can show; null: not a bound",
        n_unlearned="int: unlearned models, or those in their place",
        n_retrained="int: retrained models that they are compared with",
    ),
)
OF_MODELS = (ANSWERS, SCORES)
OF_SETS = (METRICS, GAPS, FORGET_QUALITY, MEMBERSHIP, TOLD_APART)
OPEN_UNLEARNING = Document("open_unlearning", f"{OF_SET}/open_unlearning.json")
KINDS = kinds_in(globals())
