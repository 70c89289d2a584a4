"""The figures of unlearning.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.figures.figure import Figure
from palimpsest.unlearning import kinds

PAPER = "Are we making progress in unlearning?"
FIGURES = (
    Figure(
        name="unlearning_scores",
        chapter="unlearning",
        title="How well methods forget",
        caption=(
            "The forgetting quality of every unlearning method, and its final score, which also "
            "counts the accuracy lost on other strings; retraining is at the top, doing nothing "
            "at the bottom. See how near a method comes to the dashed line, which is the mean of "
            "retraining itself, and how far its marker moves to the left from the first panel to "
            "the second: that is the cost of forgetting."
        ),
        numbers="4 and 5",
        paper=PAPER,
        tables=(
            kinds.SUMMARY,
            kinds.SCORES,
        ),
        draw="palimpsest.unlearning.figures.scores:unlearning_scores",
    ),
    Figure(
        name="unlearning_memorisation",
        chapter="unlearning",
        title="Forgotten under which measure",
        caption=(
            "The share of the forget strings that is memorised before unlearning, after "
            "unlearning, and by models that never saw the strings, with a panel per measure of "
            "memorisation; unlearning should reach the dashed line, not 0, because some retrained "
            "models are below a threshold by chance. See whether a method's bars end at the "
            "dashed line in all panels or only under recollection: then the strings are no longer "
            "recited, but what the model gained from them is still there."
        ),
        numbers="",
        paper=PAPER,
        tables=(kinds.MEMORISATION,),
        draw="palimpsest.unlearning.figures.memorisation:unlearning_memorisation",
    ),
    Figure(
        name="unlearning_tradeoff",
        chapter="unlearning",
        title="Forgetting against keeping the rest",
        caption=(
            "The forgetting quality of every method against its accuracy on the retained and on "
            "the test strings, as a share of the accuracy of retrained models. See which methods "
            "are at the upper right, and which are below the dashed line: these pay for "
            "forgetting with accuracy."
        ),
        numbers="12",
        paper=PAPER,
        tables=(kinds.SCORES,),
        draw="palimpsest.unlearning.figures.scores:unlearning_tradeoff",
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
            "against what training on the string had changed (right). See whether the bars rise, "
            "so that some strings are hard for every method, and whether the hard strings are "
            "those that had helped the model most."
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
)
