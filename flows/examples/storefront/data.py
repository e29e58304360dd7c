"""The reference service's data set: pictures, what they show in words, and the words spoken.

`embedded` needs nothing but PyPI packages: photographs inside scikit-image and scikit-learn, with
captions and requests of our own (pictures.csv), the requests read aloud on the spot. `stamps` is
the larger set of Debian's tuxpaint-stamps-default. `auto`, the default, takes the larger one where
it is installed. The environment variable MODALGATE_EXAMPLE_DATA chooses.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flows.examples.storefront.packages import package_file
from flows.examples.storefront.speech import Speaker
from flows.examples.storefront.stamps import FOLDER, find_stamps
from validators.contracts.errors import BadInput, Unavailable

VARIABLE = "MODALGATE_EXAMPLE_DATA"
CHOICES = ("auto", "embedded", "stamps")
STAMPS = 240
"""How many stamps a release uses: enough to learn a map, few enough for a demonstration."""

HELD_OUT_SHARE = 0.3
TABLE = Path(__file__).with_name("pictures.csv")


@dataclass(frozen=True, slots=True)
class Item:
    """One sample to write. `audio` with its file extension."""

    id: str
    picture: Path
    caption: str
    audio: bytes
    audio_suffix: str
    tags: dict[str, str]


def build(folder: Path) -> None:
    """Write the data set that MODALGATE_EXAMPLE_DATA names into `folder`.

    The same packages give the same bytes. `manifest.jsonl` comes last, so a folder that has one is
    whole.

    Raises:
        BadInput: the variable says something else.
        Unavailable: a package, or the stamps where they are asked for, are not installed.
    """
    choice = os.environ.get(VARIABLE, "auto")
    if choice not in CHOICES:
        raise BadInput(
            f"{VARIABLE} is {choice!r}", where=VARIABLE, remedy=f"Use one of: {', '.join(CHOICES)}."
        )
    if choice == "stamps" or (choice == "auto" and FOLDER.is_dir()):
        build_stamps(folder)
    else:
        build_embedded(folder)


def build_version() -> str:
    """What `build` would draw on now: part of the digest by which a release knows its data."""
    choice = os.environ.get(VARIABLE, "auto")
    if choice == "embedded" or not FOLDER.is_dir():
        return f"{choice} embedded"
    pictures = sorted(f"{path.name} {path.stat().st_size}" for path in FOLDER.rglob("*.png"))
    return f"{choice} stamps {hashlib.sha256(chr(10).join(pictures).encode()).hexdigest()}"


def build_embedded(folder: Path) -> None:
    """The small set: 24 photographs from installed packages."""
    _write(folder, _embedded(Speaker()))


def build_stamps(folder: Path, limit: int = STAMPS, seed: int = 0) -> None:
    """The larger set: `limit` stamps, spoken by people where recorded, else synthesised.

    Raises:
        Unavailable: Debian's tuxpaint-stamps-default is not installed.
    """
    if not FOLDER.is_dir():
        raise Unavailable(
            "the stamps are not installed",
            where=str(FOLDER),
            remedy="Run apt-get install tuxpaint-stamps-default, or use embedded.",
        )
    _write(folder, _stamps(Speaker(), limit, seed))


def split_of(content: bytes) -> str:
    """`train` or `held-out`, by the picture's content: a picture never changes sides."""
    share = int.from_bytes(hashlib.sha256(content).digest()[:4], "big") / 2**32
    return "held-out" if share < HELD_OUT_SHARE else "train"


def _embedded(speaker: Speaker) -> Iterator[Item]:
    with TABLE.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            yield Item(
                id=row["id"],
                picture=package_file(row["package"], *row["path"].split("/")),
                caption=row["caption"],
                audio=speaker.say(row["request"]),
                audio_suffix=".wav",
                tags={
                    "sensor": row["sensor"],
                    "channels": row["channels"],
                    "lighting": row["lighting"],
                    "source": row["package"],
                    "voice": "synthetic",
                },
            )


def _stamps(speaker: Speaker, limit: int, seed: int) -> Iterator[Item]:
    for stamp in find_stamps(limit, seed=seed):
        recorded = stamp.recording
        yield Item(
            id=stamp.id,
            picture=stamp.picture,
            caption=stamp.caption,
            audio=recorded.read_bytes() if recorded else speaker.say(stamp.caption),
            audio_suffix=".ogg" if recorded else ".wav",
            tags={
                "sensor": "illustration" if "cartoon" in stamp.id else "camera",
                "channels": "RGB",
                "lighting": "cut-out",
                "source": "tuxpaint-stamps",
                "group": stamp.group,
                "voice": "human" if recorded else "synthetic",
            },
        )


def _write(folder: Path, items: Iterator[Item]) -> None:
    media = folder / "media"
    media.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(_write_item(media, item, at), sort_keys=True, ensure_ascii=False)
             for at, item in enumerate(items)]  # fmt: skip
    unfinished = folder / "manifest.jsonl.unfinished"
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unfinished.replace(folder / "manifest.jsonl")


def _write_item(media: Path, item: Item, at: int) -> dict[str, object]:
    content = item.picture.read_bytes()
    picture = media / f"{item.id}{item.picture.suffix}"
    audio = media / f"{item.id}{item.audio_suffix}"
    picture.write_bytes(content)
    audio.write_bytes(item.audio)
    return {
        "id": item.id,
        "image": f"media/{picture.name}",
        "text": item.caption,
        "audio": f"media/{audio.name}",
        "captured_ms": at * 1000,
        "tags": {**item.tags, "split": split_of(content)},
    }
