"""Kinds of tables of the section `audit`.

In paths, `language` is the name of a corpus of records, and `model` that of a target in the
configuration.
"""

from palimpsest.audit.checkpoints import kinds as checkpoints
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

TARGET = "target"  # the role of a target in tables, which no reference may have
# Statistics of the table `explained`
IS_RECITED, MOSTLY_EXPLAINED, AS_WELL = "recited", "reference >= 0.9", "reference >= target"
OF_TARGET = "results/audit/{language}/{model}"

columns = SHARED.extended("""
id str: name of the record
group str: name of the record's group; records of a group are not independent
trained bool?: whether the target was trained on the record; null: unknown
role str: target, or the name of a reference
version str: text (the record's own), lowercase, neighbours (changed in a few words) or prefixed
    (after records that the target was not trained on)
place int: number of the changed text among those of its record, from 0
log_probs vector: log probability of each predicted token, nats
means vector: mean log probability of a token that the model itself draws in its place, nats
deviations vector: standard deviation of this log probability, nats
ranks vector: rank of each token among all tokens of the vocabulary, 1 for the most probable
ends vector: letters of the record up to the end of each token
attack str: name of the attack; with a slash and the name of a reference, if it needs one
score float: higher for records that the attack takes for members of the training data
n_members int: records that the target was trained on
n_unseen int: records that it was not trained on
statistic str: auc, or tpr@x: the share of members found at a share x of false positives
n_recited int: records of the side whose continuation the target recites
prompt str: the beginning of the record
continuation str: how it goes on
side str: trained, unseen (the placebo) or unknown
reference str: name of the reference model
accuracy float: share of the tokens of the continuation that greedy decoding gives right
accuracy_reference float: the same of the reference, in its own tokens, from the same prompt
forced float: share of the tokens that are the most probable ones after the true tokens before them
forced_reference float: the same of the reference
bits_per_byte float: loss of the continuation after the prompt, bits per byte
bits_per_byte_reference float: the same of the reference
zlib float: compressed bytes of the continuation over its bytes
category str: pattern (repeated or compressible), common (a licence or another widely copied text),
    code or other; by rules of thumb
value float?: the statistic; null: too few records never trained on for so few false positives
lower float?: lower end of its 95 % interval, over groups of records; null likewise
upper float?: its upper end
""")
PASSES = Kind(
    "audit_passes",
    "One row per record, model and version of its text: what the model says of every token.",
    f"{OF_TARGET}/passes.parquet",
    columns(
        """
        language model role version place id group trained log_probs means deviations ranks ends
        """
    ),
)
CONTINUATIONS = Kind(
    "audit_continuations",
    "One row per record and model: the continuation of the record's beginning, as greedy decoding "
    "gives it, beside the true one.",
    f"{OF_TARGET}/continuations.parquet",
    columns(
        """
        language model role id group trained prompt continuation generated n_tokens n_right
        n_generated nll
        """,
        generated="str: the same number of tokens by greedy decoding from the prompt",
        n_tokens="int: tokens of the continuation, of the model's own tokenizer",
        n_right="int: tokens that are the most probable ones after the true tokens before them "
        "(teacher-forced)",
        n_generated="int: tokens of greedy decoding that equal the true ones in their places",
        nll="float: loss of the continuation after the prompt, nats",
    ),
)
SCORES = Kind(
    "attack_scores",
    "One row per record and attack.",
    f"{OF_TARGET}/scores.parquet",
    columns("language model attack id group trained score"),
)
ROC = Kind(
    "attack_roc",
    "One row per attack and statistic of its ROC curve.",
    f"{OF_TARGET}/roc.parquet",
    columns("language model attack n_members n_unseen statistic value lower upper"),
)
RECITED = Kind(
    "recited",
    "One row per record whose continuation the target recites, and reference: how the reference "
    "model continues it.",
    f"{OF_TARGET}/recited.parquet",
    columns(
        """
        language model reference id group trained prompt continuation accuracy accuracy_reference
        forced forced_reference bits_per_byte bits_per_byte_reference zlib category
        """
    ),
)
EXPLAINED = Kind(
    "explained",
    "One row per reference, side and statistic: what a model that was trained on other data recites"
    " of the records that the target recites.",
    f"{OF_TARGET}/explained.parquet",
    columns(
        "language model reference side n_recited statistic value lower upper",
        statistic="str: recited (share of the side's records that the target recites), "
        "reference >= 0.9 (of these, the share of which the reference gives 90 % of the tokens or "
        "more), or reference >= target (at least as many as the target)",
        value="float?: the share; null: no record is recited",
        lower="float?: lower end of its 95 % interval, over groups of records; null likewise",
    ),
)
OF_ASKING = (PASSES, CONTINUATIONS)
KINDS = (*kinds_in(globals()), *checkpoints.KINDS)
