"""Columns that several sections share, so that tables can be joined."""

from palimpsest.tables.kinds import Glossary

SHARED = Glossary("""
model str: name of the model, a row of config/models.tsv; `-twin` is its twin
language str: name of the language or text: config/languages/{language}.pcfg or .txt
size int: number of training strings asked for, with copies
seed int: seed of the sample, the initialisation and the order of the data
variant str: base, dedup, dedup-matched, with-s0, without-s0, original, retain, ...; in the folder
    leave-one-out: without-{string_id}, the run without that training string; in replicates:
    original-{replicate} or retain-{replicate}, one of many trainings
epoch int: epochs trained before the measurement; 0: the untrained model
string_id str: name of the string: 12 hexadecimal digits of its SHA-256
count int: copies of the string in the training data
log_prob float: exact log probability, nats, under the language of the training strings (for
    dedup-matched, the high-entropy counterpart); null for a text
nll float: negative log likelihood in nats, summed over the predicted tokens
n_tokens int: number of predicted tokens; of a text that a tokenizer cuts, of bytes in the table
    `strings`, and of the model's tokens elsewhere
n_correct int: number of tokens whose most probable prediction is right
rank_sum int: sum of the ranks of the true tokens; the best rank is 1
measure str: name of the measure, such as contextual (docs/measures.md)
evidence str: source of the threshold: constant, same-frequency (test strings), retraining (without
    the string) or language (exact probabilities)
parameters int: number of parameters of the model as trained
""")
