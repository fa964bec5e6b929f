"""Into which namespace an object goes, and how it is called there. Pure.

The name of a job with an idempotencyKey or a deduplicationId follows from these and from its
namespace. Elsewhere it has to be called otherwise, so that the same key still finds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import click

from asyncjob.cli.backup.contents import ExportContents
from asyncjob.intake import dedup_name_prefix, key_name, sequence_name, sequence_of
from asyncjob.json_types import JsonObject, child, opt_text, text
from asyncjob.names import is_namespace


@dataclass(frozen=True, slots=True)
class NamespaceMap:
    """Namespaces by those of the file; what is not among them stays where it was."""

    targets: Mapping[str, str] = field(default_factory=dict)

    def target_namespace(self, namespace: str) -> str:
        """Return where objects of a namespace go."""
        return self.targets.get(namespace, namespace)

    def target_name(self, job: JsonObject) -> str:
        """Return how a job is called where it goes."""
        metadata, spec = child(job, "metadata"), child(job, "spec")
        name, old = text(metadata, "name"), text(metadata, "namespace")
        new = self.target_namespace(old)
        return name if new == old else _derived_name(name, spec, old, new)


def _derived_name(name: str, spec: JsonObject, old: str, new: str) -> str:
    key, dedup = opt_text(spec, "idempotencyKey"), opt_text(spec, "deduplicationId")
    number = sequence_of(name, dedup_name_prefix(old, dedup)) if dedup else 0
    if dedup and number:
        return sequence_name(dedup_name_prefix(new, dedup), number)
    if key and name == key_name(old, key):
        return key_name(new, key)
    return name


def namespace_map(
    contents: ExportContents, namespace: str | None, pairs: tuple[str, ...]
) -> NamespaceMap:
    """Return where all goes; raises UsageError where that is not clear."""
    if namespace and pairs:
        raise click.UsageError("give --namespace or --map, not both")
    if namespace:
        return _map_all_to(contents.namespaces, namespace)
    targets = dict(map(_parse_mapping, pairs))
    unknown = sorted(set(targets) - set(contents.namespaces))
    if unknown:
        raise click.UsageError(f"--map: the file has nothing of namespace {unknown[0]}")
    return NamespaceMap(targets)


def _map_all_to(namespaces: list[str], target: str) -> NamespaceMap:
    if len(namespaces) > 1:
        raise click.UsageError(
            f"--namespace: the file is of {len(namespaces)} namespaces "
            f"({', '.join(sorted(namespaces)[:3])}, …); say --map OLD=NEW for each that moves"
        )
    return NamespaceMap(dict.fromkeys(namespaces, target))


def _parse_mapping(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not (is_namespace(old) and is_namespace(new)):
        raise click.UsageError(f"--map: {text!r} is not OLD=NEW with two names of namespaces")
    return old, new
