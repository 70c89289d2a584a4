"""The figures of unlearning.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.figures.figure import Figure
from palimpsest.unlearning import kinds

PAPER = "Are we making progress in unlearning?"
FIGURES = (
    Figure(
        name="unlearning_gaps",
        chapter="unlearning",
        title="How far methods go towards retraining",
        caption=(
            "The share of the gap between original and retrained models that every unlearning "
            "method closes in the loss of the forget strings: 0 is doing nothing, 1 is retraining, "
            "and beyond 1 a string is predicted worse than by models that never saw it. See how "
            "near the large markers are to 1, how widely the dots of single strings lie around "
            "them, and whether the hollow markers of unseen strings (circles) and of strings to "
            "be retained (squares) are where those of retraining are."
        ),
        numbers="",
        paper=PAPER,
        tables=(
            kinds.GAPS,
            kinds.GAP_SUMMARY,
        ),
        draw="palimpsest.unlearning.figures.gaps:unlearning_gaps",
    ),
    Figure(
        name="unlearning_memorisation",
        chapter="unlearning",
        title="Forgotten under which measure",
        caption=(
            "The share of forget strings that is memorised before unlearning (light) and after "
            "unlearning (dark), with a panel per measure of memorisation and the number of strings "
            "that the measure can answer for; unlearning should reach the dashed line of models "
            "that never saw the strings. See whether a method's dark bars end at the dashed line "
            "in every panel, and whether the thin grey bars of strings that no model was trained "
            "on are as long as that of retraining."
        ),
        numbers="",
        paper=PAPER,
        tables=(kinds.MEMORISATION,),
        draw="palimpsest.unlearning.figures.memorisation:unlearning_memorisation",
    ),
    Figure(
        name="unlearning_scores",
        chapter="unlearning",
        title="How well methods forget",
        caption=(
            "The forgetting quality of every unlearning method, and its final score, which also "
            "counts the accuracy or the probability lost on other strings; retraining is at the "
            "top, doing nothing at the bottom. See how far a method is from the grey strip, where "
            "models with exchanged labels are, and how far its marker moves to the left in the "
            "further panels: that is the cost of forgetting (the strip is the mean of the bands of "
            "single problems, so to be inside it is no test)."
        ),
        numbers="4 and 5",
        paper=PAPER,
        tables=(
            kinds.SUMMARY,
            kinds.SCORES,
            kinds.TESTS,
        ),
        draw="palimpsest.unlearning.figures.scores:unlearning_scores",
    ),
    Figure(
        name="unlearning_tradeoff",
        chapter="unlearning",
        title="Forgetting against keeping the rest",
        caption=(
            "The forgetting quality of every method against what it keeps on retained and on test "
            "strings, as a share of what retrained models have: the accuracy (top) and the "
            "probability of tokens (bottom). See which methods are at the upper right, and which "
            "are below the dashed line: these pay for forgetting, often in probability before "
            "any token is predicted wrongly."
        ),
        numbers="12",
        paper=PAPER,
        tables=(kinds.SCORES,),
        draw="palimpsest.unlearning.figures.scores:unlearning_tradeoff",
    ),
    Figure(
        name="unlearning_curves",
        chapter="unlearning",
        title="What happens while methods run",
        caption=(
            "The share of the gap closed while a method runs, and the losses of retained and of "
            "unseen strings relative to their start, with a panel per method and a vertical line "
            "where a phase ends. See whether a method passes 1 and should have stopped before, and "
            "whether a later phase repairs what the first one broke."
        ),
        numbers="",
        paper=PAPER,
        tables=(kinds.STAGES,),
        draw="palimpsest.unlearning.figures.stages:unlearning_curves",
        some_empty=(kinds.STAGES,),
    ),
    Figure(
        name="unlearning_relearning",
        chapter="unlearning",
        title="How fast what was forgotten comes back",
        caption=(
            "The loss of the forget strings while unlearned models are trained on them again, "
            "beside that of retrained models (left), and the loss after the weights are rounded to "
            "4 bits, against that with full weights (right). See whether a method falls like the "
            "dashed curve of retraining or like the dotted curve of the original models, which "
            "never forgot, and which methods are below the diagonal: there, rounding brings "
            "strings back."
        ),
        numbers="",
        paper=PAPER,
        tables=(kinds.STAGES,),
        draw="palimpsest.unlearning.figures.stages:unlearning_relearning",
        some_empty=(kinds.STAGES,),
    ),
    Figure(
        name="unlearning_stitching",
        chapter="unlearning",
        title="Methods put together from two others",
        caption=(
            "The forgetting quality and the final score of methods that forget with the first "
            "phase of one method and repair with that of another, beside these two methods. See "
            "whether the filled marker is to the right of both hollow markers below it: then the "
            "phases are better together than in the methods they are from."
        ),
        numbers="16",
        paper=PAPER,
        tables=(kinds.SUMMARY,),
        draw="palimpsest.unlearning.figures.stitching:unlearning_stitching",
    ),
    Figure(
        name="unlearning_histograms",
        chapter="unlearning",
        title="Confidence in single strings",
        caption=(
            "The confidence of single unlearned models in the hardest, the median and the easiest "
            "forget string (rows), with a column per method, over the confidence of retrained "
            "models. See where two histograms do not overlap, so that one model gives away that it "
            "was unlearned, and where they differ only in their width."
        ),
        numbers="18",
        paper=PAPER,
        tables=(
            kinds.CONFIDENCES,
            kinds.HARDNESS,
        ),
        draw="palimpsest.unlearning.figures.confidences:unlearning_histograms",
    ),
    Figure(
        name="unlearning_epsilons",
        chapter="unlearning",
        title="Epsilon of the forget strings",
        caption=(
            "The distribution of epsilon over the forget strings, with a panel per method: "
            "epsilon is 0 if unlearned and retrained models treat the string alike, and larger if "
            "an attack can tell them apart better. See how many strings are to the right of the "
            "dotted line, where a string has no points, and whether a method fails a little on "
            "all strings or completely on some of them."
        ),
        numbers="13",
        paper=PAPER,
        tables=(
            kinds.EPSILONS,
            kinds.SCORES,
        ),
        draw="palimpsest.unlearning.figures.epsilons:unlearning_epsilons",
    ),
    Figure(
        name="unlearning_hardness",
        chapter="unlearning",
        title="Strings that are hard to forget",
        caption=(
            "The epsilon of each forget string summed over the methods, ranked (left), and "
            "against what training on the string had changed (right), for every seed. See whether "
            "the bars rise, so that some strings are hard for every method, and whether the hard "
            "strings are those that had helped the model most."
        ),
        numbers="14",
        paper=PAPER,
        tables=(kinds.HARDNESS,),
        draw="palimpsest.unlearning.figures.epsilons:unlearning_hardness",
    ),
    Figure(
        name="unlearning_agreement",
        chapter="unlearning",
        title="Whether methods find the same strings hard",
        caption=(
            "The rank correlation of the epsilons of two methods over the forget strings, for "
            "every pair of methods; similar methods are next to each other. If all squares have "
            "one colour, the strings decide what is hard to forget; if the squares form blocks, "
            "the methods decide."
        ),
        numbers="15",
        paper=PAPER,
        tables=(kinds.AGREEMENT,),
        draw="palimpsest.unlearning.figures.others:unlearning_agreement",
    ),
    Figure(
        name="unlearning_metrics",
        chapter="unlearning",
        title="Other metrics and the forgetting quality",
        caption=(
            "Other measures of forgetting from the literature against the forgetting quality, "
            "with a marker per method; the dashed line is the value of retrained models. See "
            "whether the markers near the dashed line are also at the right: if not, the metric "
            "says that strings are forgotten while an attack on single strings still finds them."
        ),
        numbers="6 and 17",
        paper=PAPER,
        tables=(
            kinds.METRICS,
            kinds.SUMMARY,
        ),
        draw="palimpsest.unlearning.figures.others:unlearning_metrics",
    ),
    Figure(
        name="unlearning_effects",
        chapter="unlearning",
        title="What the forgetting quality depends on",
        caption=(
            "The forgetting quality when attacks are judged on the models they were fitted on and "
            "when they are judged on other models, and with growing numbers of models, of models "
            "in the pool of the bootstrap, and of repetitions. See how far the values move, and "
            "whether the order of the methods stays the same: only the order matters for "
            "comparing methods."
        ),
        numbers="19 to 21",
        paper=PAPER,
        tables=(kinds.EFFECTS,),
        draw="palimpsest.unlearning.figures.others:unlearning_effects",
    ),
    Figure(
        name="unlearning_bootstrap",
        chapter="unlearning",
        title="Fresh models and bootstrap samples",
        caption=(
            "The confidence of unlearned and of retrained models in one forget string: in halves "
            "of all models (top), and in samples with replacement from one of these halves "
            "(bottom). See whether the histograms of the two rows differ more than those within a "
            "row: if not, the bootstrap can stand in for fresh models."
        ),
        numbers="22",
        paper=PAPER,
        tables=(
            kinds.CONFIDENCES,
            kinds.HARDNESS,
        ),
        draw="palimpsest.unlearning.figures.confidences:unlearning_bootstrap",
    ),
)
