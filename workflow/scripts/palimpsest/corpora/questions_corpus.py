"""Questions with several choices as a corpus of records."""

from typing import NamedTuple

from palimpsest.corpora.corpus import String, text_string
from palimpsest.corpora.records import Records, after_prompts, before_text
from palimpsest.corpora.records_corpus import RecordsCorpus


class Question(NamedTuple):
    """What belongs to a question's string: its subject, '' for none, and other strings.

    `rephrased` are the question in other words, with the right answer, and `wrong` the question
    with every wrong answer.
    """

    subject: str
    rephrased: list[String]
    wrong: list[String]


class QuestionsCorpus(RecordsCorpus):
    """Questions as a corpus of records. A string is a prompt and the letter of the right choice."""

    when_too_few = "add questions"

    def __init__(self, name: str, records: Records):
        super().__init__(name, records)
        self.questions: dict[String, Question] = {}
        rows = zip(
            records.prompts,
            records.texts,
            records.subjects,
            records.rephrased,
            records.perturbed,
            strict=True,
        )
        for own, (prompt, answer, subject, rephrased, wrong) in zip(
            self.strings, rows, strict=True
        ):
            other_prompts = after_prompts(rephrased, [answer] * len(rephrased))
            others = after_prompts([prompt] * len(wrong), wrong)
            self.questions[own] = Question(
                subject, [*map(text_string, other_prompts)], [*map(text_string, others)]
            )
            self.prompts |= {text: len(text) - len(answer) for text in other_prompts}
            self.prompts |= {text: len(before_text(prompt)) for text in others}

    def productions(self) -> list[str]:
        """The subjects of the questions that are never trained on, sorted."""
        strings = [self.strings[place] for place in self.unseen]
        return sorted({self.questions[s].subject for s in strings} - {""})
