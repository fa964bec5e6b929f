"""Where the jobs are: a cluster and namespace as kubectl means them, or a gateway."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import click

from asyncjob.cli.lazy import WHERE, SectionedOption
from asyncjob.names import is_namespace

Callback = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Place:
    """What was said about where to go; None: as kubectl would."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    server: str | None = None
    token: str | None = None
    everywhere: bool | None = None
    """Whether all namespaces are meant; only commands that list ask for it."""

    def over(self, other: "Place") -> "Place":
        """Return what was said here, and the other's where nothing was."""
        said: dict[str, Any] = {
            part.name: _first(getattr(self, part.name), getattr(other, part.name))
            for part in fields(Place)
        }
        return Place(**said)

    def checked(self) -> "Place":
        """Return the same; raises UsageError where it means two places at once."""
        if self.server and (self.context or self.kubeconfig):
            raise click.UsageError(
                "--server goes through a gateway, --context and --kubeconfig straight to a "
                "cluster: give one of them (--server '' overrules ASYNCJOB_SERVER)"
            )
        if self.namespace and not is_namespace(self.namespace):
            raise click.UsageError(f"--namespace: {self.namespace!r} is no name of a namespace")
        if self.everywhere:
            self._check_everywhere()
        return self

    def _check_everywhere(self) -> None:
        if self.namespace:
            raise click.UsageError("give --namespace or --all-namespaces, not both")
        if self.server:
            raise click.UsageError(
                "a gateway lists one namespace at a time: give --namespace in place of "
                "--all-namespaces, or leave --server out (--server '') to ask the cluster itself"
            )


def _first(one: object, other: object) -> object:
    return other if one is None else one


_FLAGS: Final[tuple[tuple[tuple[str, ...], str, str, str], ...]] = (
    (("--namespace", "-n"), "NAME", "Namespace; else the context's.", ""),
    (("--context",), "NAME", "Context of the kubeconfig; else its current one.", ""),
    (("--kubeconfig",), "FILE", "Else KUBECONFIG, the pod's own access, ~/.kube/config.", ""),
    (("--server",), "URL", "Through this gateway instead of the API server.", "ASYNCJOB_SERVER"),
    (("--token",), "TOKEN", "Bearer token for the gateway.", "ASYNCJOB_TOKEN"),
)


def place_options(*, reads_environment: bool) -> Callable[[Callback], Callback]:
    """Return a decorator that adds the options; only the root reads their variables."""

    def decorate(function: Callback) -> Callback:
        for flags, metavar, text, variable in reversed(_FLAGS):
            function = click.option(
                *flags,
                cls=SectionedOption,
                section=WHERE,
                metavar=metavar,
                help=f"{text}  [env: {variable}]" if variable else text,
                envvar=variable if reads_environment and variable else None,
            )(function)
        return function

    return decorate


def taken_from(options: dict[str, Any]) -> Place:
    """Take the options of a place out of all that was given."""
    return Place(**{part.name: options.pop(part.name, None) for part in fields(Place)})


def placed(function: Callback) -> Callback:
    """Add the options of a place to a command, which is given a `place`."""

    @functools.wraps(function)
    def call(**options: Any) -> Any:
        world = click.get_current_context().obj
        place = taken_from(options).over(world.root).checked()
        return function(place=place, **options)

    return place_options(reads_environment=False)(call)


def placed_anywhere(function: Callback) -> Callback:
    """Add the options of a place to a command that can list all namespaces at once."""
    return click.option(
        "--all-namespaces",
        "-A",
        "everywhere",
        cls=SectionedOption,
        section=WHERE,
        is_flag=True,
        default=None,
        help="All namespaces at once; not through a gateway.",
    )(placed(function))


def describe(place: Place, environ: Mapping[str, str]) -> str:
    """Return in words where that is, for messages."""
    if place.server:
        return f"gateway {place.server}"
    if place.context:
        return f"context {place.context}"
    return f"kubeconfig {place.kubeconfig or environ.get('KUBECONFIG') or '~/.kube/config'}"
