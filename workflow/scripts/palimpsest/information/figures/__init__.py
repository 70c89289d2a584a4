"""The figures of information measures.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.figures.figure import Figure
from palimpsest.information import kinds

PAPER = "the paper on information measures of neurons"
DRAWING = "palimpsest.information.figures"
FIGURES = (
    Figure(
        name="information_entropy",
        chapter="diversity",
        title="Entropy of neurons",
        caption=(
            "The distribution of the entropy of neurons, layer by layer (columns), for models that "
            "memorise a shortcut (upper rows: alpha) or strings by heart (lower rows: beta). See "
            "whether entropy falls with alpha and rises with beta, and whether it does so in the "
            "last layer more than in the first."
        ),
        numbers="8",
        paper=PAPER,
        tables=(kinds.NEURONS,),
        draw=f"{DRAWING}.distributions:information_entropy",
    ),
    Figure(
        name="information_pairs",
        chapter="diversity",
        title="Mutual information of pairs of neurons",
        caption=(
            "The distribution of the mutual information of pairs of neurons, layer by layer "
            "(columns), for models that memorise a shortcut (upper rows: alpha) or strings by "
            "heart (lower rows: beta), and that of pairs whose strings are in a random order "
            "(grey). See whether it rises with alpha and falls with beta, and that the grey "
            "distributions stay at 0."
        ),
        numbers="10",
        paper=PAPER,
        tables=(kinds.PAIRS,),
        draw=f"{DRAWING}.distributions:information_pairs",
    ),
    Figure(
        name="information_shares",
        chapter="diversity",
        title="Means by what is memorised",
        caption=(
            "Means of entropy and mutual information, accuracy, and the share of memorised "
            "strings, by alpha (left) and beta (right), for models of every depth. See whether the "
            "trends have the same direction at every depth, and compare them with the step "
            "between the leftmost points of both columns, where strings have random markers and "
            "none, and nothing is memorised."
        ),
        numbers="9",
        paper=PAPER,
        tables=(kinds.INFORMATION,),
        draw=f"{DRAWING}.shares:information_shares",
    ),
    Figure(
        name="information_associations",
        chapter="comparison",
        title="What the measures go with",
        caption=(
            "Correlations of entropy and mutual information with accuracy, with the share of "
            "memorised strings and with norms of weights, over the models of a seed, as Pearson's "
            "(left) and as Kendall's (right). See whether the filled points are far from 0 where "
            "those of exchanged strings are not, and how near they are to the correlation that "
            "alpha or beta itself has (bars): a measure that only follows it goes with everything "
            "else that does."
        ),
        numbers="",
        paper="",
        tables=(kinds.INFORMATION,),
        draw=f"{DRAWING}.associations:information_associations",
    ),
    Figure(
        name="information_epochs",
        chapter="epochs",
        title="Inside of a model while it is fine-tuned",
        caption=(
            "Entropy and mutual information before fine-tuning and after every epoch, on the same "
            "strings in every epoch and on fresh ones. See whether the maps change at the vertical "
            "line, where contextual memorisation starts: what both kinds of strings change is "
            "learning, and the maps only show what differs."
        ),
        numbers="",
        paper="",
        tables=(kinds.EPOCHS,),
        draw=f"{DRAWING}.epochs:information_epochs",
    ),
)
