from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from asyncjob_gateway import problem_types
from asyncjob_gateway.dashboard import security
from asyncjob_gateway.dashboard.security import field_value, nonempty_fields, read_form
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import BodyReader

FORM = "application/x-www-form-urlencoded"
SECRET = "s3cret"
MOST = 10_000


def request(
    body: bytes = b"", *, scheme: str = "http", cookie: str = "", **headers: str
) -> Request:
    given = {"host": "jobs.example", "content-type": FORM}
    given |= {name.replace("_", "-"): text for name, text in headers.items()}
    if cookie:
        given["cookie"] = cookie
    raw = [(name.encode(), text.encode()) for name, text in given.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/dashboard/submit",
        "query_string": b"",
        "headers": raw,
        "scheme": scheme,
        "server": ("jobs.example", 80),
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


def sent(token: str = SECRET, *, cookie: str = SECRET, **more: str) -> Request:
    body = urlencode({"form-token": token, "type": " a ", "empty": " "}).encode()
    return request(body, cookie=f"asyncjob-forms={cookie}", **more)


async def refused(asked: Request) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await read_form(asked, BodyReader(5.0), MOST)
    return caught.value


async def test_a_form_of_our_own_page_is_read() -> None:
    form = await read_form(
        sent(origin="http://jobs.example", sec_fetch_site="same-origin"), BodyReader(5.0), MOST
    )

    assert field_value(form, "type") == "a"
    assert nonempty_fields(form) == {"type": "a"}


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
    ],
)
async def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    assert (await refused(sent(**headers))).kind is problem_types.STALE_FORM


async def test_a_form_without_the_browsers_own_token_is_refused() -> None:
    assert (await refused(sent("guess"))).kind is problem_types.STALE_FORM
    assert (await refused(sent(""))).kind is problem_types.STALE_FORM
    assert (await refused(request(b"form-token="))).kind is problem_types.STALE_FORM


async def test_what_is_no_form_is_refused() -> None:
    assert (
        await refused(request(b"{}", content_type="application/json"))
    ).kind is problem_types.UNSUPPORTED_MEDIA_TYPE
    assert (await refused(request(b"a=%ff"))).kind is problem_types.MALFORMED
    assert (await refused(request(b"&".join([b"a="] * 3000)))).kind is problem_types.MALFORMED


async def test_a_form_is_read_up_to_a_limit_only() -> None:
    assert (await refused(request(b"a=" + b"b" * MOST))).kind is problem_types.TOO_LARGE
    assert (await refused(request(content_length=str(MOST + 1)))).kind is problem_types.TOO_LARGE


def kept(asked: Request) -> SimpleCookie:
    response = Response()
    security.set_token_cookie(asked, response, "t0ken")
    return SimpleCookie(response.headers["set-cookie"])


def test_the_token_is_kept_from_scripts_other_sites_and_rest() -> None:
    morsel = kept(request())["asyncjob-token"]

    assert (morsel.value, morsel["path"], morsel["samesite"]) == ("t0ken", "/dashboard", "strict")
    assert morsel["httponly"]
    assert not morsel["max-age"]
    assert not morsel["secure"]


@pytest.mark.parametrize(
    "asked", [request(scheme="https"), request(x_forwarded_proto="https, http")]
)
def test_on_an_encrypted_connection_the_cookie_is_for_such_ones_only(asked: Request) -> None:
    assert kept(asked)["__Secure-asyncjob-token"]["secure"]


def test_the_cookies_token_says_who_asks_unless_a_proxy_does() -> None:
    by_cookie = request(cookie="asyncjob-token=mine")
    by_proxy = request(cookie="asyncjob-token=mine", authorization="Bearer proxys")

    assert security.auth_headers(by_cookie)["authorization"] == "Bearer mine"
    assert security.is_cookie_authenticated(by_cookie)
    assert security.auth_headers(by_proxy)["authorization"] == "Bearer proxys"
    assert not security.is_cookie_authenticated(by_proxy)


def test_a_cookie_of_an_unencrypted_connection_does_not_count_on_an_encrypted_one() -> None:
    planted = request(scheme="https", cookie="asyncjob-token=planted")

    assert "authorization" not in security.auth_headers(planted)


def test_a_browser_keeps_one_token_for_all_of_its_forms() -> None:
    fresh, known = request(), request(cookie=f"asyncjob-forms={SECRET}")

    given = security.form_token(fresh)
    assert security.form_token(fresh) == given
    assert security.form_token(known) == SECRET
    response = Response()
    security.set_form_token_cookie(known, response)
    assert "set-cookie" not in response.headers
    security.set_form_token_cookie(fresh, response)
    assert given in response.headers["set-cookie"]
