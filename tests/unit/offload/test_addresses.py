"""Which addresses are understood, and which of them are allowed."""

import pytest

from asyncjob.offload import Address, AddressError, AllowList, default_prefixes
from asyncjob.offload.addresses import payload_address, result_address, split_checksum

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a/b.json",
        "s3://bucket/a b/ü.json",
        "file:///var/lib/a.json",
        "memory://a/b",
        "https://host:8443/data/a%20b.json",
    ],
)
def test_an_address_is_written_as_it_was_read(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/etc/passwd", "begins with a protocol"),
        ("etc/passwd", "begins with a protocol"),
        ("S3://bucket/a", "begins with a protocol"),
        ("", "begins with a protocol"),
        ("file://etc/passwd", "the path of a file is absolute"),
        ("file:///", "not the name of a folder"),
        ("file:///data/../etc/passwd", "'..' is not the name"),
        ("s3://bucket/./a", "'.' is not the name"),
        ("s3://bucket//a", "'' is not the name"),
        ("s3://bucket/a/", "'' is not the name"),
        ("s3://bucket/%2e%2e/a", "'%2e%2e' is not the name"),
        ("https://host/data/%252e%252e/a", "'%252e%252e' is not the name"),
        ("https://host/data/a%2fb", "'a%2fb' is not the name"),
        ("https://host/data/a%5Cb", "'a%5Cb' is not the name"),
        ("https://host/a%00b", "'a%00b' is not the name"),
        ("s3://../a", "'..' is not the name"),
        ("s3:///a", "comes a bucket or host"),
        ("simplecache::s3://bucket/a", "no chain of protocols"),
        ("s3://bucket/a::file:///etc/passwd", "no chain of protocols"),
        ("file:///data\\..\\etc", "no backslash"),
        ("https://host/a?x=1", "no query"),
        ("s3://bucket/a#part", "no fragment"),
        ("s3://bucket/a\nb", "no control characters"),
        ("s3://bucket/" + "a" * 2048, "at most 2048 characters"),
        ("ftp://user:word@host/a", "no credentials"),
    ],
)
def test_an_address_with_a_second_meaning_is_refused(text: str, words: str) -> None:
    with pytest.raises(AddressError) as refused:
        Address.parse(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "text", ["ftp://user:word@host/a?b", "https://host/a?token=word", "x#word"]
)
def test_what_might_be_a_credential_is_not_repeated(text: str) -> None:
    with pytest.raises(AddressError) as refused:
        Address.parse(text)
    assert "word" not in str(refused.value)


def test_an_address_may_carry_the_contents_digest() -> None:
    assert split_checksum(f"s3://b/k#sha256={DIGEST}") == (Address.parse("s3://b/k"), DIGEST)
    assert split_checksum("s3://b/k") == (Address.parse("s3://b/k"), None)
    with pytest.raises(AddressError):
        split_checksum(f"s3://b/k#sha256={DIGEST[:-1]}")


ALLOWED = AllowList((Address.folder("s3://bucket/pre/"), Address.folder("file:///data")))


@pytest.mark.parametrize("text", ["s3://bucket/pre/a", "s3://bucket/pre/a/b", "file:///data/a"])
def test_what_lies_below_an_allowed_folder_may_be_read(text: str) -> None:
    address = Address.parse(text)
    assert [address.is_below(root) for root in ALLOWED.roots(address)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/pre",
        "s3://bucket/prefix/a",
        "s3://bucket/other/a",
        "s3://other/pre/a",
        "s3a://bucket/pre/a",
        "file:///database/a",
        "file:///etc/passwd",
        "local:///data/a",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_whatever_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(AddressError) as refused:
        ALLOWED.roots(Address.parse(text))
    assert str(refused.value) == (
        f"{text} is not below what may be read: s3://bucket/pre/, file:///data/"
    )


def test_without_any_folder_nothing_may_be_read() -> None:
    with pytest.raises(AddressError, match="what may be read: nothing"):
        AllowList(()).roots(Address.parse("s3://b/k"))


STORE = Address.folder("s3://bucket/pre")


def test_each_attempt_has_a_result_of_its_own() -> None:
    names = {
        str(result_address(STORE, namespace="ns", uid="u", attempt=attempt, claim=claim))
        for attempt, claim in [(1, "a"), (2, "a"), (1, "b")]
    }
    assert "s3://bucket/pre/results/ns/u/1-a.json" in names
    assert len(names) == 3


def test_a_namespace_may_read_what_is_its_own() -> None:
    own = AllowList(default_prefixes(STORE, "ns"))
    for address in (
        payload_address(STORE, namespace="ns", sha256=DIGEST),
        result_address(STORE, namespace="ns", uid="u", attempt=1, claim="c"),
    ):
        assert own.roots(address)
    with pytest.raises(AddressError):
        own.roots(payload_address(STORE, namespace="ns2", sha256=DIGEST))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "%2e%2e", "a\\b"])
def test_a_name_is_one_step_and_never_up(name: str) -> None:
    with pytest.raises(AddressError):
        STORE.join(name)
