"""`everynode dashboard`: a page that shows all rollouts, served on this machine alone."""

from __future__ import annotations

from functools import partial

import click

from everynode.cli.access.options import ClusterOptions, cluster_options


@click.command("dashboard")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show all namespaces; the default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    default=0,
    help="Where it listens on 127.0.0.1; any free port by default.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Let the page pause, resume, partition and undo, with a token that is printed.",
)
@partial(cluster_options, namespace="Show only this namespace.")
def command(
    *,
    all_namespaces: bool,
    port: int,
    no_browser: bool,
    allow_actions: bool,
    access: ClusterOptions,
) -> None:
    """Show all rollouts in a browser, as they change.

    It listens on 127.0.0.1 only and reads with your own rights. It changes nothing unless you allow
    it: then each change is shown before it is made. It ends with Ctrl-C.

    \b
    All namespaces:        everynode dashboard
    One namespace:         everynode dashboard -n agents
    On another machine:    everynode dashboard --no-browser --port 8765
    """
    if all_namespaces and access.namespace:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    from everynode.cli.serving import event_loop  # late, as all that --help does not need

    event_loop.run(_serve(access, port, browser=not no_browser, acts=allow_actions))


async def _serve(access: ClusterOptions, port: int, *, browser: bool, acts: bool) -> None:
    import asyncio
    import webbrowser

    from everynode.cli.access.cluster import open_cluster
    from everynode.dashboard.server import Dashboard, serve

    async with open_cluster(access) as cluster:
        namespaces = (access.namespace,) if access.namespace else ()
        token = cluster.clock.uid() if acts else ""
        dashboard = Dashboard(
            cluster.client,
            cluster.clock,
            cluster=access.context or "current context",
            namespaces=namespaces,
            token=token,
        )
        async with serve(dashboard, port) as listening:
            address = f"http://127.0.0.1:{listening}/"
            click.echo(f"dashboard at {address}; Ctrl-C stops it")
            if token:
                click.echo(f"token for actions, which the page asks for once: {token}")
            if browser:
                await asyncio.to_thread(webbrowser.open, address)
            await asyncio.Event().wait()
