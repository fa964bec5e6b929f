"""The image of the process that holds a pod's namespaces, packed without an image builder."""

import hashlib
import io
import json
import tarfile
from typing import Any

from asyncjob_dev.binaries.target import platform_name


def pause_image(program: bytes, name: str) -> bytes:
    """Return an archive, as `docker save` writes them, of an image that runs a static program."""
    layer = _tar({"pause": program})
    described = json.dumps(_image_config(hashlib.sha256(layer).hexdigest())).encode()
    file = f"{hashlib.sha256(described).hexdigest()}.json"
    index = [{"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}]
    return _tar({"layer.tar": layer, file: described, "manifest.json": json.dumps(index).encode()})


def _image_config(layer: str) -> dict[str, Any]:
    system, _, processor = platform_name().partition("-")
    return {
        "os": system,
        "architecture": processor,
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
