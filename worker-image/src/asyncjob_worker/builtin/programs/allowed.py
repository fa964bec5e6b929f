"""Which programs may run, and what of the environment they see. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class ProgramRefusedError(Exception):
    """The program, or a variable for it, is not in the allow-list."""


@dataclass(frozen=True, slots=True)
class ProgramAllowList:
    """The allow-list. `inherited` is what programs get of the worker's own environment."""

    paths: frozenset[str] = frozenset()
    inherited: Mapping[str, str] = field(default_factory=dict)
    settable: frozenset[str] = frozenset()

    def check(self, argv: Sequence[str]) -> None:
        """Raise ProgramRefusedError unless the very path is listed."""
        if argv[0] not in self.paths:
            raise ProgramRefusedError(
                f"the worker may not run {argv[0]}: ASYNCJOB_EXEC_ALLOW does not list it"
            )

    def environment(self, requested: Mapping[str, str], folder: str) -> dict[str, str]:
        """Return the program's environment; raises ProgramRefusedError for a variable not listed.

        Variables can make an allowed program run another (LD_PRELOAD, PATH, GIT_SSH_COMMAND, …):
        hence the list.
        """
        refused = sorted(requested.keys() - self.settable)
        if refused:
            raise ProgramRefusedError(
                f"env.{refused[0]}: jobs may not set it, ASYNCJOB_EXEC_JOB_ENV does not list it"
            )
        return {"HOME": folder, "TMPDIR": folder, **self.inherited, **requested}
