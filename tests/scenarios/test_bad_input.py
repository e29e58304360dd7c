"""Files that are wrong, each refused by name and with a remedy, before anything is registered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.scenarios.small import Project, Row, image_encoder, picture, save
from tests.scenarios.stage import Stage, findings, outcomes
from tests.services.media_files import encode, tone, wav

pytestmark = pytest.mark.slow


def rewrite(change: Callable[[onnx.ModelProto], object]) -> Callable[[Project], object]:
    """The picture encoder's ONNX file, changed."""

    def edit(project: Project) -> None:
        model = image_encoder()
        change(model)
        save(model, project.folder / "models" / "image.onnx")

    return edit


def put_nan(model: onnx.ModelProto) -> None:
    weight = next(item for item in model.graph.initializer if item.name == "weight")
    values = numpy_helper.to_array(weight).copy()
    values[0, 0] = np.nan
    weight.CopyFrom(numpy_helper.from_array(values, "weight"))


def use_custom_operator(model: onnx.ModelProto) -> None:
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    relu.op_type, relu.domain = "SecretRelu", "com.example"
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))


def promise(output: int, **changes: object) -> Callable[[Project], object]:
    """What the contract says of an output of the picture encoder, changed."""
    return lambda project: project.edit(
        lambda document: document["encoders"]["image"]["outputs"][output].update(changes)
    )


def write(name: str, data: bytes) -> Callable[[Project], object]:
    return lambda project: (project.folder / name).write_bytes(data)


def remove(name: str) -> Callable[[Project], object]:
    return lambda project: (project.folder / name).unlink()


def duplicate_key(project: Project) -> None:
    text = project.pipeline.read_text()
    project.pipeline.write_text(text + "service: again\n")


WRONG = (
    ("a zero-byte ONNX", write("models/image.onnx", b""), "image.onnx", "empty"),
    ("not an ONNX", write("models/image.onnx", b"hello"), "image.onnx", "not an ONNX model"),
    ("a custom operator", rewrite(use_custom_operator), "", "SecretRelu"),
    ("NaN weights", rewrite(put_nan), "", "NaN"),
    ("a shape that lies", promise(0, shape=["batch", 99]), "", "24"),
    ("a type that lies", promise(1, dtype="FP16"), "", "FP16"),
    ("a missing model", remove("models/image.onnx"), "image.onnx", "cannot be read"),
    ("a missing tokenizer", remove("models/tokenizer.json"), "tokenizer.json", "cannot be read"),
    ("not a tokenizer", write("models/tokenizer.json", b"{}"), "tokenizer", "tokenizers JSON"),
    ("no manifest", remove("data/manifest.jsonl"), "data", "manifest.jsonl"),
    ("a key written twice", duplicate_key, "pipeline.yaml:", "twice"),
    ("not UTF-8", write("pipeline.yaml", b"\xff\xfes\x00"), "pipeline.yaml", "UTF-8"),
    ("an empty file", write("pipeline.yaml", b""), "pipeline.yaml", "empty"),
)


@pytest.mark.parametrize(
    ("edit", "where", "what"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_it_is_refused_as_bad_input_and_nothing_is_registered(
    released: Stage, project: Project, edit: Callable[[Project], object], where: str, what: str
) -> None:
    edit(project)
    ran = released.release(project)
    document = ran.document
    assert (ran.code, document["status"]) == (2, "bad-input"), document.get("error")
    error = document["error"]
    assert what in error["what"], error
    assert where in error["where"], error
    assert error["remedy"]
    assert "Traceback" not in ran.stderr
    assert len(released.registered()) == 1
    assert released.orphans() == []
    assert released.processes() == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("release", "absent.yaml"), "cannot be read"),
        (("release", "/"), "cannot be read"),
        (("status", "../x"), "service"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(
    fresh: Stage, arguments: tuple[str, ...], what: str
) -> None:
    ran = fresh.cli(*arguments, "--json")
    assert (ran.code, ran.document["status"]) == (2, "bad-input")
    assert what in ran.document["error"]["what"]


@pytest.mark.parametrize("arguments", [("unknown",), ("release",), ("release", "x", "--unknown")])
def test_a_command_that_does_not_exist_is_a_usage_error(
    fresh: Stage, arguments: tuple[str, ...]
) -> None:
    ran = fresh.cli(*arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert "Usage" in ran.stderr or "No such command" in ran.stderr


def test_torn_media_are_named_row_by_row_and_other_sound_is_brought_into_one_form(
    fresh: Stage, project: Project
) -> None:
    stereo = np.stack([tone(0.5, 300, 48_000), tone(0.5, 500, 48_000)], axis=1)

    def spoil(rows: list[Row]) -> None:
        rows[0] |= {"image": "media/torn.png"}
        rows[1] |= {"audio": "media/empty.wav"}
        rows[2] |= {"audio": "media/none.wav"}
        rows[3] |= {"audio": "media/stereo.wav"}

    project.collect(
        spoil,
        torn__png=encode(picture("cross", "blue"))[:80],
        empty__wav=b"",
        none__wav=wav(np.zeros(0, np.float32)),
        stereo__wav=wav(stereo, 48_000),
    )
    ran = fresh.release(project)
    assert ran.code == 3
    assert outcomes(ran.document) == {"contracts": "PASS", "ingest": "FAIL"}
    found = {item["subject"]: item["code"] for item in findings(ran.document, "ingest")}
    ids = [row["id"] for row in project.rows]
    assert found == {ids[0]: "corrupt-image", ids[1]: "empty-audio", ids[2]: "empty-audio"}


def test_weights_kept_beside_the_model_are_part_of_it(
    released: Stage, project: Project, tmp_path: Path
) -> None:
    """Another data file under the same ONNX file is another encoder."""
    keys = []
    for seed in (1, 5):
        for path in (project.folder / "models").glob("image.*"):
            path.unlink()
        onnx.save_model(
            image_encoder(seed), project.folder / "models" / "image.onnx", size_threshold=0,
            save_as_external_data=True, location="image.bin",
        )  # fmt: skip
        project.edit(lambda document: document["gates"]["drift"].update(minimum_samples=500))
        document = released.release(project).document
        keys += [item["key"] for item in document["engines"] if item["encoder"] == "image"]
    assert len(set(keys)) == 4
