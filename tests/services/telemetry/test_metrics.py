"""What Prometheus reads from a gateway."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from services.telemetry.metrics import GatewayMetrics


def samples(metrics: GatewayMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    text = metrics.render().decode()
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_request_is_counted_and_only_answers_are_timed() -> None:
    metrics = GatewayMetrics()
    metrics.observe_request("image+text", "ok", "r1", 0.2, degraded=True)
    metrics.observe_request("image", "overloaded", "r1", 0.001, degraded=False)
    seen = samples(metrics)
    assert seen["modalgate_requests_total", ("image+text", "ok", "r1")] == 1
    assert seen["modalgate_requests_total", ("image", "overloaded", "r1")] == 1
    assert seen["multimodal_endtoend_latency_seconds_count", ("r1",)] == 1
    assert seen["modalgate_degraded_total", ("r1",)] == 1


def test_the_limits_of_the_slo_classes_are_bounds_of_a_bucket() -> None:
    metrics = GatewayMetrics()
    metrics.observe_request("text", "ok", "r1", 0.3, degraded=False)
    seen = samples(metrics)
    bucket = "multimodal_endtoend_latency_seconds_bucket"
    assert [seen[bucket, (le, "r1")] for le in ("0.08", "0.25", "0.3", "5.0")] == [0, 0, 1, 1]


def test_the_queue_is_a_gauge_and_refusals_have_a_reason() -> None:
    metrics = GatewayMetrics()
    metrics.observe_queue(3, 99, 1)
    metrics.count_refused("queue-rows")
    metrics.observe_engine("image", "r1", 0.01)
    seen = samples(metrics)
    assert (seen["modalgate_queue_rows", ()], seen["modalgate_queue_bytes", ()]) == (3, 99)
    assert seen["modalgate_engine_running", ()] == 1
    assert seen["modalgate_refused_total", ("queue-rows",)] == 1
    assert seen["modalgate_engine_latency_seconds_count", ("image", "r1")] == 1


def test_two_gateways_in_one_process_count_apart() -> None:
    one, other = GatewayMetrics(), GatewayMetrics()
    one.count_refused("expired")
    assert ("modalgate_refused_total", ("expired",)) not in samples(other)
