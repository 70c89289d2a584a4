"""The fixed words of the report: what the questions, measures and studies are about.

No result stands here. The words must be true whatever the tables hold.
"""

# Source: Learning Without Memorizing Considered Infeasible, sections 2, 4, 5 and appendix G.
QUESTIONS = {
    "RQ1": "When does a model start to memorise a string?",
    "RQ2": "How much is a string memorised from then on?",
    "RQ3": "Can a language be learned optimally without memorising any of the training strings?",
    "RQ4": "Are frequent strings memorised more, and does removing repetitions help?",
    "RQ5": "More training data helps learning; does it also make for more memorisation?",
    "RQ6": "Do strings that are reported as memorised hold private information?",
    "RQ7": "Are strings that are reported as memorised so under the stricter measures too?",
    "RQ8": "Does removing repetitions let all test strings be learned equally well?",
    "RQ9": "Does removing repetitions let all strings be memorised at once, or not at all?",
    "approximation": "Can test strings of the same frequency stand in for a second training, "
    "without false alarms?",
    "bayes": "Can the language's exact probabilities stand in for a second training, and does a "
    "loss below them betray memorisation?",
}

# Losses are those of one string. Threshold and score are HTML.
MEASURES = [
    {
        "name": "Recollection",
        "words": "The model predicts the string almost perfectly. It does not matter why: a "
        "string that anyone who knows the language could continue counts as well.",
        "threshold": "loss(<i>e</i>) &lt; <i>τ</i>, with <i>τ</i> = 0.2 unless the "
        "configuration says otherwise",
        "score": "1 from the start on, else 0",
        "needs": "the trained model",
    },
    {
        "name": "Counterfactual",
        "words": "The model predicts the string better than a model that was trained for as many "
        "epochs without it. This is what an attacker can exploit who wants to know whether the "
        "string was in the training data.",
        "threshold": "loss(<i>e</i>) &lt; loss<sub>without</sub>(<i>e</i>)",
        "score": "(loss<sub>without</sub>(<i>e</i>) − loss(<i>e</i>)) / "
        "loss<sub>without</sub>(<i>e</i>)",
        "needs": "a second training without the string, or test strings of the same frequency",
    },
    {
        "name": "Contextual",
        "words": "The model predicts the string better than any amount of training without it "
        "allows. Up to that point it may have learned the string from the others; beyond it, "
        "the string itself must have helped. Where test strings stand in for the second "
        "training, chance can carry single strings past that point.",
        "threshold": "loss(<i>e</i>) &lt; <i>c</i>, with <i>c</i> = "
        "min<sub><i>e′</i></sub> loss<sub>without</sub>(<i>e′</i>), the "
        "optimal contextual loss",
        "score": "(<i>c</i> − loss(<i>e</i>)) / <i>c</i>",
        "needs": "as counterfactual",
    },
    {
        "name": "Bayes",
        "words": "The model predicts the string better than somebody who knows the language "
        "exactly. On average no model does so on strings that it has not seen, but on single "
        "ones it can: by giving them more probability than they have, and others less. A lower "
        "loss is strong evidence of memorisation where strings are long and of high entropy, "
        "weaker elsewhere; the false alarms say how weak.",
        "threshold": "loss(<i>e</i>) &lt; <i>b</i>, with <i>b</i> = −log <i>P</i>(string) "
        "/ tokens, the Bayes-optimal loss",
        "score": "(<i>b</i> − loss(<i>e</i>)) / <i>b</i>",
        "needs": "the grammar of the language; no second training",
    },
]

STUDIES = {
    "languages": {
        "title": "The languages",
        "words": "The models learn formal languages: grammars whose rules have probabilities, so "
        "that the exact probability of every string is known. Entropy says how unpredictable the "
        "strings are. Where it is high, hardly any string comes twice; where it is low, a few "
        "strings make up most of a sample, as frequent phrases do in natural language.",
    },
    "disagreement": {
        "title": "One string, several verdicts",
        "words": "Target strings of decreasing frequency are put into the training data and left "
        "out of it, and a model is trained on both. Every measure then looks at the same "
        "trainings. Where they name different epochs for the start of memorisation, the "
        "difference is in the definition and not in the model.",
    },
    "exact": {
        "title": "Every string left out once",
        "words": "To know what a training string adds to what a model learns from all the others, "
        "the model has to be trained again without it; here that was done for every training "
        "string, one after another. The paper avoids it by looking at test strings of the same "
        "frequency instead, so the question is how near that shortcut, and the Bayes-optimal loss "
        "as another, come to the truth.",
    },
    "tradeoff": {
        "title": "Learning and memorising",
        "words": "Learning is how well a model predicts strings that it was not trained on: the "
        "test loss, which falls at first and rises when the model overfits. Its lowest point is "
        "called optimal learning. The question is how much of the training set is memorised by "
        "then, and whether training could have been stopped before anything was.",
    },
    "frequency": {
        "title": "Frequent and infrequent strings",
        "words": "The distinct training strings are ranked by their probability under the "
        "language, and the two ends of the ranking are compared. If frequency decided what is "
        "memorised, the most frequent strings would be far ahead of the least frequent ones under "
        "every measure.",
    },
    "deduplication": {
        "title": "Removing repetitions",
        "words": "Deduplication, leaving every string in the training data only once, is often "
        "recommended against memorisation. Here it is compared with the data as sampled (base) "
        "and, where the study has one, with as many strings of the corresponding high-entropy "
        "language (dedup-matched), which is what deduplication would have to turn the data into "
        "for all strings to be alike.",
    },
    "training_size": {
        "title": "More training data",
        "words": "A larger sample of the language makes for better learning, but its frequent "
        "strings are repeated more often. Each point is a model at its own epoch of optimal "
        "learning.",
    },
    "model_size": {
        "title": "Larger models",
        "words": "Models of one family differ in little but their size. Each curve is the path of "
        "a model through training: from the right, where it knows nothing, to the left, where it "
        "learns, and upwards as it memorises.",
    },
    "unlearning": {
        "title": "What it can be made to forget",
        "words": "Some strings of the training data are to be forgotten: the forget set. The sure "
        "way is to train the model again on all other strings, the retain set, but that costs a "
        "whole training for every wish to be forgotten. Unlearning methods change the trained "
        "model instead, in a small share of the steps, and hope to arrive where retraining would "
        "have. The question is whether they do.",
    },
}

GLOSSARY = {
    "Approximation by frequency": "The loss without a string, taken from test strings of nearest "
    "probability under the language instead of from a second training.",
    "Band of starts": "The epochs from the start of memorisation of the first string to that of "
    "the last.",
    "Bayes-optimal loss": "The loss of somebody who knows the language exactly and nothing else.",
    "Counterfactual loss": "The loss of a string after training without it.",
    "Entropy": "The average of −log P over the strings of a language, in nats: how unpredictable "
    "they are.",
    "Epoch": "One pass over the training data; epoch 0 is before training.",
    "False alarm": "A string that a measure calls memorised although the model was never trained "
    "on it.",
    "Fraction memorised": "The share of the training strings whose score is above 0.",
    "Leave-one-out": "Training again for every training string, each time on the data without that "
    "string.",
    "Loss": "How surprised a model is by a string: the average of −log probability of its tokens, "
    "in nats per token. 0 is certain of every token.",
    "Nat": "The unit of information for natural logarithms; 1 nat is about 1.44 bits.",
    "Optimal contextual loss": "The lowest loss of a string over all epochs of training "
    "without it.",
    "Optimal learning": "The epoch at which a run's test loss is lowest.",
    "Rank correlation": "How alike two rankings of the same strings are: 1 if equal, 0 if they "
    "have nothing to do with each other, −1 if reversed; undefined if all strings rank alike.",
    "Seed": "Decides the sample of strings, the model's initial weights and the order of the data; "
    "runs of different seeds are independent repetitions.",
    "Start of memorisation": "The first epoch after the last one at which the string is not "
    "memorised, unless the configuration chooses the first crossing of the threshold.",
    "Target string": "A string, s0, s1, ..., that is left out of the training data and put back "
    "in.",
    "Twin": "A model of the same architecture as a pretrained one, shrunk and randomly "
    "initialised.",
    "Weighted memorisation": "The average score over the training strings.",
}

UNLEARNING_GLOSSARY = {
    "Epsilon of a string": "How well the best attack found tells unlearned models from retrained "
    "ones by their confidence in the string: 0 if it can only guess, and the larger, the more "
    "surely it can. It is the logarithm of how many times as likely one of its verdicts is where "
    "it is right as where it is wrong.",
    "Final score": "The forgetting quality, multiplied by the accuracy on retained strings and by "
    "that on test strings, each as a share of the accuracy of retrained models.",
    "Forget set": "The training strings that are to be forgotten.",
    "Forgetting quality": "The average of the points of the forget strings: 1 for an epsilon below "
    "0.5, half as many points for every 0.5 more, and none for what the models at hand can no "
    "longer tell from infinite.",
    "Retain set": "The training strings that are not to be forgotten.",
    "Retraining": "Training again, from new initial weights, on the retain set alone: the ideal "
    "that unlearning is held against.",
    "Set-up": "Which trained models the repetitions of an evaluation share: none (full), the "
    "original and retrained ones (reuse-n-n), a single original one (reuse-n-1), or those that are "
    "drawn from one pool with replacement (bootstrap).",
    "Unlearning": "Changing a trained model so that it is as if it had never seen the forget set.",
}
