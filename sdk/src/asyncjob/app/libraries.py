"""Errors of well-known libraries by the path of their class, so that none has to be imported."""

from collections.abc import Mapping
from typing import Final

_TIMEOUT: Final = "Timeout"
_NETWORK: Final = "Network"

LIBRARY_CATEGORIES: Final[Mapping[str, str]] = {
    "aiohttp.client_exceptions.ServerTimeoutError": _TIMEOUT,
    "aiohttp.client_exceptions.ClientConnectionError": _NETWORK,
    "aiohttp.client_exceptions.ClientPayloadError": _NETWORK,
    "httpx.TimeoutException": _TIMEOUT,
    "httpx.TransportError": _NETWORK,
    "httpcore.TimeoutException": _TIMEOUT,
    "httpcore.NetworkError": _NETWORK,
    "requests.exceptions.Timeout": _TIMEOUT,
    "requests.exceptions.ConnectTimeout": _TIMEOUT,
    "requests.exceptions.ConnectionError": _NETWORK,
    "requests.exceptions.ChunkedEncodingError": _NETWORK,
    "urllib3.exceptions.TimeoutError": _TIMEOUT,
    "urllib3.exceptions.NewConnectionError": _NETWORK,
    "urllib3.exceptions.ProtocolError": _NETWORK,
    "urllib3.exceptions.MaxRetryError": _NETWORK,
    "botocore.exceptions.ConnectTimeoutError": _TIMEOUT,
    "botocore.exceptions.ReadTimeoutError": _TIMEOUT,
    "botocore.exceptions.EndpointConnectionError": _NETWORK,
    "botocore.exceptions.ConnectionClosedError": _NETWORK,
    "redis.exceptions.TimeoutError": _TIMEOUT,
    "redis.exceptions.ConnectionError": _NETWORK,
}
"""Class path → category. Subclasses go by the nearest base class, like all others."""
