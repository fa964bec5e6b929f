"""Tokens that expire soon: the API server itself gives none for less than ten minutes."""

import base64
import json
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

LEEWAY_SECONDS: Final = 60
"""For how long after its end the API server takes a token: clocks may differ."""


def expiring(token: str, signing_key: Path, seconds: float) -> str:
    """Return the same token, signed again, that the API server takes for so many seconds more."""
    head, body, _ = token.split(".")
    claims = json.loads(_decoded(body))
    now = int(time.time())
    claims["exp"] = int(now + seconds - LEEWAY_SECONDS)
    claims["iat"] = claims["nbf"] = now - 2 * LEEWAY_SECONDS
    signed = f"{head}.{_encoded(json.dumps(claims).encode())}"
    key = serialization.load_pem_private_key(signing_key.read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_encoded(signature)}"


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")
