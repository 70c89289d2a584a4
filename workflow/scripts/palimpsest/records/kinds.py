"""Kinds of tables of the section `records`.

In paths, `language` is the name of a corpus, or of a table of losses.
"""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

OF_CORPUS = "results/records/{language}"
# Verdicts of intervals
MEMORISED, NOT_MEMORISED = "memorised", "not memorised"
UNDECIDED, OUTSIDE = "undecided", "outside"

columns = SHARED.extended("""
id str: name of the record
group str: name of the record's group; records of a group are not independent
trained bool?: whether the model was trained on the record; null: unknown
checkpoint float: when the record was measured: an epoch, or 0 for a checkpoint of the user's
loss float: the model's loss of the record at the last checkpoint: nats per token, bits per byte, or
    the unit of the user's table
threshold float: the record is memorised if its loss is below
score float: how far the loss is below the threshold, from 0 to 1
memorised bool: whether the score is above 0
share_unseen float?: share of the records never trained on that the same measure calls memorised:
    the placebo; null: there are none
p_value float?: share of the records never trained on, with this one, that are as far below their
    threshold; null: there are none
p_corrected float?: p_value of a record trained on, corrected for the number of these (Benjamini and
    Hochberg), by model, seed and measure; null: never trained on, or without a p_value
n_trained int: records on which the model was trained
n_unseen int: records on which it was not
share_trained float: share of the records on which the model was trained that are called memorised
difference float?: share_trained − share_unseen; null without a placebo
lower float?: lower end of the 95 % interval of the difference, over groups; null without a placebo,
    and in a loss attack if detected is null
upper float?: its upper end; null likewise
detected float?: share of the records on which the model was trained whose p-value is at most
    records/false_alarms; null without a placebo, or with one too small for such a p-value
detected_lower float?: lower end of the 95 % interval of detected, over groups of both sides; null
    likewise
detected_upper float?: its upper end; null likewise
detected_unseen float?: the same of the records on which it was not, at most records/false_alarms;
    null likewise
blind float?: AUC by which the words and letters of the records alone, without a model, tell those
    trained on from the others; 0.5: they are alike; null: there are no texts, or too few of a kind
blind_lower float?: lower end of its 95 % interval, over groups; null likewise
blind_upper float?: its upper end; null likewise
""")
OF_A_MODEL = "language model"
RETRAINED = Kind(
    "retrained_losses",
    "One row per record, seed and epoch: losses under a model, and under the same model trained "
    "without the record.",
    f"{OF_CORPUS}/{{recipe}}/{{model}}/losses.parquet",
    columns(
        f"{OF_A_MODEL} seed id group trained checkpoint loss loss_without",
        loss="float: the model's loss of the record, nats per token",
        loss_without="float?: the same under a model that was trained without the record's fold; "
        "of a record never trained on, without some fold; null: no model was trained without it",
    ),
)
MEASURED = Kind(
    "measured_losses",
    "One row per record: losses under a checkpoint that is only asked; in the path, `model` is its "
    "name in the configuration.",
    f"{OF_CORPUS}/checkpoints/{{model}}.parquet",
    columns(
        f"{OF_A_MODEL} id group trained checkpoint loss loss_reference",
        loss="float: the model's loss of the record, bits per byte",
        loss_reference="float?: the reference model's; null: no reference is named",
    ),
)
MEASURE = "measure evidence"
ANSWERS_OF = (
    f"{OF_A_MODEL} seed? id group trained {MEASURE} loss threshold score memorised p_value "
    "p_corrected share_unseen"
)
OF_ROADS = {
    "seed": "int?: seed of the training; null for a model that Palimpsest did not train",
    "evidence": "str: what the threshold rests on: constant, retraining, reference model, or "
    "unseen (records, in the loss attack)",
}
ANSWERS = Kind(
    "record_answers",
    "One row per record, model, seed and measure: whether the record is memorised.",
    f"{OF_CORPUS}/answers.parquet",
    columns(ANSWERS_OF, **OF_ROADS),
)
SHARES = Kind(
    "record_shares",
    "One row per model, seed and measure: the share of records called memorised, of those trained "
    "on and of those never trained on.",
    f"{OF_CORPUS}/shares.parquet",
    columns(
        f"{OF_A_MODEL} seed? {MEASURE} n_trained n_unseen share_trained share_unseen difference "
        "lower upper detected detected_lower detected_upper detected_unseen blind blind_lower "
        "blind_upper",
        **OF_ROADS,
    ),
)
CONFORMAL = Kind(
    "conformal_records",
    "One row per record, model and seed, of records without which no model was trained: an "
    "interval of their loss without training on them, minus their loss.",
    f"{OF_CORPUS}/conformal.parquet",
    columns(
        f"{OF_A_MODEL} seed? id group trained loss lower upper verdict level limit n_known "
        "n_known_unseen shift",
        seed=OF_ROADS["seed"],
        trained="bool: whether the model was trained on the record; those on which it was not are "
        "the placebo",
        lower="float?: lower end of the interval, in the unit of the losses; null: the record is "
        "unlike all whose value is known",
        upper="float?: its upper end; null likewise",
        verdict="str: memorised (the interval is above the limit), not memorised (it is not above "
        "it), undecided, or outside (without an interval)",
        level="float: share of the records whose interval has the value, if those with a known "
        "value are a random part",
        limit="float: what chance gives: of the records never trained on, all but a share of "
        "records/false_alarms have a lower value; 0 if too few are known",
        n_known="int: trained records with a known value",
        n_known_unseen="int: records never trained on with a known value",
        shift="float?: AUC by which records with and without a known value are told apart by "
        "their losses; 0.5: they are alike; null: too few",
    ),
)
RECORDS = Kind(
    "records",
    "The tables `record_answers` of all corpora, one after another.",
    "results/records.parquet",
    columns(ANSWERS_OF, **OF_ROADS),
)
AS_CSV = "results/records.csv"  # the table `records` for other programs
KINDS = kinds_in(globals())
