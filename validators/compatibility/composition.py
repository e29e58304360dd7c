"""The gate that refuses a pipeline whose parts do not fit, before anything is built.

Every junction is examined: encoder → adapter, encoder → decoder, transcript → text branch, and
branches → the space in which the fusion compares them. A finding names both ends and the adapter
that would fix it. Projections that lose dimensions connect, but warn: what they lose has to be
measured (by the recall gate), since native representations forced into one narrow space have been
seen to lose a third of their fidelity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from validators.compatibility.connection import Mismatch, connect, form
from validators.contracts.encoder import EncoderContract
from validators.contracts.pipeline import Branch, Pipeline
from validators.contracts.tensors import Dim, DType, Meaning, StateKind, TensorSpec
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "contracts"


def check_composition(pipeline: Pipeline) -> Verdict:
    """Judge whether the pipeline's encoders, adapters and decoders fit together. Pure."""
    findings: list[Finding] = []
    junctions = 0
    for branch in pipeline.branches:
        checks = _examine(pipeline, branch)
        junctions += len(checks)
        for check in checks:
            findings += [_fail(check, item) for item in check.mismatches]
    findings += _meet(pipeline)
    return conclude(GATE, findings, examined=junctions, metrics={"junctions": float(junctions)})


@dataclass(frozen=True, slots=True)
class _Junction:
    """Two ends that meet, by name, and how they disagree."""

    producer: str
    consumer: str
    mismatches: tuple[Mismatch, ...]


def _examine(pipeline: Pipeline, branch: Branch) -> list[_Junction]:
    contract = pipeline.encoder(branch.encoder).contract
    if branch.decoder is not None:
        decoder = pipeline.encoder(branch.decoder).contract
        junctions = [*_decoder_junctions(contract, decoder)]
        if branch.then is not None:
            junctions.append(_text_junction(decoder, pipeline, branch.then))
        return junctions
    return list(_adapter_junctions(branch, contract))


def _adapter_junctions(branch: Branch, contract: EncoderContract) -> Iterator[_Junction]:
    """What an adapter reads is a matrix of floats: a row of features, or of scores, per request."""
    adapter = branch.adapter
    if adapter is None:
        output = _vector_output(branch, contract)
        yield _read(branch, contract, output, "fusion", _space(branch, contract))
        return
    space = adapter.space if adapter.kind == "identity" else None
    yield _read(branch, contract, contract.output(adapter.output), adapter.kind, space)
    scores = dict(adapter.options).get("scores")
    if adapter.kind == "auto" and isinstance(scores, str):
        yield _read(branch, contract, contract.output(scores), "conse", None)


def _read(
    branch: Branch, contract: EncoderContract, output: TensorSpec, reader: str, space: str | None
) -> _Junction:
    meaning = Meaning.GLOBAL_EMBEDDING
    if reader == "conse":
        meaning = output.meaning if output.meaning is Meaning.SCORES else Meaning.LOGITS
    wanted = TensorSpec(
        name="features",
        dtype=DType.FP32,
        shape=("batch", _width(output) or "features"),
        meaning=meaning,
        space=space,
    )
    return _Junction(
        f"{contract.name}.{output.name}",
        f"{branch.modality}.{reader}",
        connect(output, wanted, producer_state=contract.state),
    )


def _decoder_junctions(encoder: EncoderContract, decoder: EncoderContract) -> Iterator[_Junction]:
    """Every input of the decoder but its token ids is the encoder's output of the same name."""
    fed = [item for item in decoder.inputs if item.meaning is not Meaning.TOKEN_IDS]
    for wanted in fed:
        yield _feed(encoder, decoder, wanted)
    if not fed:
        offered = ", ".join(item.describe() for item in encoder.outputs)
        wants = ", ".join(item.describe() for item in decoder.inputs)
        remedy = f"Give {decoder.name} an input for the features of {encoder.name}."
        mismatch = Mismatch("meaning", offered, wants, remedy)
        yield _Junction(encoder.name, decoder.name, (mismatch,))
    yield _Junction(decoder.name, f"{decoder.name} loop", tuple(_loop_mismatches(decoder)))


def _feed(encoder: EncoderContract, decoder: EncoderContract, wanted: TensorSpec) -> _Junction:
    """The output of that name; where there is none, the one that fits best, and what it lacks."""
    offers = [
        (item, connect(item, wanted, producer_state=encoder.state)) for item in encoder.outputs
    ]
    output, mismatches = min(
        offers,
        key=lambda offer: (
            offer[0].name != wanted.name,
            offer[0].meaning is not wanted.meaning,
            len(offer[1]),
        ),
    )
    if output.name != wanted.name and not mismatches:
        remedy = f"Give {encoder.name}.{output.name} and {decoder.name}.{wanted.name} one name."
        mismatches = (Mismatch("name", output.describe(), wanted.describe(), remedy),)
    return _Junction(f"{encoder.name}.{output.name}", f"{decoder.name}.{wanted.name}", mismatches)


def _loop_mismatches(decoder: EncoderContract) -> Iterator[Mismatch]:
    """The loop sends the whole prefix of token ids and takes the scores of the next one."""
    takes = [item for item in decoder.inputs if item.meaning is Meaning.TOKEN_IDS]
    gives = [item for item in decoder.outputs if item.meaning is Meaning.LOGITS]
    if len(takes) != 1 or len(gives) != 1 or decoder.preprocess.kind != "transcript":
        tensors = ", ".join(item.describe() for item in (*decoder.inputs, *decoder.outputs))
        yield Mismatch(
            "meaning", f"{decoder.preprocess.kind} preprocessing, {tensors}",
            "transcript preprocessing, one token_ids in, one logits out",
            "Name an encoder that takes token ids and gives logits, or embed these features by an "
            "adapter.",
        )  # fmt: skip
    if decoder.state is not StateKind.STATELESS:
        yield Mismatch(
            "state", decoder.state.value, StateKind.STATELESS.value,
            f"Export {decoder.name} without its cache: every step sends the whole prefix.",
        )  # fmt: skip


def _text_junction(decoder: EncoderContract, pipeline: Pipeline, then: str) -> _Junction:
    """The transcript is text: the branch it goes through has to start from text."""
    target = pipeline.encoder(pipeline.branch(then).encoder).contract
    reads = any(item.meaning is Meaning.TOKEN_IDS for item in target.inputs)
    mismatches: tuple[Mismatch, ...] = ()
    if not reads or target.preprocess.kind != "wordpiece":
        wants = ", ".join(item.describe() for item in target.inputs)
        mismatches = (
            Mismatch(
                "meaning", "text decoded from token ids", wants,
                f"Send the text of {decoder.name} through a branch whose encoder reads text "
                "(wordpiece preprocessing).",
            ),
        )  # fmt: skip
    return _Junction(decoder.name, f"{then}.{target.name}", mismatches)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """The space in which the fusion compares, its width, and the branch that it was read from."""

    space: str
    width: Dim | None
    branch: str


def _meet(pipeline: Pipeline) -> Iterator[Finding]:
    """Branches that end in vectors have to end in one space, of one width."""
    ends = {
        branch.modality: (branch, pipeline.encoder(branch.encoder).contract)
        for branch in pipeline.branches
        if branch.decoder is None
    }
    if not ends:
        return
    spaces = {name: _space(*end) for name, end in ends.items()}
    common = max(spaces.values(), key=list(spaces.values()).count)
    inside = [name for name, space in spaces.items() if space == common]
    widths = {name: _native_width(*ends[name]) for name in inside}
    native = next((name for name in inside if widths[name] is not None), None)
    width = widths[native] if native else None
    meeting = _Meeting(common, width, native or inside[0])
    for branch, contract in ends.values():
        yield from _join(branch, contract, meeting)
    if width is None:
        yield Finding(
            GATE, "space-undefined", f"space {common}", Outcome.FAIL,
            "no branch is native in it", "a branch whose encoder's output lies in it",
            f"Add a branch whose output lies in {common}: a map is learned towards it.",
            waivable=False,
        )  # fmt: skip


def _join(branch: Branch, contract: EncoderContract, meeting: _Meeting) -> Iterator[Finding]:
    output = _vector_output(branch, contract)
    subject = f"{contract.name}.{output.name} -> fusion in {meeting.space}"
    given, own, width = _width(output), _native_width(branch, contract), meeting.width
    space = _space(branch, contract)
    if space != meeting.space:
        yield Finding(
            GATE, "space", subject, Outcome.FAIL,
            f"space {space} of {output.describe()}",
            f"space {meeting.space}, where the branch {meeting.branch} ends",
            f"Project {given} → {width or 'its width'} into space {meeting.space} by a ridge map.",
            waivable=False,
        )  # fmt: skip
    elif own is not None and own != width:
        yield Finding(
            GATE, "dimension", subject, Outcome.FAIL,
            f"{own} in {output.describe()}", f"{width}, as in the branch {meeting.branch}",
            f"Project {own} → {width} into space {meeting.space} by a ridge map: one name stands "
            "for two spaces.", waivable=False,
        )  # fmt: skip
    elif own is None and isinstance(width, int) and (source := _numbers(output)) > width:
        yield Finding(
            GATE, "lossy-projection", subject, Outcome.WARN,
            f"{source} numbers in {form(output)}", f"{width} numbers in space {meeting.space}",
            "Measure what the projection loses on held-out pairs (recall@k beside chance), or "
            "fuse at a finer granularity.",
        )  # fmt: skip


def _vector_output(branch: Branch, contract: EncoderContract) -> TensorSpec:
    if branch.adapter is not None:
        return contract.output(branch.adapter.output)
    for item in contract.outputs:
        if item.space is not None:
            return item
    return contract.outputs[0]


def _space(branch: Branch, contract: EncoderContract) -> str:
    if branch.adapter is not None:
        return branch.adapter.space
    return _vector_output(branch, contract).space or "not named"


def _native_width(branch: Branch, contract: EncoderContract) -> Dim | None:
    """The width of a branch that is in its space by itself; None where an adapter maps it."""
    if branch.adapter is not None and branch.adapter.kind != "identity":
        return None
    return _width(_vector_output(branch, contract))


def _width(output: TensorSpec) -> Dim | None:
    return output.shape[-1] if output.shape else None


def _numbers(output: TensorSpec) -> int:
    """Numbers per request that a projection starts from; unknown sizes count once."""
    product = 1
    for dim in output.shape[1:]:
        product *= dim if isinstance(dim, int) else 1
    return product


def _fail(junction: _Junction, mismatch: Mismatch) -> Finding:
    return Finding(
        GATE,
        mismatch.code,
        f"{junction.producer} -> {junction.consumer}",
        Outcome.FAIL,
        mismatch.gives,
        mismatch.wants,
        mismatch.adapter,
        waivable=False,
    )
