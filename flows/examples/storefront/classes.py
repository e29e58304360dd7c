"""Names of the 1,000 ImageNet classes, in the order of the classifiers' scores."""

from __future__ import annotations

from flows.examples.storefront.packages import package_file
from validators.contracts.errors import Refused

CLASSES = 1000


def imagenet_names() -> tuple[str, ...]:
    """One text a class, all its synonyms: "tiger shark, Galeocerdo cuvieri".

    The lists are files inside the `timm` package, which is not imported.

    Raises:
        Unavailable: the package is not installed.  Refused: the lists are not what they should be.
    """
    synsets = package_file("timm", "data", "_info", "imagenet_synsets.txt").read_text("utf-8")
    lemmas = package_file("timm", "data", "_info", "imagenet_synset_to_lemma.txt").read_text(
        "utf-8"
    )
    order = synsets.split()
    names = dict(line.split("\t", 1) for line in lemmas.splitlines() if "\t" in line)
    if len(order) != CLASSES or not all(synset in names for synset in order):
        raise Refused("the class list is not ImageNet's", where="timm/data/_info")
    return tuple(names[synset].strip() for synset in order)
