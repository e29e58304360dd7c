"""The privacy policy: a table from modality to clause, operation, and what stays visible."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from validators.contracts.digest import Digest, digest_value
from validators.contracts.errors import BadInput, NotFound, Unsupported

POLICY_FOLDER = Path(__file__).parent / "policies"
MAX_POLICY_BYTES = 64 * 1024

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

Option = str | int | float | bool


class Operation(enum.Enum):
    """What is done to a modality before it is released."""

    BLUR_PERMUTE = "blur-permute"  # pictures: face regions blurred, then their pixels permuted
    HASH = "hash"  # recordings: descriptors and a keyed hash; the waveform stays behind
    PSEUDONYMISE = "pseudonymise"  # text: findings replaced


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table. `options` belong to the operation, sorted by name."""

    modality: str
    subject: str
    gdpr: str
    pipl: str
    operation: Operation
    visible: str
    options: tuple[tuple[str, Option], ...] = ()

    def number(self, name: str, default: float) -> float:
        return float(dict(self.options).get(name, default))


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    version: int
    rules: tuple[Rule, ...]

    @property
    def digest(self) -> Digest:
        return digest_value("privacy-policy", self)

    def rule(self, modality: str) -> Rule:
        """The rule for a modality.

        Raises:
            Unsupported: the policy has none; what no rule covers is never released.
        """
        for rule in self.rules:
            if rule.modality == modality:
                return rule
        raise Unsupported(
            f"the policy {self.name} has no rule for the modality {modality!r}",
            where=self.name,
            remedy="Add a row for it to the policy, or leave the modality out of the data set.",
        )


def load_policy(name: str, *, folder: Path = POLICY_FOLDER) -> Policy:
    """The policy `<folder>/<name>.yaml`.

    Raises:
        NotFound: no such policy.  BadInput: the file is not a policy.
    """
    path = folder / f"{name}.yaml"
    if not _NAME.fullmatch(name) or not path.is_file():
        known = ", ".join(sorted(item.stem for item in folder.glob("*.yaml")))
        raise NotFound(
            f"no privacy policy is called {name[:64]!r}",
            where="gates.privacy.policy",
            remedy=f"Choose one of: {known}.",
        )
    with path.open("rb") as stream:
        return parse_policy(stream.read(MAX_POLICY_BYTES + 1), where=path.name)


def parse_policy(text: bytes, *, where: str = "policy") -> Policy:
    """The policy that a YAML text holds.

    Raises:
        BadInput: not YAML, or not the table of a policy.
    """
    if len(text) > MAX_POLICY_BYTES:
        raise BadInput(f"a policy has more than {MAX_POLICY_BYTES} bytes", where=where)
    try:
        entry = _PolicyEntry.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput("a policy is not readable as YAML", where=where) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInput(
            f"a policy is wrong at {place}: {first['msg']}",
            where=where,
            remedy="Give each modality a subject, gdpr, pipl, operation and visible.",
        ) from error
    return entry.to_policy()


_OPTIONS: dict[Operation, dict[str, tuple[type, Any, Any]]] = {
    Operation.BLUR_PERMUTE: {
        "threshold": (float, 0.01, 0.9),
        "margin": (float, 0.0, 2.0),
        "blur": (float, 0.08, 2.0),  # of the face's width; at 0.03 92 % were still re-identified
    },
    Operation.PSEUDONYMISE: {"replacement": (str, ("uuid", "label"), None)},
    Operation.HASH: {},
}


class _RuleEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    subject: str = Field(min_length=1)
    gdpr: str = Field(min_length=1)
    pipl: str = Field(min_length=1)
    operation: Operation
    visible: str = Field(min_length=1)
    options: dict[str, float | str] = Field(default_factory=dict)


class _PolicyEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=_NAME.pattern)
    version: int = Field(ge=1)
    modalities: dict[str, _RuleEntry] = Field(min_length=1)

    def to_policy(self) -> Policy:
        rules = tuple(
            Rule(
                modality=modality,
                subject=entry.subject,
                gdpr=entry.gdpr,
                pipl=entry.pipl,
                operation=entry.operation,
                visible=entry.visible,
                options=_checked_options(modality, entry),
            )
            for modality, entry in sorted(self.modalities.items())
        )
        return Policy(self.name, self.version, rules)


def _checked_options(modality: str, entry: _RuleEntry) -> tuple[tuple[str, Option], ...]:
    allowed = _OPTIONS[entry.operation]
    for name, value in entry.options.items():
        where = f"modalities.{modality}.options.{name}"
        if name not in allowed:
            raise BadInput(
                f"{entry.operation.value} has no option {name[:40]!r}",
                where=where,
                remedy=f"Its options are: {', '.join(allowed) or 'none'}.",
            )
        kind, low, high = allowed[name]
        good = value in low if kind is str else isinstance(value, float) and low <= value <= high
        if not good:
            wanted = " or ".join(low) if kind is str else f"{low} to {high}"
            raise BadInput(
                f"the option {name} of {modality} is out of range",
                where=where,
                remedy=f"Write {wanted}.",
            )
    return tuple(sorted(entry.options.items()))
