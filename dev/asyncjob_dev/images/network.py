"""How pip reaches its packages from inside a build: as from here, and without a trace in the image.

What this machine's pip is told (files and variables alike) is handed on as a secret of the build.
"""

import ast
import configparser
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FORWARDED_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
CA_INSIDE = "/etc/ssl/private-ca.pem"


def pip_secrets(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Write pip.conf and ca.pem to a folder; return the options that hand them to a build."""
    options = pip_options(_ask_pip(environ))
    authority = options.pop("cert", "") or environ.get("SSL_CERT_FILE", "")
    found = {}
    if authority and Path(authority).is_file():
        found["ca.pem"] = Path(authority)
        options["cert"] = CA_INSIDE
    found["pip.conf"] = folder / "pip.conf"
    write_config(found["pip.conf"], options)
    return [f"--secret=id={name},src={path}" for name, path in found.items()]


def pip_options(listing: str) -> dict[str, str]:
    """Return the options that matter, by name, from `pip config list`; the last of a name wins."""
    options = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in {*FORWARDED_OPTIONS, "cert"}:
            options[name] = str(ast.literal_eval(value))
    return options


def write_config(path: Path, options: Mapping[str, str]) -> None:
    """Write a pip.conf that only its owner can read: an index's address may hold a password."""
    config = configparser.RawConfigParser()
    config["global"] = dict(options)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        config.write(file)


def _ask_pip(environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
