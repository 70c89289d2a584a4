"""The figures of training-data density.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.density import kinds
from palimpsest.figures.figure import Figure

PAPER = "LMD3: Language Model Data Density Dependence"
DRAWING = "palimpsest.density.figures"
FIGURES = (
    Figure(
        name="density_leakage",
        chapter="leakage",
        title="Density at leaked strings",
        caption=(
            "The density of the training strings at every test string, for all numbers of exact "
            "copies (rows) and paraphrases (columns) of the leaked strings. See how far the leaked "
            "strings rise above those never leaked, and that the placebos do not rise."
        ),
        numbers="3 and 7",
        paper=PAPER,
        tables=(kinds.LEAKAGE,),
        draw=f"{DRAWING}.leakage:density_leakage",
    ),
    Figure(
        name="leakage_performance",
        chapter="leakage",
        title="Performance on leaked strings",
        caption=(
            "Accuracy of the answer (top) and perplexity (bottom) on leaked strings, placebos "
            "and strings never leaked, by the number of paraphrases, without an exact copy (left) "
            "and with one (right). See where the leaked strings part from the other two, which "
            "are in the same runs and must not differ from each other."
        ),
        numbers="3",
        paper=PAPER,
        tables=(kinds.LEAKAGE,),
        draw=f"{DRAWING}.leakage:leakage_performance",
    ),
    Figure(
        name="effective_epochs",
        chapter="leakage",
        title="Effective epochs and density",
        caption=(
            "Accuracy and perplexity of leaked strings against the number of times that the model "
            "was trained on a copy or paraphrase (left), and of all test strings against the "
            "density of the training strings (right). See whether both trends are alike, and "
            "whether a paraphrase helps as much as a copy at equal effective epochs."
        ),
        numbers="2",
        paper=PAPER,
        tables=(kinds.LEAKAGE, kinds.DENSITY_BINS),
        draw=f"{DRAWING}.effective_epochs:effective_epochs",
        some_empty=(kinds.DENSITY_BINS,),
    ),
    Figure(
        name="density_separation",
        chapter="leakage",
        title="The bandwidth",
        caption=(
            "How well the density tells leaked strings from strings never leaked, by bandwidth, "
            "kernel and embedding, for paraphrases (left) and for an exact copy (right). See at "
            "which bandwidths the curves fall to chance, and that the placebos are at chance at "
            "every one."
        ),
        numbers="15",
        paper=PAPER,
        tables=(kinds.SEPARATION,),
        draw=f"{DRAWING}.separation:density_separation",
    ),
    Figure(
        name="density_left_out",
        chapter="leakage",
        title="Training without a production",
        caption=(
            "The change of density, loss and accuracy when the strings of a production (row) are "
            "left out of the training strings, for test strings of this production and of the "
            "others. See whether the filled points, and only these, are away from 0."
        ),
        numbers="8",
        paper=PAPER,
        tables=(kinds.LEFT_OUT,),
        draw=f"{DRAWING}.left_out:density_left_out",
    ),
    Figure(
        name="density_regressions",
        chapter="regressions",
        title="Regressions on leaks and on density",
        caption=(
            "Fixed effects of the mixed-effects regressions of perplexity (left) and accuracy "
            "(right) on the leak, on density, and on density and distance, for leaked strings and "
            "for placebos. See which estimates are away from 0 for leaked strings, and whether the "
            "same estimates for placebos are near 0."
        ),
        numbers="",
        paper="",
        tables=(kinds.REGRESSIONS,),
        draw=f"{DRAWING}.regressions:density_regressions",
    ),
    Figure(
        name="density_truth",
        chapter="truth",
        title="Estimates against exact probabilities",
        caption=(
            "The rank correlation of every estimate of density with the exact probability of the "
            "string, for strings never trained on (left half) and trained strings (right half), "
            "plain and at equal length. See which estimates are right of 0 for strings never "
            "trained on, and whether they still are at equal length: only these see density, and "
            "those right of 0 for trained strings alone see copies."
        ),
        numbers="",
        paper="",
        tables=(kinds.TRUTH,),
        draw=f"{DRAWING}.truth:density_truth",
    ),
    Figure(
        name="density_memorised",
        chapter="density_memorisation",
        title="Density and the start of memorisation",
        caption=(
            "The rank association of a string's support by other training strings and the epoch "
            "at which its memorisation starts, by measure, for trained strings and for strings "
            "never trained on, at equal exact probability. See whether the filled "
            "points are left of 0 where the hollow ones are not: what both show is no "
            "memorisation."
        ),
        numbers="",
        paper="",
        tables=(kinds.MEMORISED,),
        draw=f"{DRAWING}.memorised:density_memorised",
    ),
    Figure(
        name="text_density",
        chapter="own_texts",
        title="Density and perplexity of a text",
        caption=(
            "The perplexity of queries against the density of the corpus and against the distance "
            "to the nearest segments, in bins of equally many queries of similar length; without a "
            "language model, the distributions of density and distance. See whether perplexity "
            "falls to the right, where the corpus is dense."
        ),
        numbers="4 and 5",
        paper=PAPER,
        tables=(kinds.TEXT_DENSITY,),
        draw=f"{DRAWING}.texts:text_density",
    ),
)
