"""What drivers raise, in our words: nothing in it that only the store should know."""

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from asyncjob.offload import Address, OffloadError
from asyncjob.offload.errors import (
    ObjectMissingError,
    StoreForbiddenError,
    StoreRefusedError,
    StoreUnavailableError,
)
from asyncjob.offload.store import translate_driver_errors

SIGNED = "https://store.test/bucket/key?X-Amz-Signature=SECRET&sig=SECRET"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(f"403, message='Forbidden', url='{SIGNED}'"),
        FileNotFoundError(SIGNED),
        PermissionError(f"{SIGNED} is not allowed"),
        ValueError(f'url="{SIGNED}", and GS://b/k?token=SECRET too'),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_query_of_a_url_comes_out_with_a_drivers_error(error: Exception) -> None:
    with (
        pytest.raises(OffloadError) as end,
        translate_driver_errors("read", Address.parse("s3://b/k")),
    ):
        raise error
    assert "SECRET" not in str(end.value)
    assert "https://store.test/bucket/key?…" in str(end.value)


def answered(status: int) -> aiohttp.ClientResponseError:
    info = aiohttp.RequestInfo(URL(SIGNED), "GET", CIMultiDictProxy(CIMultiDict()), URL(SIGNED))
    return aiohttp.ClientResponseError(info, (), status=status, message="so it is")


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (answered(404), ObjectMissingError),
        (answered(410), ObjectMissingError),
        (answered(401), StoreForbiddenError),
        (answered(403), StoreForbiddenError),
        (answered(405), StoreRefusedError),
        (answered(408), StoreUnavailableError),
        (answered(429), StoreUnavailableError),
        (answered(500), StoreUnavailableError),
        (answered(503), StoreUnavailableError),
        (aiohttp.ServerDisconnectedError(), StoreUnavailableError),
        (TimeoutError(), StoreUnavailableError),
        (None, ObjectMissingError),
        (RuntimeError("404"), ObjectMissingError),
    ],
    ids=lambda one: str(getattr(one, "status", getattr(one, "__name__", type(one).__name__))),
)
def test_a_web_server_that_is_away_has_not_lost_the_file(
    cause: Exception | None, kind: type[OffloadError]
) -> None:
    """The driver calls whatever goes wrong a missing file, and keeps what it was as the cause."""
    with (
        pytest.raises(OffloadError) as end,
        translate_driver_errors("read", Address.parse("https://a/b")),
    ):
        raise FileNotFoundError("https://a/b") from cause
    assert type(end.value) is kind
    assert "SECRET" not in str(end.value)
