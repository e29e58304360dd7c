"""What has to hold between the keys of a user's file: names, objectives, traffic, schedules.

Each rule looks at the readable parts and yields complaints; the encoders' own tensors and profiles
are in `encoder_rules`, and whether tensors connect is a gate (`validators.compatibility`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from itertools import pairwise

from validators.contracts.cron import find_cron_fault
from validators.contracts.encoder_rules import encoder_complaints
from validators.contracts.modality import DEFAULT_MODALITIES, NEVER_INTERPOLATED, Gap
from validators.contracts.pipeline_complaints import Complaint, suggest
from validators.contracts.pipeline_encoder_schema import EncoderSection, TensorSection
from validators.contracts.pipeline_parts import Parts
from validators.contracts.pipeline_schema import BackendSection, BranchSection, SloSection
from validators.contracts.slo import CLASS_BOUNDS, SloClass
from validators.contracts.tensors import Meaning

SOFT_SHARE = 5 / 6
"""The soft limit where none is declared, of p99_ms: 250 of 300."""

RTX_TARGETS = ("SM75", "SM80", "SM86", "SM89", "SM120", "SM121")
"""What TensorRT for RTX compiles for ahead of time (1.7); SM75 in fp16 only."""


def rule_complaints(parts: Parts) -> list[Complaint]:
    """Everything that breaks a rule between keys."""
    return [complaint for rule in _RULES for complaint in rule(parts)]


def limits_of(slo: SloSection) -> tuple[float, float]:
    """The declared or default p99_ms and soft_limit_ms."""
    bound = CLASS_BOUNDS[SloClass(slo.slo_class)].latency_ms
    p99_ms = slo.p99_ms if slo.p99_ms is not None else bound
    soft_ms = slo.soft_limit_ms if slo.soft_limit_ms is not None else p99_ms * SOFT_SHARE
    return p99_ms, soft_ms


def _check_objectives(parts: Parts) -> Iterator[Complaint]:
    if parts.slo is None:
        return
    bounds = CLASS_BOUNDS[SloClass(parts.slo.slo_class)]
    p99_ms, soft_ms = limits_of(parts.slo)
    name = f"the class {parts.slo.slo_class}"
    if p99_ms > bounds.latency_ms:
        yield Complaint(
            ("slo", "p99_ms"),
            f"slo.p99_ms is {p99_ms:g}, but {name} answers within {bounds.latency_ms:g} ms "
            f"(P{bounds.percentile * 100:g}).",
            f"Write p99_ms: {bounds.latency_ms:g} or less, or choose a slower class.",
        )
    if soft_ms >= p99_ms:
        yield Complaint(
            ("slo", "soft_limit_ms"),
            f"slo.soft_limit_ms is {soft_ms:g}, which is not before p99_ms, {p99_ms:g}: the light "
            "answer would come too late.",
            f"Write soft_limit_ms: {p99_ms * SOFT_SHARE:.4g}, or another time below p99_ms.",
        )
    if bounds.max_modalities is not None and len(parts.branches) > bounds.max_modalities:
        yield Complaint(
            ("branches",),
            f"There are {len(parts.branches)} branches, but {name} takes "
            f"{bounds.max_modalities} modalities at most.",
            "Remove a branch or choose another class.",
        )
    for modality, branch in parts.readable_branches().items():
        if branch.timeout_ms is not None and branch.timeout_ms > p99_ms:
            yield Complaint(
                ("branches", modality, "timeout_ms"),
                f"branches.{modality}.timeout_ms is {branch.timeout_ms:g}, longer than the whole "
                f"request may take: slo.p99_ms is {p99_ms:g}.",
                f"Write timeout_ms: {soft_ms:.4g} or less.",
            )


def _check_modalities(parts: Parts) -> Iterator[Complaint]:
    mains = [name for name, item in parts.modalities.items() if item is not None and item.main]
    for name in mains[1:]:
        yield Complaint(
            ("modalities", name, "main"),
            f"{mains[0]!r} and {name!r} are both the main modality.",
            "Keep main: true on the one that degradation protects.",
        )
    for name, item in parts.modalities.items():
        if item is None or item.tolerance_ms is None or item.jitter_ms is None:
            continue
        if item.tolerance_ms < item.jitter_ms:
            yield Complaint(
                ("modalities", name, "tolerance_ms"),
                f"modalities.{name}.tolerance_ms is {item.tolerance_ms:g}, less than its jitter of "
                f"{item.jitter_ms:g} ms: samples that are on time would be late.",
                f"Write tolerance_ms: {item.jitter_ms:g} or more.",
            )
    yield from _check_gaps(parts)


def _check_gaps(parts: Parts) -> Iterator[Complaint]:
    built_in = {item.name: item.gap for item in DEFAULT_MODALITIES}
    for name, item in parts.modalities.items():
        if item is None:
            continue
        if item.gap == Gap.INTERPOLATE.value and name in NEVER_INTERPOLATED:
            yield Complaint(
                ("modalities", name, "gap"),
                f"modalities.{name}.gap is interpolate, and there is nothing between two items of "
                f"{name}: only numbers are interpolated.",
                "Write gap: hold, drop or refuse.",
            )
        if item.hold_ms is not None and Gap(item.gap or built_in.get(name, Gap.DROP)) != Gap.HOLD:
            yield Complaint(
                ("modalities", name, "hold_ms"),
                f"modalities.{name}.hold_ms is {item.hold_ms:g}, and its gap policy holds nothing.",
                "Write gap: hold beside it, or leave hold_ms out.",
            )


def _check_data(parts: Parts) -> Iterator[Complaint]:
    if parts.data is not None and (parts.data.folder is None) == (parts.data.factory is None):
        yield Complaint(
            ("data",), "data has to name exactly one of folder and factory.",
            "Write {folder: data} or {factory: \"package.module:function\"}.",
        )  # fmt: skip


def _check_branches(parts: Parts) -> Iterator[Complaint]:
    names = parts.modality_names()
    for modality, branch in parts.branches.items():
        if modality not in names:
            yield Complaint(
                ("branches", modality), f"There is no modality {modality!r}.",
                f"{suggest(modality, names)} A new one is declared under modalities.",
            )  # fmt: skip
        if branch is not None:
            yield from _check_encoders_of(parts, modality, branch)
            yield from _check_way_on(parts, modality, branch)


def _check_encoders_of(parts: Parts, modality: str, branch: BranchSection) -> Iterator[Complaint]:
    if parts.encoders is None:
        return
    for key, name in (("encoder", branch.encoder), ("decoder", branch.decoder)):
        if name is not None and name not in parts.encoders:
            yield Complaint(
                ("branches", modality, key),
                f"branches.{modality}.{key} names {name!r}, which is not under encoders.",
                suggest(name, list(parts.encoders)),
            )
    encoder = parts.encoders.get(branch.encoder)
    if encoder is None:
        return
    if encoder.modality != modality:
        yield Complaint(
            ("branches", modality, "encoder"),
            f"branches.{modality}.encoder is {branch.encoder!r}, which reads {encoder.modality!r}.",
            f"Name an encoder whose modality is {modality}.",
        )
    outputs = [item.name for item in encoder.outputs]
    for place, read in _outputs_read(branch):
        if read not in outputs:
            yield Complaint(
                ("branches", modality, "adapter", *place),
                f"branches.{modality}.adapter.{'.'.join(place)} is {read!r}, which is not an "
                f"output of the encoder {branch.encoder!r}.",
                suggest(f"{read}", outputs),
            )
    if branch.adapter is None and branch.decoder is None and branch.then is None:
        yield from _check_own_space(modality, branch, encoder)


def own_spaces(encoder: EncoderSection) -> list[TensorSection]:
    """The outputs that are vectors of a named space: one of them needs no adapter."""
    embedding = Meaning.GLOBAL_EMBEDDING.value
    return [item for item in encoder.outputs if item.meaning == embedding and item.space]


def _check_own_space(
    modality: str, branch: BranchSection, encoder: EncoderSection
) -> Iterator[Complaint]:
    found = own_spaces(encoder)
    if len(found) == 1:
        return
    kind, output = ("identity", found[0]) if found else ("ridge", encoder.outputs[0])
    space = output.space or "common"
    yield Complaint(
        ("branches", modality),
        f"branches.{modality} has neither adapter nor decoder, and {len(found) or 'no'} outputs of "
        f"the encoder {branch.encoder!r} are a global_embedding that names its space.",
        f"Add an adapter: {{kind: {kind}, output: {output.name}, space: {space}}}, with the output "
        "and the space that are meant.",
    )


def _outputs_read(branch: BranchSection) -> Iterator[tuple[tuple[str, ...], object]]:
    if branch.adapter is None:
        return
    yield ("output",), branch.adapter.output
    if branch.adapter.kind == "auto" and "scores" in branch.adapter.options:
        yield ("options", "scores"), branch.adapter.options["scores"]


def _check_way_on(parts: Parts, modality: str, branch: BranchSection) -> Iterator[Complaint]:
    if (branch.decoder is None) != (branch.then is None):
        given, wanted = ("decoder", "then") if branch.decoder is not None else ("then", "decoder")
        remedy = {
            "then": "Add then: the branch that the decoded text goes through.",
            "decoder": "Add decoder: the encoder entry that turns features into text.",
        }[wanted]
        yield Complaint(
            ("branches", modality, given),
            f"branches.{modality} has a {given!r} but no {wanted!r}.", remedy,
        )  # fmt: skip
    if branch.adapter is not None and branch.decoder is not None:
        yield Complaint(
            ("branches", modality, "adapter"),
            f"branches.{modality} has an adapter and a decoder.",
            "Keep one: a decoder's text is embedded by the branch it goes through.",
        )
    if branch.then is not None and branch.then not in parts.branches:
        yield Complaint(
            ("branches", modality, "then"),
            f"branches.{modality}.then names {branch.then!r}, which is not under branches.",
            suggest(branch.then, list(parts.branches)),
        )


def _check_cycles(parts: Parts) -> Iterator[Complaint]:
    after = {name: item.then for name, item in parts.readable_branches().items() if item.then}
    told: set[str] = set()
    for start in after:
        way = [start]
        while (step := after.get(way[-1])) is not None and step not in way:
            way.append(step)
        if step is None or step != start or told & set(way):
            continue
        told |= set(way)
        yield Complaint(
            ("branches", start, "then"),
            f"The branches {' -> '.join([*way, start])} run in a circle.",
            "End the chain in a branch with an adapter.",
        )


def _check_fusion(parts: Parts) -> Iterator[Complaint]:
    if parts.fusion is not None and parts.branches and parts.fusion.quorum > len(parts.branches):
        yield Complaint(
            ("fusion", "quorum"),
            f"fusion.quorum is {parts.fusion.quorum}, of only {len(parts.branches)} branches.",
            f"Write quorum: {len(parts.branches)} or less.",
        )


def _check_backends(parts: Parts) -> Iterator[Complaint]:
    if parts.backends is None:
        return
    deployed = [index for index, item in parts.backends.items() if item.deploy]
    if not deployed:
        yield Complaint(
            ("backends",), "No backend is marked deploy.",
            "Write deploy: true on the one that the target runs.",
        )  # fmt: skip
    for index in deployed[1:]:
        first = parts.backends[deployed[0]].backend
        yield Complaint(
            ("backends", index, "deploy"),
            f"backends[{deployed[0]}] ({first}) and backends[{index}] "
            f"({parts.backends[index].backend}) are both marked deploy.",
            "Keep deploy: true on one of them.",
        )
    seen: dict[tuple[str, str | None], int] = {}
    for index, item in parts.backends.items():
        first_index = seen.setdefault((item.backend, item.precision), index)
        if first_index != index:
            yield Complaint(
                ("backends", index),
                f"backends[{index}] repeats backends[{first_index}].",
                "Merge their targets, or give one another precision.",
            )
        yield from _check_targets(parts, index, item)


def _check_targets(parts: Parts, index: int, item: BackendSection) -> Iterator[Complaint]:
    path = ("backends", index, "targets")
    local = parts.deploy is None or parts.deploy.target == "local"
    if item.deploy and local and "host" not in item.targets:
        yield Complaint(
            path, f"backends[{index}] is deployed on this machine but not built for it.",
            "Add host to its targets.",
        )  # fmt: skip
    allowed = {"tensorrt_rtx": RTX_TARGETS, "tensorrt": None}.get(item.backend, ())
    for target in item.targets:
        if target != "host" and allowed is not None and target not in allowed:
            known = f"host, {', '.join(allowed)}" if allowed else "host"
            yield Complaint(path, f"{item.backend} cannot be built for {target}.", f"Use: {known}.")
    if item.backend == "tensorrt_rtx" and "SM75" in item.targets and item.precision != "fp16":
        yield Complaint(
            path, "TensorRT for RTX compiles for SM75 in fp16 only.",
            "Add precision: fp16 to this backend, or remove SM75.",
        )  # fmt: skip


def _check_rollout(parts: Parts) -> Iterator[Complaint]:
    if parts.deploy is None:
        return
    steps = parts.deploy.canary
    if any(later <= earlier for earlier, later in pairwise(steps)):
        yield Complaint(
            ("deploy", "canary"), f"The canary steps {steps} do not increase.",
            f"Write canary: {sorted({*steps, 100})}.",
        )  # fmt: skip
    elif steps[-1] != 100:
        yield Complaint(
            ("deploy", "canary"), f"The canary ends at {steps[-1]} percent, so it never finishes.",
            f"Write canary: {[*steps, 100]}.",
        )  # fmt: skip
    if parts.deploy.review.unattended and parts.deploy.target != "local":
        yield Complaint(
            ("deploy", "review", "unattended"),
            f"Unattended review is for the local target only, and the target is "
            f"{parts.deploy.target!r}.",
            "Write unattended: false, and let people approve.",
        )


def _check_waivers(parts: Parts) -> Iterator[Complaint]:
    for index, waiver in parts.waivers.items():
        try:
            date.fromisoformat(waiver.until)
        except ValueError:
            yield Complaint(
                ("gates", "waivers", index, "until"),
                f"gates.waivers[{index}].until is {waiver.until!r}, which is no day.",
                "Write the last day it holds, as 2030-01-31.",
            )


def _check_schedules(parts: Parts) -> Iterator[Complaint]:
    for flow, expression in parts.schedules.items():
        fault = find_cron_fault(expression)
        if fault is not None:
            yield Complaint(
                ("schedules", flow),
                f"The schedule {expression[:60]!r} of {flow} cannot be followed: {fault}.",
                "Write minute, hour, day of month, month and day of week: */15 * * * *.",
            )


def _check_alerts(parts: Parts) -> Iterator[Complaint]:
    alerts = parts.alerts
    if alerts is not None and alerts.drifted > alerts.windows:
        yield Complaint(
            ("alerts", "drifted"),
            f"alerts.drifted is {alerts.drifted}, of only {alerts.windows} windows.",
            f"Write drifted: {alerts.windows} or less.",
        )


_RULES: tuple[Callable[[Parts], Iterator[Complaint]], ...] = (
    _check_objectives,
    _check_modalities,
    _check_data,
    encoder_complaints,
    _check_branches,
    _check_cycles,
    _check_fusion,
    _check_backends,
    _check_rollout,
    _check_waivers,
    _check_schedules,
    _check_alerts,
)
