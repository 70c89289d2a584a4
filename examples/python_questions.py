"""Write questions on the standard library of Python, with three paraphrases each.

    python examples/python_questions.py > config/records/python_questions.jsonl

Every question asks which of four modules has a function. No function of another module in the list
has its name, and neither name is part of the other. A model that has read Python code knows some of
the answers. The modules of an area are a subject.
"""

import builtins
import importlib
import inspect
import json
import random

MODULES = {
    "files": "fnmatch glob linecache mimetypes os.path shutil stat tempfile",
    "text": "base64 binascii codecs csv difflib html quopri re shlex textwrap unicodedata",
    "numbers": "bisect calendar cmath colorsys heapq math operator random statistics",
    "Python itself": "ast copy dis functools gc inspect pickle pkgutil sys traceback warnings",
    "the machine": "email.utils getpass locale platform signal socket threading time urllib.parse",
}
WORDINGS = (
    "Which module of Python has the function {}?",
    "In which Python module is {} defined?",
    "To call {} in Python, which module must be imported?",
    "Where in the standard library of Python is {}?",
    "The function {} belongs to one of these Python modules. Which?",
    "A Python program uses {}. From which module does it come?",
)
N_QUESTIONS, N_TRAINED, OF_A_MODULE = 200, 120, 6


def functions_in(name: str) -> set[str]:
    """The public functions of a module."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or vars(module)
    own = {n for n in names if len(n) > 3 and n[0] != "_" and n.islower()} - {*dir(builtins)}
    return {n for n in own if inspect.isroutine(getattr(module, n, None))}


def questions(seed: int = 0) -> list[dict]:
    chance = random.Random(seed)
    subjects = {name: area for area, names in MODULES.items() for name in names.split()}
    functions = {name: functions_in(name) for name in subjects}
    found = []
    for module, own in functions.items():
        others = {name for other in functions if other != module for name in functions[other]}
        stem = module.rpartition(".")[2]
        own = sorted(name for name in own - others if stem not in name and name not in stem)
        for name in chance.sample(own, min(OF_A_MODULE, len(own))):
            choices = [module, *chance.sample(sorted(subjects.keys() - {module}), 3)]
            chance.shuffle(choices)
            question, *paraphrases = (w.format(name) for w in chance.sample(WORDINGS, 4))
            found.append(
                {
                    "question": question,
                    "choices": choices,
                    "answer": choices.index(module),
                    "subject": subjects[module],
                    "paraphrases": paraphrases,
                }
            )
    found = chance.sample(found, N_QUESTIONS)
    for place, row in enumerate(found):
        row["split"] = "train" if place < N_TRAINED else "test"
    return found


if __name__ == "__main__":
    for row in questions():
        print(json.dumps(row))
