# Names of the atlas's files.
from palimpsest.atlas import kinds as mapped
from palimpsest.regimes import REMOVALS, REMOVALS_AGAIN
