"""The allow-list of `http`: what an entry means, and that no spelling gets past it."""

import pytest
from yarl import URL

from asyncjob.errors import ConfigError
from asyncjob_worker.builtin.assembly import read_settings
from asyncjob_worker.builtin.http_allowlist import (
    HostAllowList,
    HostRefusedError,
    parse_host,
    parse_url,
)


def hosts(*entries: str) -> HostAllowList:
    return HostAllowList(tuple(map(parse_host, entries)))


def is_allowed(url: str, *entries: str) -> bool:
    try:
        hosts(*entries).check(parse_url(url))
    except HostRefusedError:
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("api.example.org", "https://api.example.org/x?y=z"),
        ("api.example.org", "http://api.example.org:80/"),
        ("API.Example.org", "https://api.EXAMPLE.org/"),
        ("api.example.org", "https://api.example.org./"),
        ("api.example.org.", "https://api.example.org/"),
        ("api.example.org:8443", "https://api.example.org:8443/"),
        ("*.example.org", "https://a.b.example.org/"),
        ("*.example.org:8443", "http://a.example.org:8443/"),
        ("10.0.0.5", "http://10.0.0.5/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("[::1]", "http://[0:0:0:0:0:0:0:1]/"),
        ("xn--bcher-kva.example", "https://bücher.example/"),
        ("my_service", "http://my_service/"),
    ],
)
def test_an_entry_allows_its_host_however_it_is_spelled(entry: str, url: str) -> None:
    assert is_allowed(url, entry)


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("api.example.org", "https://example.org/"),
        ("api.example.org", "https://x.api.example.org/"),
        ("api.example.org", "https://api.example.org.evil.test/"),
        ("api.example.org", "https://api.example.org:8443/"),
        ("api.example.org", "http://api.example.org:443/"),
        ("api.example.org:8443", "https://api.example.org/"),
        ("*.example.org", "https://example.org/"),
        ("*.example.org", "https://evilexample.org/"),
        ("*.example.org", "https://example.org.evil.test/"),
        ("10.0.0.5", "http://[::ffff:10.0.0.5]/"),
        ("api.example.org", "http://evil.test/api.example.org"),
        ("api.example.org", "http://evil.test?@api.example.org/"),
        ("api.example.org", "http://evil.test#@api.example.org/"),
    ],
)
def test_an_entry_allows_nothing_else(entry: str, url: str) -> None:
    assert not is_allowed(url, entry)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org@evil.test/",
        "http://api.example.org:80@evil.test/",
        "http://user:secret@api.example.org/",
        "http://api.example.org\\@evil.test/",
        "http://evil.test\\@api.example.org/",
        "http://api.example.org%2f@evil.test/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://127.0.0.01/",
        "http://0177.0.0.1/",
        "http://127.0.0.1../",
        "http://[fe80::1%25eth0]/",
        "http://evil.test%00.example.org/",
        "http://a..example.org/",
        "http://.example.org/",
        "file:///etc/passwd",
        "ftp://api.example.org/",
        "//api.example.org/",
        "/path",
        "http:///path",
        "http://api.example.org:99999/",
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    assert not passes_any_list(url)


def passes_any_list(url: str) -> bool:
    """Return whether any list at all could let it through."""
    try:
        parsed = parse_url(url)
    except ValueError:
        return False
    name = parsed.raw_host or ""
    return is_allowed(url, "api.example.org", "*.example.org", "127.0.0.1", name)


def test_full_width_letters_are_compared_as_the_name_that_is_connected_to() -> None:
    url = "http://\uff41\uff50\uff49.example.org/"
    assert URL(url).raw_host == "api.example.org"
    assert is_allowed(url, "api.example.org")
    assert not is_allowed(url, "other.example.org")


def test_an_address_never_fits_a_wildcard() -> None:
    with pytest.raises(ValueError, match="wildcard before an address"):
        parse_host("*.0.0.1")


@pytest.mark.parametrize("list_", ["*", "http://a.test", "a.test:0", "a b:x", "::1", "a.*.test"])
def test_an_entry_that_is_none_stops_the_worker_with_the_variables_name(list_: str) -> None:
    with pytest.raises(ConfigError, match="ASYNCJOB_HTTP_ALLOW"):
        read_settings({"ASYNCJOB_HTTP_ALLOW": list_})


def test_entries_are_separated_by_commas_or_white_space() -> None:
    settings = read_settings({"ASYNCJOB_HTTP_ALLOW": "a.test, b.test\n*.c.test:81"})
    assert [entry.name for entry in settings.hosts.entries] == ["a.test", "b.test", "c.test"]


def test_the_refusal_names_the_variable_and_what_to_add() -> None:
    with pytest.raises(HostRefusedError, match=r"b\.test:8443.*ASYNCJOB_HTTP_ALLOW"):
        hosts("a.test").check(parse_url("https://b.test:8443/"))
    with pytest.raises(HostRefusedError, match="it is empty"):
        hosts().check(parse_url("https://b.test/"))


@pytest.mark.parametrize("host", ["a" * 64 + ".example.org", ".".join(["abcdefg"] * 32)])
def test_a_name_that_no_resolver_takes_is_no_name(host: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        parse_url(f"http://{host}/")
