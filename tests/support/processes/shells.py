"""Real shells on a terminal: a line is typed, Tab is pressed, and what the line is then is read."""

import os
import pty
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.processes.workers import until

TAB, SHOW, CLEAR = "\t", "\x14", "\x15"
"""Keys; the shells are told below what Ctrl-T does, Ctrl-U is theirs."""
PROMPT = b"what now? "
WAIT = 60.0
"""Seconds for what takes one; the limit is for shells that never answer."""

BASH = """\
source <(asyncjob completion bash)
show() {{ printf '%s' "$READLINE_LINE" > '{shown}.new' && mv '{shown}.new' '{shown}'; }}
bind -x '"\\C-t": show'
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
PS1='{prompt}'
"""
ZSH = """\
autoload -Uz compinit && compinit -u -d '{folder}/dump'
source <(asyncjob completion zsh)
show() {{ print -rn -- "$BUFFER" > '{shown}.new' && mv '{shown}.new' '{shown}' }}
zle -N show
bindkey -e
bindkey '^T' show
PS1='{prompt}'
"""


def lacks(shell: str) -> str:
    """Return why a shell cannot be tried here; nothing if it can."""
    return "" if shutil.which(shell) else f"{shell} is not installed: apt-get install {shell}"


@dataclass
class Line:
    """The line of a shell."""

    keys: int
    shown: Path

    def completed(self, typed: str) -> str:
        """Type this, press Tab, and return the line."""
        os.write(self.keys, (typed + TAB + SHOW + CLEAR).encode())
        until(self.shown.exists, WAIT, lambda: f"what {typed!r} became")
        line = self.shown.read_text()
        self.shown.unlink()
        return line


@contextmanager
def on_a_terminal(shell: str, folder: Path, environ: Mapping[str, str]) -> Iterator[Line]:
    """Start bash or zsh with nobody's settings, but our completion."""
    shown = folder / "shown"
    script = {"bash": BASH, "zsh": ZSH}[shell]
    file = folder / ".zshrc"
    file.write_text(script.format(folder=folder, shown=shown, prompt=PROMPT.decode()))
    command = {"bash": ["bash", "--noprofile", "--rcfile", str(file), "-i"], "zsh": ["zsh", "-d"]}
    ours, theirs = pty.openpty()
    env = {**environ, "ZDOTDIR": str(folder), "HOME": str(folder), "TERM": "dumb"}
    process = subprocess.Popen(
        [*command[shell], *(["-i"] if shell == "zsh" else [])],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
    )
    os.close(theirs)
    screen = bytearray()
    reader = threading.Thread(target=_drain, args=(ours, screen))
    reader.start()
    try:
        # A shell shows its prompt once keys go to its line editor.
        until(lambda: PROMPT in screen, WAIT, lambda: f"a prompt: {bytes(screen)!r}")
        yield Line(ours, shown)
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(ours)


def _drain(ours: int, screen: bytearray) -> None:
    try:
        while chunk := os.read(ours, 4096):
            screen.extend(chunk)
    except OSError:  # its end is closed
        return


def fish_offers(typed: str, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Return what fish offers for a line; its own command tells."""
    script = "asyncjob completion fish | source; complete --do-complete=$argv[1]"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, typed],
        env={**environ, "HOME": str(folder), "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return [line.split("\t")[0] for line in done.stdout.splitlines()]
