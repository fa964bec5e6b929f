"""The requests that `http` sends, apart from sending them."""

import pytest
from yarl import URL

from asyncjob_worker.builtin.http_request import HttpCall, Request, first_request, redirected
from support.parts.handler_runs import context


def request_of(**fields: object) -> Request:
    call = HttpCall.model_validate({"url": "https://a.test/x?y=z", **fields})
    return first_request(call, context().info, "agent/1")


def test_a_redirect_never_leads_from_https_to_http() -> None:
    with pytest.raises(ValueError, match=r"leads from https to http://a\.test/there$"):
        redirected(request_of(), 302, "http://a.test/there?secret=1")
    assert (
        redirected(request_of(url="http://a.test/"), 302, "https://a.test/").url.scheme == "https"
    )


def test_a_redirect_is_read_from_where_it_came() -> None:
    assert redirected(request_of(), 302, "../there").url == URL("https://a.test/there")
    assert redirected(request_of(), 302, "//b.test/").url == URL("https://b.test/")


def test_another_port_is_another_origin() -> None:
    request = request_of(headers={"Authorization": "x"})
    assert "Authorization" in redirected(request, 302, "https://a.test:443/").headers
    assert "Authorization" not in redirected(request, 302, "https://a.test:8443/").headers


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("HEAD", 303, "HEAD"),
        ("POST", 301, "GET"),
        ("PUT", 303, "GET"),
        ("DELETE", 301, "DELETE"),
        ("PUT", 302, "PUT"),
        ("POST", 308, "POST"),
    ],
)
def test_the_method_after_a_redirect_is_that_of_the_standard(
    method: str, status: int, then: str
) -> None:
    request = request_of(method=method, body="b")
    following = redirected(request, status, "/there")
    assert following.method == then
    assert (following.body is None) is (then == "GET")
    assert ("Content-Type" in following.headers) is (then != "GET")


def test_what_is_shown_of_a_request_has_no_query() -> None:
    assert request_of(method="PUT").shown == "PUT https://a.test/x"
