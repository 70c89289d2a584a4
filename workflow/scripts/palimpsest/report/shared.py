"""The content of every report: the chapter on the languages, and terms that all sections use."""

from palimpsest.report.part import Chapter, Part

SHARED = Part(
    chapters=(
        Chapter(
            "languages",
            "The languages",
            "The models learn formal languages: grammars whose rules have probabilities, so that "
            "the exact probability of every string is known. Entropy says how unpredictable the "
            "strings are. If entropy is high, hardly any string occurs twice. If entropy is low, "
            "a few strings make up most of a sample, as frequent phrases do in natural language.",
        ),
    ),
    glossary={
        "Bayes-optimal loss": "The loss of somebody who knows the language exactly and nothing "
        "else.",
        "Entropy": "The average of −log P over the strings of a language, in nats: how "
        "unpredictable they are.",
        "Epoch": "One pass over the training data; epoch 0 is before training.",
        "Loss": "How surprised a model is by a string: the average of −log probability of its "
        "tokens, in nats per token. 0 is certain of every token.",
        "Nat": "The unit of information for natural logarithms; 1 nat is about 1.44 bits.",
        "Rank correlation": "How alike two rankings of the same strings are: 1 if equal, 0 if they "
        "have nothing to do with each other, −1 if reversed; undefined if all strings rank alike.",
        "Seed": "Decides the sample of strings, the model's initial weights and the order of the "
        "data; runs of different seeds are independent repetitions.",
        "Twin": "A model of the same architecture as a pretrained one, shrunk and randomly "
        "initialised.",
    },
)
