import pytest

from asyncjob.rest.submission import Submission
from asyncjob_gateway.dashboard.pages.submit import SubmitForm, read_submit_form


def refused(**given: str) -> SubmitForm:
    read = read_submit_form({"type": "report", **given})
    assert isinstance(read, SubmitForm)
    return read


def test_a_form_becomes_a_submission() -> None:
    read = read_submit_form(
        {
            "type": "report",
            "queue": "mail",
            "payload": '{"a": [1, null]}',
            "labels": "team=mail, tier=free",
            "priority": "-5",
            "maxRetries": "2",
            "notBefore": "2027-01-01T00:00:00Z",
            "ttlSecondsAfterFinished": "60",
        }
    )

    assert isinstance(read, Submission)
    assert read.payload == {"a": [1, None]}
    assert read.labels == {"team": "mail", "tier": "free"}
    assert (read.priority, read.queue, read.ttl_seconds_after_finished) == (-5, "mail", 60)
    assert read.retry_policy
    assert read.retry_policy.max_retries == 2


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("payload", "{not json"),
        ("payload", '{"a": NaN}'),
        ("payload", '"\\ud800"'),
        ("priority", "high"),
        ("priority", "5000"),
        ("maxRetries", "--1"),
        ("maxRetries", "9999999"),
        ("labels", "team"),
        ("labels", "team=" + "x" * 64),
        ("notBefore", "tomorrow"),
        ("name", "Not A Name"),
        ("type", "no spaces please"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_nothing_typed_is_lost(
    field: str, text: str
) -> None:
    form = refused(**{field: text})

    assert set(form.errors) == {field}
    assert form.given[field] == text


def test_a_form_without_a_type_is_refused() -> None:
    form = read_submit_form({"queue": "mail"})

    assert isinstance(form, SubmitForm)
    assert set(form.errors) == {"type"}


def test_options_are_open_where_one_of_them_is_wrong() -> None:
    assert refused(priority="high").more
    assert not refused(payload="{").more
