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
# Statistics of the table `detectors`, and the number of copies of a row about all records
RECALL, PRECISION, FALSE_ALARMS = "recall", "precision", "false alarms"
EPSILON = "replacement epsilon"
ALL_COPIES = 0
ATTACK, BY_EXTRACTION = "attack", "extraction"  # families of detectors; retraining is another one
UNSEEN = "unseen"  # the side of records that a target was not trained on
URL = "url"  # a kind of private information; alone it does not count: most are of a public page
OF_ALL, OF_RECITED = "of all", "of recited"
OF_TARGET = "results/audit/{language}/{model}"

columns = SHARED.extended("""
id str: name of the record
group str: name of the record's group; records of a group are not independent
trained bool?: whether the target was trained on the record; null: unknown
role str: target, or the name of a reference
version str: text (the record's own), lowercase, neighbours (changed in a few words), prefixed
    (after records that the target was not trained on, whose groups have no such rows) or secrets
    (up to the last digit, place 0 with its own digits, the others with drawn ones)
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
n_duplicates int: records that are said to be no members and nearly are one: left out
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
duplicate bool: whether the record is said to be no member and nearly is one; then it is left out of
    all curves, shares and placebos
private str?: kinds of private information of which the continuation has half of the letters or
    more: email, phone, card, iban, ssn, ip, url; null: none
verbatim bool?: whether greedy decoding gives such letters one by one, of a url not counted; null:
    there are none, or the target's tokenizer does not give back letters from tokens
category str: pattern (repeated or compressible), common (a licence or another widely copied text),
    code or other; by rules of thumb
span str: the longest part of the continuation that greedy decoding gives letter by letter,
    anywhere; empty if these letters are not known
span_letters int: its length in letters
log10_samples float: decimal logarithm of the number of samples after the prompt, at temperature 1,
    among which the continuation is with a probability of 0.5; 0 if one is enough
decoding str: greedy, or sampling (n samples, one of which is the continuation)
samples int?: n of (n, p)-discoverable extraction; null: greedy decoding
probability float?: its p, the least probability that the continuation is among n samples; null
    likewise
family str: attack (on membership), extraction, or retraining
detector str: an attack; greedy (share of the continuation's tokens that come out; with a slash and
    a reference, how much more than of it), longest span, (n, p), or a measure of memorisation
rate float?: share of records never trained on that may be found by mistake; it sets the threshold;
    null: epsilon needs none
copies int: how often the members are in the training data; 0: all records together
n int: records of the row: members, or records never trained on for false alarms; for epsilon,
    guesses about pairs
n_found int: those of them whose score is above the threshold; for epsilon, guesses that are right
n_records int: records of the side that are long enough for a continuation
n_extracted int: those of them whose whole continuation the model gives, token by token
share float: n_extracted / n_records
value float?: the statistic; null: too few groups of records never trained on for so few false
    positives
lower float?: lower end of its 95 % interval, over groups of records; null likewise, and if the
    members or the others are of one group
upper float?: its upper end
""")
PASSES = Kind(
    "audit_passes",
    "One row per record, model and version of its text: what the model says of every token.",
    f"{OF_TARGET}/passes.parquet",
    columns(
        """
        language model role version place id group trained duplicate log_probs means deviations
        ranks ends
        """
    ),
)
CONTINUATIONS = Kind(
    "audit_continuations",
    "One row per record and model: the continuation of the record's beginning, as greedy decoding "
    "gives it, beside the true one. Secrets are not masked: do not hand on the folder `raw`.",
    f"{OF_TARGET}/raw/continuations.parquet",
    columns(
        """
        language model role id group trained duplicate prompt continuation generated n_tokens
        n_right n_generated nll
        """,
        generated="str?: the same number of tokens by greedy decoding from the prompt, or fewer if "
        "the model ends its text; null: the model's tokenizer does not give back the true "
        "continuation from its tokens",
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
    columns("language model attack id group trained duplicate score"),
)
ROC = Kind(
    "attack_roc",
    "One row per attack and statistic of its ROC curve.",
    f"{OF_TARGET}/roc.parquet",
    columns("language model attack n_members n_unseen n_duplicates statistic value lower upper"),
)
RECITED = Kind(
    "recited",
    "One row per record whose continuation the target recites, and reference: how the reference "
    "model continues it. Of private information, kind and length are shown, unless "
    "audit/show_secrets.",
    f"{OF_TARGET}/recited.parquet",
    columns(
        """
        language model reference id group trained prompt continuation accuracy accuracy_reference
        forced forced_reference bits_per_byte bits_per_byte_reference zlib category duplicate
        private
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
EXTRACTED = Kind(
    "extracted",
    "One row per record and model: how near the record's continuation is to being extracted.",
    f"{OF_TARGET}/raw/extracted.parquet",
    columns(
        "language model role id group trained duplicate n_tokens accuracy log10_samples span "
        "span_letters",
        accuracy="float: share of the tokens of the continuation that greedy decoding gives right; "
        "1: extracted",
        n_tokens="int: tokens of the continuation, of the model's own tokenizer",
    ),
)
EXTRACTION = Kind(
    "extraction_shares",
    "One row per model, side and way of decoding: how many continuations come out token by token.",
    f"{OF_TARGET}/extraction.parquet",
    columns(
        """
        language model role side decoding samples probability n_records n_extracted share lower
        upper
        """,
        lower="float: lower end of its 95 % interval (Clopper and Pearson), over groups of records",
        upper="float: its upper end",
    ),
)
DETECTORS = Kind(
    "detectors",
    "One row per detector, share of false alarms, statistic and number of copies: what it finds of "
    "records whose truth is known.",
    f"{OF_TARGET}/detectors.parquet",
    columns(
        "language model family detector rate statistic copies n n_found value lower upper",
        statistic="str: recall, precision (if there are as many members as others), false alarms, "
        "or replacement epsilon (the privacy loss where the other record of its pair replaces a "
        "member with its copies, from one model; that of adding or removing it is at least half)",
        value="float?: the statistic; null: too few groups never trained on, a precision of "
        "nothing found, or epsilon, of which only a lower bound is known",
        lower="float?: lower end of its 95 % interval (exact), over groups of records; of "
        "epsilon, the bound with a confidence of 95 %; null: too few groups never trained on",
        upper="float?: its upper end; null likewise, and for epsilon",
    ),
)
OF_EXTRACTION = (EXTRACTED, EXTRACTION)
OF_ATTACKS = (SCORES, ROC)
PRIVATE = Kind(
    "private_shares",
    "One row per side and statistic: how many records hold private information.",
    f"{OF_TARGET}/private.parquet",
    columns(
        "language model n_duplicates side n_records n_recited statistic value lower upper",
        n_records="int: records of the side that were to be continued",
        statistic="str: of all (share of these records that hold private information, other than a "
        "url), or of recited (the same of those that the target recites)",
        value="float?: the share; null: no record is recited",
        lower="float?: lower end of its 95 % interval, over groups of records; null likewise",
    ),
)
FINDINGS = Kind(
    "audit_findings",
    "One row per record that the target recites; first those that matter. Of private information, "
    "kind and length are shown, unless audit/show_secrets.",
    f"{OF_TARGET}/findings.parquet",
    columns(
        """
        language model id group trained duplicate matters private verbatim reference? accuracy
        accuracy_reference? explained bits_per_byte category prompt continuation
        """,
        matters="bool: whether the record holds private information other than a url, no reference "
        "recites it as well, and it is not known that the target was never trained on it",
        reference="str?: the reference that recites most of it; null: there is no reference",
        accuracy_reference="float?: its share of the tokens of the continuation; null likewise",
        explained="bool?: whether this is as much as the target gives, or more; null likewise",
    ),
)
COPIES = {"csv": f"{OF_TARGET}/findings.csv", "json": f"{OF_TARGET}/findings.json"}
OF_ASKING = (PASSES, CONTINUATIONS)
OF_RECITING = (PRIVATE, FINDINGS, RECITED, EXPLAINED)
KINDS = (*kinds_in(globals()), *checkpoints.KINDS)
