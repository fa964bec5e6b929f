"""Runs once, as root, in the last stage of an image build: what needs its Python but no shell.

Takes out the installers, which a running worker never needs, and compiles what a worker imports,
because a read-only file system cannot keep what is compiled later. The modules to import are its
arguments, the worker's by default. The official Kubernetes client has a thousand model classes that
nobody here imports, and brings OAuth along; Pygments, which Rich brings along, knows hundreds of
languages, OpenTelemetry all names of its own, and fsspec stores of all kinds: of these, only what
is imported is compiled.
"""

import compileall
import importlib
import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from py_compile import PycInvalidationMode

INSTALLERS = (
    "bin/pip*",
    "bin/wheel",
    "lib/python3*/ensurepip",
    "lib/python3*/site-packages/_distutils_hack",
    "lib/python3*/site-packages/distutils-precedence.pth",
    "lib/python3*/site-packages/pip*",
    "lib/python3*/site-packages/pkg_resources",
    "lib/python3*/site-packages/setuptools*",
    "lib/python3*/site-packages/wheel*",
    "share/python-wheels",
)
LARGE = re.compile("/(kubernetes|oauthlib|pygments|opentelemetry/semconv|fsspec/implementations)/")
IMPORTED = ("asyncjob_worker.cli", "asyncjob_worker.builtin")


def remove_installers(base: Path) -> None:
    """Remove pip, its companions and their wheels, where the base image has them."""
    for pattern in INSTALLERS:
        for path in base.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def compile_all(packages: str, modules: Sequence[str] = IMPORTED) -> None:
    """Compile the installed packages, and by importing modules those of Python itself."""
    mode = PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(packages, quiet=1, rx=LARGE, invalidation_mode=mode):
        sys.exit(f"not everything in {packages} can be compiled")
    for module in modules:
        importlib.import_module(module)


if __name__ == "__main__":
    remove_installers(Path(sys.base_prefix))
    compile_all(sysconfig.get_path("purelib"), sys.argv[1:] or IMPORTED)
