"""The docs name what is there: dependencies, licences, keys, pages."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from validators.contracts.pipeline_reference import pipeline_reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("README.md")])
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))

_ASKS_FOR_MORE = re.compile(r"GPL|MPL|Mozilla|proprietary|CC-BY|NVIDIA|EUPL|SSPL", re.IGNORECASE)
_ASKS_FOR_A_NOTICE = re.compile(
    r"\b(0BSD|Apache|BSD|CC0|Expat|HPND|ISC|MIT|MIT-CMU|PSF|Python Software|Unlicense|Zlib|ZPL)\b",
    re.IGNORECASE,
)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return sorted(re.split(r"[\[<>=~!; ]", item)[0] for group in groups for item in group)


def words_of(page: Path) -> set[str]:
    """The names on a page, as a registry would write them."""
    return {canonical(word) for word in re.findall(r"[A-Za-z0-9][\w.-]*\w", page.read_text())}


@pytest.mark.parametrize("name", direct_dependencies())
def test_a_direct_dependency_is_justified_beside_its_rivals(name: str) -> None:
    assert canonical(name) in words_of(DOCS / "decisions" / "0005-direct-dependencies.md")


def licence_of(distribution: importlib.metadata.Distribution) -> str:
    metadata = distribution.metadata
    first_line = (metadata.get("License") or "").strip().split("\n")[0]
    classifiers = [
        item for item in metadata.get_all("Classifier") or [] if item.startswith("License")
    ]
    return " ".join([metadata.get("License-Expression") or "", first_line, *classifiers])


def test_every_installed_licence_that_asks_for_more_is_named() -> None:
    page = words_of(DOCS / "licences.md")
    unnamed = {
        distribution.metadata["Name"]: licence_of(distribution)
        for distribution in importlib.metadata.distributions()
        if canonical(distribution.metadata["Name"]) not in page
        and (
            _ASKS_FOR_MORE.search(licence_of(distribution))
            or not _ASKS_FOR_A_NOTICE.search(licence_of(distribution))
        )
    }
    assert unnamed == {}


def test_the_reference_of_the_pipeline_file_is_the_schema_s() -> None:
    assert (DOCS / "pipeline-file.md").read_text() == pipeline_reference()


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_context_choice_and_what_was_refused(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem[:4]} ")
    assert all(f"**{part}" in text for part in ("Context.", "Choice.", "Refused"))


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.stem[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_architecture_lists_every_decision() -> None:
    listed = re.findall(r"\(decisions/([\w-]+)\.md\)", (DOCS / "architecture.md").read_text())
    assert listed == [page.stem for page in DECISIONS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("package", ["validators", "services", "flows", "tests"])
def test_every_package_says_what_it_is_for(package: str) -> None:
    text = (ROOT / package / "README.md").read_text()
    assert text.startswith(f"# {package}\n")
