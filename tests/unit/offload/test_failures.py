"""What drivers raise, in our words: nothing in it that only the store should know."""

import pytest

from asyncjob.offload import Address, OffloadError
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
