import pytest

from asyncjob_gateway.dashboard.links import Links, page_path_of_form, safe_redirect_target


def test_an_address_names_the_namespace_unless_it_is_the_gateways_own() -> None:
    assert Links().job("a.b") == "/dashboard/jobs/a.b"
    assert Links("team").job("a", {"did": "redriven"}) == (
        "/dashboard/jobs/a?namespace=team&did=redriven"
    )


def test_empty_filters_are_left_out_and_lists_are_repeated() -> None:
    address = Links().jobs(queue="", text="a b&c", phase=["Queued", "Running"])

    assert address == "/dashboard/jobs?text=a+b%26c&phase=Queued&phase=Running"


def test_a_name_cannot_leave_its_place_in_an_address() -> None:
    assert Links().job("../x?y#z") == "/dashboard/jobs/..%2Fx%3Fy%23z"


@pytest.mark.parametrize("target", ["/dashboard", "/dashboard/jobs?text=a", "/dashboard/jobs/x"])
def test_after_signing_in_one_goes_on_to_the_page_that_was_asked_for(target: str) -> None:
    assert safe_redirect_target(target) == target


@pytest.mark.parametrize(
    "target",
    [
        *("", "/", "/dashboards", "https://elsewhere.example/dashboard", "//elsewhere.example"),
        *("/\t/elsewhere.example", "/dashboard//elsewhere.example\n", "\\\\elsewhere.example"),
        *("///elsewhere.example/dashboard", "http:/dashboard", "data:text/html,/dashboard/"),
        *("/dashboard\\@elsewhere.example", "javascript:alert(1)", "/dashboard/\r\nSet-Cookie: a"),
    ],
)
def test_after_signing_in_one_is_sent_nowhere_else(target: str) -> None:
    assert safe_redirect_target(target) == "/dashboard/"


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/dead-letters/do", "/dead-letters"),
        ("/dead-letters/confirm", "/dead-letters"),
        ("/jobs/a.b-1/cancel", "/jobs/a.b-1"),
        ("/queues/mail/pause", "/queues"),
        ("/cron-jobs/nightly/trigger", "/cron-jobs"),
        *((path, "") for path in ("/nowhere", "/nowhere/x", "/jobs//elsewhere.example/cancel", "")),
    ],
)
def test_the_address_of_a_form_leads_back_to_its_page(path: str, page: str) -> None:
    assert page_path_of_form(path) == page
