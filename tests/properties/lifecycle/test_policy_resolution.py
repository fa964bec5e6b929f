"""Resolution of policy layers, for all layers."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    Backoff,
    PolicyLayer,
    read_effective_policy,
    read_policy_layer,
    resolve_policy,
)

seconds = st.floats(0, 31_536_000)
names = st.lists(st.text(min_size=1, max_size=8), max_size=3).map(tuple)
layers = st.builds(
    PolicyLayer,
    max_retries=st.none() | st.integers(0, 100_000),
    backoff=st.none() | st.sampled_from(Backoff),
    initial_delay_seconds=st.none() | seconds,
    max_delay_seconds=st.none() | seconds,
    jitter=st.none() | st.floats(0, 1),
    retry_on=st.none() | names,
    no_retry_on=st.none() | names,
    max_crashes=st.none() | st.integers(0, 1000),
    execution_timeout_seconds=st.none() | st.integers(1, 1000),
    lease_duration_seconds=st.none() | st.integers(5, 600),
)


@given(layers, layers, layers)
def test_each_value_comes_from_the_first_layer_that_has_it(
    job: PolicyLayer, queue: PolicyLayer, handler: PolicyLayer
) -> None:
    found = resolve_policy(job, queue, handler)
    for field in fields(PolicyLayer):
        said = [getattr(layer, field.name) for layer in (job, queue, handler, BUILT_IN_POLICY)]
        assert getattr(found, field.name) == next(value for value in said if value is not None)


@given(layers)
def test_the_policy_in_force_survives_the_way_through_a_status(layer: PolicyLayer) -> None:
    policy = resolve_policy(layer)
    assert read_effective_policy({"effective": policy.to_json()}) == policy


@given(layers)
def test_a_policy_read_as_a_layer_decides_everything(layer: PolicyLayer) -> None:
    body = resolve_policy(layer).to_json()
    times = {name: body[name] for name in ("executionTimeoutSeconds", "leaseDurationSeconds")}
    again = read_policy_layer({**times, "retryPolicy": body})
    assert resolve_policy(again, PolicyLayer(max_retries=77)) == resolve_policy(layer)


@given(layers, layers)
def test_adding_a_weaker_layer_never_changes_what_a_stronger_one_says(
    strong: PolicyLayer, weak: PolicyLayer
) -> None:
    found = resolve_policy(strong, weak)
    for field in fields(PolicyLayer):
        said = getattr(strong, field.name)
        assert said is None or getattr(found, field.name) == said
