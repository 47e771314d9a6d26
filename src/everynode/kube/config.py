"""Which cluster to talk to, and how: kubeconfig files as kubectl reads them, or the pod's own.

Written by hand because a client library costs 30 to 70 MB of memory for these few rules, and
because every mistake shall be one line that says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from everynode.clock import Clock
from everynode.kube import credentials as who
from everynode.kube.credentials import ConfigError, Credentials, Identity, KeyPair
from everynode.kube.proxies import proxy_for

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Access:
    """The way to one API server."""

    server: str
    credentials: Credentials
    ca: bytes = b""  # PEM; empty: the certificates the system trusts
    insecure: bool = False
    server_name: str = ""  # expected in the server's certificate, where it is not the host's
    proxy: str = ""
    namespace: str = "default"
    context: str = ""  # empty inside a cluster


# --- The file --------------------------------------------------------------------------------


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class _EnvVar(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class _Context(msgspec.Struct, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster = msgspec.field(default_factory=_Cluster)


class _NamedUser(msgspec.Struct):
    name: str
    user: _User = msgspec.field(default_factory=_User)


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context = msgspec.field(default_factory=_Context)


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class _Merged:
    """All files as one; each entry with the folder its relative paths start from."""

    clusters: dict[str, tuple[_Cluster, Path]]
    users: dict[str, tuple[_User, Path]]
    contexts: dict[str, _Context]
    current: str


def load(
    clock: Clock,
    *,
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str] | None = None,
    account: str = ACCOUNT,
) -> Access:
    """Find the way to a cluster as kubectl does; raises ConfigError.

    The file named, else those of $KUBECONFIG, else ~/.kube/config, else the service account of
    the pod we run in.
    """
    environ = os.environ if environ is None else environ
    paths = _paths(kubeconfig, environ)
    if not paths:
        if "KUBERNETES_SERVICE_HOST" in environ and not context:
            return in_cluster(clock, environ=environ, account=account)
        raise ConfigError(
            "no kubeconfig: there is no ~/.kube/config, $KUBECONFIG is not set and this is not a "
            "pod; name a file with --kubeconfig"
        )
    merged = _merge([(path, _read(path)) for path in paths])
    return _access(merged, context, clock, environ)


def in_cluster(
    clock: Clock, *, environ: Mapping[str, str] | None = None, account: str = ACCOUNT
) -> Access:
    """Return the way that every pod is given; raises ConfigError."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
    folder = Path(account)
    if not (folder / "token").exists():
        raise ConfigError(
            f"the pod has no service account token at {folder}; "
            "set automountServiceAccountToken: true"
        )
    namespace = folder / "namespace"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server=server,
        credentials=who.FromFiles(who.Files(token=str(folder / "token")), clock),
        ca=who.read_file(str(folder / "ca.crt"), "certificate authority"),
        proxy=proxy_for(server, environ),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def _paths(kubeconfig: str, environ: Mapping[str, str]) -> list[Path]:
    if kubeconfig:
        return [Path(kubeconfig).expanduser()]
    listed = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        there = [path for path in listed if path.exists()]
        if not there:
            names = ", ".join(map(str, listed))
            raise ConfigError(f"$KUBECONFIG names {names}, which does not exist")
        return there
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [home] if home.exists() else []


def _read(path: Path) -> _File:
    text = who.read_file(str(path), "kubeconfig")
    try:
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigError(f"the kubeconfig {path} is not YAML{where}: {problem}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the kubeconfig {path} is not a text file") from None
    except ValueError as error:  # of a date, say
        raise ConfigError(f"the kubeconfig {path} is not YAML: {error}") from None
    try:
        return msgspec.convert(_without_nulls(content) or {}, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the kubeconfig {path} is wrong: {error}") from None
    except RecursionError:
        raise ConfigError(f"the kubeconfig {path} is wrong: it contains itself") from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _merge(files: Sequence[tuple[Path, _File]]) -> _Merged:
    """Put files together: whoever says something first is right."""
    merged = _Merged(
        {}, {}, {}, next((f.current_context for _, f in files if f.current_context), "")
    )
    for path, file in files:
        folder = path.resolve().parent
        for cluster in file.clusters or ():
            merged.clusters.setdefault(cluster.name, (cluster.cluster, folder))
        for user in file.users or ():
            merged.users.setdefault(user.name, (user.user, folder))
        for context in file.contexts or ():
            merged.contexts.setdefault(context.name, context.context)
    return merged


# --- From the file to the way ----------------------------------------------------------------


def _access(merged: _Merged, wanted: str, clock: Clock, environ: Mapping[str, str]) -> Access:
    name = wanted or merged.current
    if not name:
        raise ConfigError(
            "the kubeconfig has no current context; "
            f"choose one with --context: {_names(merged.contexts)}"
        )
    context = _find(merged.contexts, name, "context", "the kubeconfig")
    cluster, cluster_folder = _find(merged.clusters, context.cluster, "cluster", f"context {name}")
    user, user_folder = _User(), Path()
    if context.user:
        user, user_folder = _find(merged.users, context.user, "user", f"context {name}")
    server = _server(cluster.server, context.cluster)
    ca = _data_or_file(
        cluster.certificate_authority_data,
        cluster.certificate_authority,
        cluster_folder,
        f"the certificate authority of cluster {context.cluster}",
    )
    return Access(
        server=server,
        credentials=_credentials(user, context.user, user_folder, clock, cluster=(cluster, ca)),
        ca=ca,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url or proxy_for(server, environ),
        namespace=context.namespace or "default",
        context=name,
    )


def _find(entries: Mapping[str, T], name: str, kind: str, where: str) -> T:
    if name in entries:
        return entries[name]
    asked = f"{kind} {name!r}" if name else f"a {kind} (none is named)"
    raise ConfigError(f"{where} asks for {asked}; there are: {_names(entries)}")


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(sorted(entries)) or "none at all"


def _server(server: str, cluster: str) -> str:
    if not server:
        raise ConfigError(f"cluster {cluster} of the kubeconfig has no server")
    url = server if "://" in server else f"http://{server}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_true_port(parts):
        raise ConfigError(f"the server {server} of cluster {cluster} is not an address")
    return url.rstrip("/")


def _has_true_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _data_or_file(data: str, file: str, folder: Path, what: str) -> bytes:
    if data:
        return who.decode_data(data, what)
    return who.read_file(str(folder / file), what.removeprefix("the ")) if file else b""


def _credentials(
    user: _User, name: str, folder: Path, clock: Clock, *, cluster: tuple[_Cluster, bytes]
) -> Credentials:
    if user.auth_provider is not None:
        kind = user.auth_provider.get("name", "")
        raise ConfigError(
            f"user {name} uses the auth provider {kind}, which Kubernetes gave up; "
            "use an exec plugin (for GKE: gke-gcloud-auth-plugin)"
        )
    if bool(user.client_certificate or user.client_certificate_data) != bool(
        user.client_key or user.client_key_data
    ):
        raise ConfigError(f"user {name} has a client certificate without a key, or the reverse")
    rest = Identity(headers=_impersonation(user))
    if user.client_certificate_data or user.client_key_data or (user.exec and user.client_key):
        rest = Identity(rest.headers, _key_pair(user, name, folder))
    if user.exec is not None and not (user.token or user.token_file or user.username):
        command = _plugin(user.exec, name, folder, cluster)
        who.check_plugin(command)
        return who.Plugin(command, clock, rest=rest)
    if user.token and not user.token_file:
        rest = Identity((who.bearer(user.token), *rest.headers), rest.key_pair)
    elif user.username and not user.token_file:
        header = who.basic(user.username, user.password)
        rest = Identity((header, *rest.headers), rest.key_pair)
    files = who.Files(
        token=str(folder / user.token_file) if user.token_file else "",
        certificate=str(folder / user.client_certificate)
        if rest.key_pair is None and user.client_certificate
        else "",
        key=str(folder / user.client_key),
    )
    if files.token or files.certificate:
        return who.FromFiles(files, clock, rest=rest)
    return who.Fixed(rest)


def _key_pair(user: _User, name: str, folder: Path) -> KeyPair:
    certificate = _data_or_file(
        user.client_certificate_data,
        user.client_certificate,
        folder,
        f"the client certificate of user {name}",
    )
    key = _data_or_file(
        user.client_key_data, user.client_key, folder, f"the client key of user {name}"
    )
    return KeyPair(certificate, key)


def _impersonation(user: _User) -> tuple[tuple[str, str], ...]:
    if not user.as_:
        return ()
    headers = [("Impersonate-User", user.as_)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", group) for group in user.as_groups or ()]
    for key, values in sorted((user.as_user_extra or {}).items()):
        headers += [(f"Impersonate-Extra-{key}", value) for value in values]
    return tuple(headers)


def _plugin(
    exec_: _Exec, user: str, folder: Path, cluster: tuple[_Cluster, bytes]
) -> who.PluginCommand:
    return who.PluginCommand(
        command=exec_.command,
        api_version=exec_.api_version,
        args=tuple(exec_.args or ()),
        env={variable.name: variable.value for variable in exec_.env or ()},
        install_hint=exec_.install_hint,
        interactive=exec_.interactive_mode,
        folder=str(folder),
        user=user,
        cluster=_cluster_info(*cluster) if exec_.provide_cluster_info else None,
    )


def _cluster_info(cluster: _Cluster, ca: bytes) -> dict[str, Any]:
    info: dict[str, Any] = {"server": cluster.server}
    if ca:
        info["certificate-authority-data"] = who.encode_data(ca)
    if cluster.insecure_skip_tls_verify:
        info["insecure-skip-tls-verify"] = True
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if cluster.proxy_url:
        info["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info
