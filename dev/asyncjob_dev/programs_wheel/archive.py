"""A wheel, written by hand: files with their permissions, and what an installer wants to know."""

import base64
import hashlib
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.binaries.installed import PROGRAMS_DISTRIBUTION, PROGRAMS_PACKAGE, VERSIONS

TAGS = {
    # Linked without libc, so any will do.
    "linux-amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    # The oldest macOS that Go's newest compiler makes programs for.
    "darwin-amd64": "macosx_12_0_x86_64",
    "darwin-arm64": "macosx_12_0_arm64",
}
"""What an installer calls the platforms that programs are made for."""

EXECUTABLE, PLAIN = 0o100755, 0o100644

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0; those of all modules that are linked in are in licenses/
Requires-Python: >=3.11
Keywords: asyncjob,etcd,kube-apiserver,kubectl
Classifier: Development Status :: 3 - Alpha
Classifier: Intended Audience :: Developers
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3.11
Description-Content-Type: text/markdown

# {name}

{summary}. `asyncjob dev` runs them; nobody else needs to install this.
The programs are built from the pinned sources of etcd and Kubernetes, unchanged:
{programs}.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: asyncjob
Root-Is-Purelib: false
{tags}
"""


@dataclass(frozen=True)
class Program:
    """A program to be packed."""

    name: str
    version: str
    file: Path


def write_wheel(
    out: Path,
    *,
    platform: str,
    version: str,
    programs: Iterable[Program],
    licences: Mapping[str, bytes],
    epoch: int,
) -> Path:
    """Write the wheel into the folder `out`; `epoch` is the time that all its files carry."""
    chosen = list(programs)
    info = f"{PROGRAMS_PACKAGE}-{version}.dist-info"
    texts = {
        f"{PROGRAMS_PACKAGE}/__init__.py": b'"""Programs of a control plane, in `bin`."""\n',
        f"{PROGRAMS_PACKAGE}/py.typed": b"",
        f"{PROGRAMS_PACKAGE}/{VERSIONS}": _versions(chosen),
        **{f"{info}/licenses/{place}": text for place, text in sorted(licences.items())},
        f"{info}/METADATA": _metadata(version, chosen),
        f"{info}/WHEEL": WHEEL.format(tags=_tag_lines(TAGS[platform])).encode(),
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{PROGRAMS_PACKAGE}-{version}-py3-none-{TAGS[platform]}.whl"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for one in chosen:
            name = f"{PROGRAMS_PACKAGE}/bin/{one.name}"
            record.append(_add(wheel, name, one.file.read_bytes(), EXECUTABLE, epoch))
        for name, text in texts.items():
            record.append(_add(wheel, name, text, PLAIN, epoch))
        record.append(f"{info}/RECORD,,")
        _add(wheel, f"{info}/RECORD", ("\n".join(record) + "\n").encode(), PLAIN, epoch)
    return path


def _add(wheel: zipfile.ZipFile, name: str, data: bytes, mode: int, epoch: int) -> str:
    """Add a file; return its line for RECORD."""
    entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = f'"{name}"' if "," in name else name
    return f"{quoted},sha256={digest},{len(data)}"


def _versions(programs: Iterable[Program]) -> bytes:
    lines = ",\n".join(f'  "{one.name}": "{one.version}"' for one in programs)
    return f"{{\n{lines}\n}}\n".encode()


def _metadata(version: str, programs: Iterable[Program]) -> bytes:
    named = ", ".join(f"{one.name} {one.version}" for one in programs)
    summary = "The control plane's programs for asyncjob-dev: etcd, kube-apiserver and kubectl"
    text = METADATA.format(
        name=PROGRAMS_DISTRIBUTION, version=version, summary=summary, programs=named
    )
    return text.encode()


def _tag_lines(tags: str) -> str:
    return "\n".join(f"Tag: py3-none-{one}" for one in tags.split("."))
