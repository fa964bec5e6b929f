"""What faults are made with: clocks, tokens and disks that are as wrong as they are told to be."""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from asyncjob_chaos.tools.clocks import WrongClock, cannot_change_clocks
from asyncjob_chaos.tools.disks import cannot_mount, small_disk
from asyncjob_chaos.tools.tokens import LEEWAY_SECONDS, expiring

TELL_TIMES = """
import datetime, sys, time
for _ in sys.stdin:
    now = datetime.datetime.now(datetime.timezone.utc)
    print(time.time(), now.timestamp(), time.monotonic(), flush=True)
"""


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_a_token_is_signed_again_with_an_earlier_end(tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path / "key"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    claims = {"sub": "worker", "exp": int(time.time()) + 3600}
    made = expiring(f"{encoded({'alg': 'RS256'})}.{encoded(claims)}.old", file, 5)
    signed, _, signature = made.rpartition(".")
    key.public_key().verify(
        decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
    )
    body = json.loads(decoded(signed.split(".")[1]))
    assert body["sub"] == "worker"
    assert time.time() < body["exp"] + LEEWAY_SECONDS <= time.time() + 5


@pytest.mark.skipif(bool(cannot_change_clocks()), reason=cannot_change_clocks())
def test_a_process_has_a_wrong_wall_clock_and_a_right_monotonic_one(tmp_path: Path) -> None:
    clock = WrongClock(tmp_path, "one")
    with subprocess.Popen(
        [sys.executable, "-c", TELL_TIMES],
        env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        for wrong_by in (0.0, 600.0, -600.0, 0.0):
            clock.set(wrong_by)
            print(file=process.stdin, flush=True)
            wall, aware, monotonic = map(float, process.stdout.readline().split())
            assert wall - time.time() == pytest.approx(wrong_by, abs=5)
            assert aware == pytest.approx(wall, abs=5)
            assert monotonic == pytest.approx(time.monotonic(), abs=5)
        process.stdin.close()


@pytest.mark.skipif(bool(cannot_mount()), reason=cannot_mount())
def test_a_small_disk_is_full_until_it_is_freed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        disk.fill()
        assert disk.is_full()
        with pytest.raises(OSError, match="No space left"):
            (disk.path / "more").write_bytes(bytes(5000))
        disk.free()
        (disk.path / "more").write_bytes(bytes(5000))
        assert not disk.is_full()
    assert not (tmp_path / "disk" / "more").exists()
