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
            "Forgetting quality, and the final score that also counts what is lost on other "
            "strings, of every unlearning method, between retraining at the top and doing nothing "
            "at the bottom. See how near a method comes to the dashed line, which retraining "
            "itself does not pass, and how far its marker moves to the left from the first panel "
            "to the second: that is what forgetting cost."
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
            "The share of the forget strings that is memorised before unlearning, after it and by "
            "models that never saw them, a panel per measure of memorisation. See whether a "
            "method's bars end at the dashed line in all panels or only under recollection, where "
            "the strings are no longer recited but what the model gained from them is still "
            "there; it is that line and not 0 that unlearning should reach, as chance alone "
            "carries some retrained models past a threshold."
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
            "stand to the upper right, and which pay for what they forget by falling below the "
            "dashed line."
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
            "How many forget strings have which epsilon, a panel per method: 0 if unlearned and "
            "retrained models treat the string alike, the larger the better an attack can tell "
            "them apart. See how much stands to the right of the dotted line, where a string has "
            "no points, and whether a method fails on all strings a little or on some of them "
            "wholly."
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
            "against what training on the string had changed (right). See whether the bars climb, "
            "so that some strings are hard for every method, and whether the hard ones are those "
            "that the model had gained most from."
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
            "every pair of methods, with like ones beside each other. See whether the squares are "
            "of one colour, in which case it is the strings that decide what is hard to forget, "
            "or fall into blocks, in which case it is the methods."
        ),
        numbers="15",
        paper=PAPER,
        tables=(kinds.AGREEMENT,),
        draw="palimpsest.unlearning.figures.others:unlearning_agreement",
    ),
    Figure(
        name="unlearning_metrics",
        chapter="unlearning",
        title="Other metrics beside the forgetting quality",
        caption=(
            "Other measures of forgetting from the literature against the forgetting quality, a "
            "marker per method, with the value of retrained models as a dashed line. See whether "
            "the markers near the dashed line are those to the right: where they are not, the "
            "metric finds forgotten what an attack on single strings still finds."
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
            "on others, and with growing numbers of models, of models in the pool of the "
            "bootstrap, and of repetitions. See how far the values move, and whether the order of "
            "the methods stays: only the order matters for comparing methods."
        ),
        numbers="19 to 21",
        paper=PAPER,
        tables=(kinds.EFFECTS,),
        draw="palimpsest.unlearning.figures.others:unlearning_effects",
    ),
)
