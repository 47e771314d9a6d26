"""Shell completion: names of DaemonSets, nodes and namespaces of the cluster, and of contexts.

A completion prints nothing and gives up after two seconds: the user is in the middle of a line.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def complete_daemonset(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the DaemonSets of the namespace; a name that both kinds have with its prefix."""
    if "/" in incomplete:
        return complete_daemonset_and_kind(context, parameter, incomplete)
    advanced, native = _list(context, "ads", "ds")
    both = {*advanced} & {*native}
    bare = ({*advanced} | {*native}) - both
    doubled = [f"{kind}/{name}" for kind in ("ads", "ds") for name in both]
    return _matching([*bare, *doubled], incomplete)


def complete_daemonset_and_kind(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the DaemonSets of the namespace, all with their prefix."""
    advanced, native = _list(context, "ads", "ds")
    prefixed = [*(f"ads/{name}" for name in advanced), *(f"ds/{name}" for name in native)]
    return _matching(prefixed, incomplete)


def complete_node(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the nodes of the cluster."""
    return _matching(_list(context, "nodes")[0], incomplete)


def complete_namespace(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the namespaces of the cluster."""
    return _matching(_list(context, "namespaces")[0], incomplete)


def complete_context(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the contexts of the kubeconfig."""
    from everynode.cli.access.cluster_names import list_contexts  # late, so that --help is quick

    return _matching(list_contexts(context.params), incomplete)


def _list(context: click.Context, *kinds: str) -> list[list[str]]:
    from everynode.cli.access.cluster_names import list_names  # late, so that --help is quick

    return list_names(context.params, *kinds)


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted({*names}) if name.startswith(incomplete)]
