"""Building with the real Go: small modules, with the compiler's cache of this machine.

Their packages are new each time, so that they are compiled; the standard library is not.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from asyncjob_dev.binaries.resolver import Resolver
from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import SourcesUnreachableError
from asyncjob_dev.process import wait_until
from support.processes.signals import ignoring

pytestmark = pytest.mark.skipif(
    shutil.which("go") is None, reason="there is no Go; KUBEBUILDER_ASSETS has the programs then"
)

CHAIN = 12
"""Packages of a program, each of which imports the next: compiled one by one."""

BUILDER = """
import os, sys
from pathlib import Path
from asyncjob_dev.binaries.packages import BuildCounts
from asyncjob_dev.binaries.resolver import Resolver

count_line = BuildCounts.count_line

def tell(self, tool, line):
    known = count_line(self, tool, line)
    if line.startswith("example.test/") or line.startswith("go: "):
        print(line, self.text(), sep="\\t", flush=True)
    return known

BuildCounts.count_line = tell
found = Resolver(os.environ, tools_dir=Path(sys.argv[1])).resolve_all(sys.argv[2:])
print("found", *[one.source for one in found], sep="\\t", flush=True)
"""


class ColdBuild:
    """Tools to be built, and builders of them as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.tools = folder / "tools"
        self.cache = folder / "cache"
        self.environ = {
            **os.environ,
            "ASYNCJOB_CACHE": str(self.cache),
            "GOCACHE": os.environ.get("GOCACHE") or str(cache_dir(os.environ) / "go" / "build"),
            "GOMODCACHE": str(folder / "modules"),
            "KUBEBUILDER_ASSETS": "",
        }

    def add(self, tool: str, *, imports: str = "", requires: str = "") -> None:
        """Write the module of a tool, unlike any that was ever compiled."""
        module, folder = f"example.test/{tool}", self.tools / tool
        chain = [f"{module}/p{number}" for number in range(CHAIN)]
        folder.mkdir(parents=True)
        (folder / "go.mod").write_text(
            f"module {module}\n\ngo 1.24.0\n\ntool {module}\n\n{requires}\n"
        )
        (folder / "go.sum").touch()
        first = (
            f'import ("{chain[0]}"; {imports or "_ " + repr(chain[1]).replace(chr(39), chr(34))})'
        )
        (folder / "main.go").write_text(f"package main\n{first}\nfunc main() {{ println(p0.V) }}\n")
        for number, path in enumerate(chain):
            package = folder / f"p{number}"
            package.mkdir()
            below = f'import "{chain[number + 1]}"\n' if number + 1 < CHAIN else ""
            value = f"p{number + 1}.V" if below else f'"{uuid4()}"'
            text = (
                f"package {path.rpartition('/')[2]}\n{below}var V = {value}\nvar W = `{uuid4()}`\n"
            )
            (package / "p.go").write_text(text)

    @contextmanager
    def builder(self, *tools: str) -> Iterator["subprocess.Popen[str]"]:
        command = [sys.executable, "-c", BUILDER, str(self.tools), *tools]
        with subprocess.Popen(
            command, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def compiled(self, *tools: str) -> list[tuple[str, str]]:
        """Build to the end; return the packages that were compiled, and what was said of each."""
        with self.builder(*tools) as process:
            said, complaints = process.communicate()
        assert process.returncode == 0, complaints
        rows = [tuple(line.split("\t")[:2]) for line in said.splitlines()]
        return [(path, text) for path, text in rows if path.startswith("example.test/")]


@pytest.fixture
def cold_build(tmp_path: Path) -> Iterator[ColdBuild]:
    made = ColdBuild(tmp_path)
    yield made
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


def test_progress_counts_every_package_up_to_the_whole(cold_build: ColdBuild) -> None:
    cold_build.add("one")
    cold_build.add("two")
    rows = cold_build.compiled("one", "two")
    assert len(rows) == 2 * (CHAIN + 1)
    done, whole = map(int, re.findall(r"\d+", rows[-1][1]))
    assert done == whole
    assert whole > 2 * (CHAIN + 1)


def test_a_build_that_was_killed_goes_on_where_it_was(cold_build: ColdBuild) -> None:
    cold_build.add("one")
    before: list[str] = []
    with cold_build.builder("one") as process:
        assert process.stdout
        for line in process.stdout:
            before.append(line.split("\t")[0])
            if len(before) == CHAIN // 2:
                os.kill(process.pid, signal.SIGKILL)
                break
        process.wait()
    left = next((cold_build.cache / "go" / "tmp").iterdir())
    after = [path for path, _ in cold_build.compiled("one")]
    # Each is compiled after the one before: only what was in work at the end is done again.
    assert set(before[:-1]).isdisjoint(after)
    assert len(after) <= CHAIN + 1 - (len(before) - 1)
    assert not left.exists()


def test_what_an_earlier_build_compiled_counts_from_the_start(cold_build: ColdBuild) -> None:
    cold_build.add("one")
    whole = cold_build.compiled("one")[-1][1]
    shutil.rmtree(cold_build.cache / "bin")
    (cold_build.tools / "one" / "main.go").write_text(
        (cold_build.tools / "one" / "main.go").read_text() + f"\nvar V = `{uuid4()}`\n"
    )
    ((path, text),) = cold_build.compiled("one")
    assert (path, text) == ("example.test/one", whole)


def test_two_processes_build_once_and_the_second_says_who_builds(cold_build: ColdBuild) -> None:
    cold_build.add("one")
    with cold_build.builder("one") as first:
        assert first.stdout
        assert first.stdout.readline().startswith("example.test/")
        os.kill(first.pid, signal.SIGSTOP)
        with cold_build.builder("one") as second:
            assert second.stdout
            assert second.stderr
            waiting = second.stderr.readline()
            os.kill(first.pid, signal.SIGCONT)
            assert second.stdout.read() == "found\tcache (built)\n"
        assert first.stdout.read().endswith("found\tbuilt\n")
    assert re.search(rf"waiting for process {first.pid} \(.*\), which is getting one", waiting)


def test_ctrl_c_ends_the_compiler_and_says_that_nothing_is_lost(tmp_path: Path) -> None:
    fake = tmp_path / "path" / "go"
    fake.parent.mkdir()
    sleeps = 'echo $$ >"$ASYNCJOB_CACHE/pid"; exec sleep 300'
    fake.write_text(f"#!/bin/sh\ncase $1 in env) echo go1.99;; *) {sleeps};; esac\n")
    fake.chmod(0o755)
    environ = {
        **os.environ,
        "ASYNCJOB_CACHE": str(tmp_path),
        "KUBEBUILDER_ASSETS": "",
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
    }
    # No archive has it, so that no network is asked.
    command = [sys.executable, "-m", "asyncjob_dev.binaries", "kube-controller-manager"]
    with ignoring(signal.SIGINT):
        process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            wait_until(lambda: bool(_pid(tmp_path)), "a compiler", within=60)
            compiler = _pid(tmp_path)  # now: the next one may be about to write its own
            process.send_signal(signal.SIGINT)
            _, complaints = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 130
    assert "the same command goes on from there" in complaints
    assert not Path(f"/proc/{compiler}").exists()


def _pid(folder: Path) -> str:
    path = folder / "pid"
    return path.read_text().strip() if path.exists() else ""


class Proxy:
    """A proxy for modules on loopback, which can be made to break off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.broken = ""
        proxy = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given, directory=str(folder))

            def do_GET(self) -> None:
                if proxy.broken and proxy.broken in self.path:
                    self.connection.close()
                else:
                    proxy.asked.append(self.path)
                    super().do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def offer(self, module: str) -> None:
        place = self.folder / module / "@v"
        place.mkdir(parents=True)
        (place / "v1.0.0.info").write_text('{"Version": "v1.0.0"}')
        (place / "v1.0.0.mod").write_text(f"module {module}\n\ngo 1.24.0\n")
        with zipfile.ZipFile(place / "v1.0.0.zip", "w") as archive:
            archive.writestr(f"{module}@v1.0.0/go.mod", f"module {module}\n\ngo 1.24.0\n")
            archive.writestr(f"{module}@v1.0.0/x.go", f"package x\nvar V = `{uuid4()}`\n")

    def zips(self, module: str) -> int:
        return sum(path == f"/{module}/@v/v1.0.0.zip" for path in self.asked)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(tmp_path / "proxy")
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_network_lost_in_the_middle_is_said_and_what_has_come_is_kept(
    cold_build: ColdBuild, proxy: Proxy, tmp_path: Path
) -> None:
    modules = ("example.test/a/x", "example.test/b/x")
    for module in modules:
        proxy.offer(module)
    requires = "\n".join(f"require {module} v1.0.0" for module in modules)
    imports = "; ".join(f'_ "{module}"' for module in modules)
    cold_build.add("one", imports=imports, requires=requires)
    cold_build.environ |= {"GOPROXY": proxy.url, "GOSUMDB": "off"}
    _write_sums(cold_build, tmp_path / "elsewhere")
    proxy.asked.clear()
    proxy.broken = "/b/x/@v/v1.0.0.zip"
    resolver = Resolver(cold_build.environ, tools_dir=cold_build.tools)
    with pytest.raises(SourcesUnreachableError, match=f"GOPROXY.*{proxy.url}.*goes on from there"):
        resolver.resolve("one")
    proxy.broken = ""
    assert resolver.resolve("one").source == "built"
    assert [proxy.zips(module) for module in modules] == [1, 1]


def _write_sums(cold_build: ColdBuild, modules: Path) -> None:
    """Have Go write the checksums, with sources that the test is not to find later."""
    environ = {**cold_build.environ, "GOMODCACHE": str(modules), "GOFLAGS": "-mod=mod -modcacherw"}
    subprocess.run(
        ["go", "mod", "download", "all"], cwd=cold_build.tools / "one", env=environ, check=True
    )
