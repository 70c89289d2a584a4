"""Interventions of profiles: streams, whose strings are trained on once each."""

from palimpsest.interventions import Intervention, number_in

# A single pass over many strings, in macro-batches; and the same pass with other strings in the
# place of one macro-batch
STREAM = "stream"
STREAMS = rf"{STREAM}(-without-(?P<cohort>\d+))?"
# A stream in which some strings, the probes, have known numbers of copies and positions; and the
# same stream with other strings in the place of the probes
DILUTED = "diluted"
DILUTED_WITHOUT = "diluted-without-probes"
QUARTERS = 4  # of a diluted stream, which is measured after each of them

INTERVENTIONS = (
    Intervention(STREAMS, "palimpsest.profiles.streams:stream"),
    Intervention(DILUTED, "palimpsest.profiles.dilution_data:diluted"),
    Intervention(DILUTED_WITHOUT, "palimpsest.profiles.dilution_data:diluted"),
)


def stream_without(cohort: int) -> str:
    """The stream in which other strings take the place of one macro-batch."""
    return f"{STREAM}-without-{cohort}"


def replaced_cohort(name: str) -> int | None:
    """The number of the macro-batch that a stream is without; None for the whole stream."""
    return number_in(STREAMS, name)
