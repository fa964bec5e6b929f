"""Keys and tokens of one control plane, made once per data directory."""

import secrets

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from asyncjob_dev.controlplane.layout import ControlPlanePaths
from asyncjob_dev.files import write_private


def ensure_credentials(layout: ControlPlanePaths) -> str:
    """Make the signing key and the admin token unless they are there; return the token."""
    if not layout.signing_key.exists():
        write_private(layout.signing_key, _new_key())
    if not layout.tokens.exists():
        write_private(layout.tokens, f'{secrets.token_urlsafe(32)},admin,admin,"system:masters"\n')
    return layout.tokens.read_text(encoding="ascii").split(",", 1)[0]


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return pem.decode("ascii")
