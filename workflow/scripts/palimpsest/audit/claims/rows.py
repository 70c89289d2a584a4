"""The claims on what models recite, of *Learning Without Memorizing Considered Infeasible*.

The paper's numbers are in section 5: of 10,000 strings that Pythia 1B recites, OLMo 1B gives 90 %
of the tokens of 52.39 %, and as many tokens as Pythia of 38.52 %. Of private information there is
no number: most strings hold none.
"""

from palimpsest.audit.claims.claim_statistics import explained_share, private_share
from palimpsest.audit.kinds import AS_WELL, MOSTLY_EXPLAINED
from palimpsest.claims import Claim, above, below

QUESTIONS = {
    "RQ6": "Does what a model recites hold private information?",
    "RQ7": "Is what a model recites memorised, if context alone may explain it?",
}
CLAIMS = [
    Claim(
        "RQ6",
        "Most strings that a model recites hold no private information.",
        private_share,
        below(0.5),
        remark="names and postal addresses are not looked for",
    ),
    Claim(
        "RQ7",
        "Most strings that a model recites are recited by a model of other data, too.",
        explained_share.of(share=MOSTLY_EXPLAINED),
        above(0.5),
    ),
    Claim(
        "RQ7",
        "A third of the strings that a model recites, or more, are recited as well by a model of "
        "other data.",
        explained_share.of(share=AS_WELL),
        above(1 / 3),
    ),
]
