"""Kubeconfig: how to connect to a cluster, from kubeconfig files or the pod's service account.

Files are read as kubectl reads them. Written by hand because a client library costs 30 to 70 MB of
memory for these few rules, and because every mistake must become one line with what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from everynode.api import yaml_text
from everynode.api.nulls import drop_nulls
from everynode.clock import Clock
from everynode.kube.auth import credentials as auth
from everynode.kube.auth.credentials import ConfigError, Credentials, Identity, KeyPair
from everynode.kube.http.proxies import proxy_for

SERVICE_ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

T = TypeVar("T")

_HEADER_NAME_CHARACTERS: Final = "!#$&'*+-.^_`|~"
_FROM_ENVIRONMENT: Final = "the environment (HTTPS_PROXY or HTTP_PROXY)"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Address, TLS settings and credentials of one API server: client-go's rest.Config."""

    server: str
    credentials: Credentials
    ca: bytes = b""  # PEM; empty: the CAs that the system trusts
    insecure: bool = False
    server_name: str = ""  # expected in the server's certificate, where it differs from the host
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


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class _MergedKubeconfig:
    """All files merged; each entry with the folder that its relative paths start from."""

    clusters: dict[str, tuple[_Cluster, Path]]
    users: dict[str, tuple[_User, Path]]
    contexts: dict[str, _Context]
    current: str


def load_cluster_config(
    clock: Clock,
    *,
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str] | None = None,
    account: str = SERVICE_ACCOUNT_FOLDER,
) -> ClusterConfig:
    """Find out how to reach a cluster, as kubectl does; raises ConfigError.

    From the file named, else those of $KUBECONFIG, else ~/.kube/config, else the service account of
    the pod we run in.
    """
    environ = os.environ if environ is None else environ
    paths = _kubeconfig_paths(kubeconfig, environ)
    if not paths:
        if "KUBERNETES_SERVICE_HOST" in environ and not context:
            return in_cluster(clock, environ=environ, account=account)
        raise ConfigError(
            "no kubeconfig: there is no ~/.kube/config, $KUBECONFIG is not set and this is not a "
            "pod; name a file with --kubeconfig"
        )
    merged = _merge([(path, _read_kubeconfig(path)) for path in paths])
    try:
        return _cluster_config(merged, context, clock, environ)
    except ConfigError as error:
        raise ConfigError(f"{error} (in {', '.join(map(str, paths))})") from None


def context_names(kubeconfig: str = "", environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the contexts of the files that `load_cluster_config` reads; raises ConfigError."""
    paths = _kubeconfig_paths(kubeconfig, os.environ if environ is None else environ)
    return [*_merge([(path, _read_kubeconfig(path)) for path in paths]).contexts]


def in_cluster(
    clock: Clock, *, environ: Mapping[str, str] | None = None, account: str = SERVICE_ACCOUNT_FOLDER
) -> ClusterConfig:
    """Use the service account of the pod we run in; raises ConfigError."""
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
    if not _is_url(server):
        raise ConfigError(
            f"KUBERNETES_SERVICE_HOST and _PORT make {server}, which is not an address"
        )
    return ClusterConfig(
        server=server,
        credentials=auth.FileCredentials(auth.CredentialFiles(token=str(folder / "token")), clock),
        ca=_read_pem("", "ca.crt", folder, "the certificate authority"),
        proxy=_proxy_url(proxy_for(server, environ), _FROM_ENVIRONMENT),
        namespace=_read_namespace(namespace) if namespace.exists() else "default",
    )


def _read_namespace(path: Path) -> str:
    return auth.read_file(str(path), "namespace").decode("utf-8", "replace").strip()


def _kubeconfig_paths(kubeconfig: str, environ: Mapping[str, str]) -> list[Path]:
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


def _read_kubeconfig(path: Path) -> _Kubeconfig:
    text = auth.read_file(str(path), "kubeconfig", blocking=True)
    try:
        content = yaml_text.load(text)
    except yaml_text.YamlError as error:
        where = "" if error.line is None else f" at line {error.line + 1}"
        raise ConfigError(f"the kubeconfig {path} is not YAML{where}: {error.problem}") from None
    try:
        return msgspec.convert(drop_nulls(content) or {}, _Kubeconfig)
    except msgspec.ValidationError as error:
        advice = "; put it in quotation marks" if "Expected `str`, got" in str(error) else ""
        raise ConfigError(f"the kubeconfig {path} is wrong: {error}{advice}") from None


def _merge(files: Sequence[tuple[Path, _Kubeconfig]]) -> _MergedKubeconfig:
    """Merge files: of two entries with one name, the first counts."""
    merged = _MergedKubeconfig(
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


# --- From the file to the cluster ------------------------------------------------------------


def _cluster_config(
    merged: _MergedKubeconfig, wanted: str, clock: Clock, environ: Mapping[str, str]
) -> ClusterConfig:
    name = wanted or merged.current
    if not name and not merged.contexts:
        raise ConfigError("the kubeconfig has no context; choose another file with --kubeconfig")
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
    server = _server_url(cluster.server, context.cluster)
    ca = _read_pem(
        cluster.certificate_authority_data,
        cluster.certificate_authority,
        cluster_folder,
        f"the certificate authority of cluster {context.cluster}",
    )
    return ClusterConfig(
        server=server,
        credentials=_credentials(
            user, context.user, user_folder, clock, cluster_info=_cluster_info(cluster, ca)
        ),
        ca=ca,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=_proxy_url(cluster.proxy_url, f"cluster {context.cluster}")
        or _proxy_url(proxy_for(server, environ), _FROM_ENVIRONMENT),
        namespace=context.namespace or "default",
        context=name,
    )


def _find(entries: Mapping[str, T], name: str, kind: str, where: str) -> T:
    if name in entries:
        return entries[name]
    wanted = f"{kind} {name!r}" if name else f"a {kind} (none is named)"
    raise ConfigError(f"{where} asks for {wanted}; there are: {_names(entries)}")


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(sorted(entries)) or "none at all"


def _server_url(server: str, cluster: str) -> str:
    if not server:
        raise ConfigError(f"cluster {cluster} of the kubeconfig has no server")
    url = server if "://" in server else f"http://{server}"
    if not _is_url(url):
        raise ConfigError(
            f"the server {server} of cluster {cluster} is not an address; "
            "write it as https://HOST:PORT, an IPv6 host in brackets"
        )
    return url.rstrip("/")


def _proxy_url(proxy: str, whose: str) -> str:
    """Check a proxy's address now, rather than at every connection; raises ConfigError."""
    if proxy and not _is_url(proxy, schemes=("http", "https", "socks5", "socks5h")):
        raise ConfigError(
            f"the proxy {_without_password(proxy)} of {whose} is not an address; "
            "write it as http://HOST:PORT"
        )
    return proxy


def _without_password(url: str) -> str:
    scheme, mark, rest = url.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _is_url(url: str, *, schemes: Sequence[str] = ("http", "https")) -> bool:
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is not closed, a port that is not a number
        return False


def _read_pem(data: str, file: str, folder: Path, what: str) -> bytes:
    if not data and not file:
        return b""
    if data:
        found = auth.decode_base64(data, what)
    else:
        found = auth.read_file(str(folder / file), what.removeprefix("the "))
        what = f"{what}, {folder / file},"
    return auth.require_pem(found, what)


# --- From the user to the credentials --------------------------------------------------------


def _credentials(
    user: _User, name: str, folder: Path, clock: Clock, *, cluster_info: dict[str, Any]
) -> Credentials:
    """Choose how a user authenticates; raises ConfigError.

    As in kubectl, tokenFile goes before token, token before username and password, and these before
    the exec plugin. A client certificate and impersonation are used together with any of them.
    """
    _refuse_unsupported(user, name)
    key_pair = _key_pair(user, name, folder) if _reads_key_pair_now(user) else None
    impersonation = _impersonation(user)
    if user.exec is not None and not (user.token_file or user.token or user.username):
        command = _plugin_command(user.exec, name, folder, cluster_info)
        auth.check_plugin(command)
        return auth.PluginCredentials(command, clock, base=Identity(impersonation, key_pair))
    static = Identity((*_authorization(user), *impersonation), key_pair)
    auth.check_headers(static.headers, f"user {name} of the kubeconfig")
    files = _renewable_files(user, folder, with_certificate=key_pair is None)
    if files.token or files.certificate:
        return auth.FileCredentials(files, clock, base=static)
    return auth.StaticCredentials(static)


def _refuse_unsupported(user: _User, name: str) -> None:
    if user.auth_provider is not None:
        kind = user.auth_provider.get("name", "")
        raise ConfigError(
            f"user {name} uses the auth provider {kind}, which Kubernetes gave up; "
            "use an exec plugin (for GKE: gke-gcloud-auth-plugin)"
        )
    certificate = user.client_certificate or user.client_certificate_data
    key = user.client_key or user.client_key_data
    if bool(certificate) != bool(key):
        raise ConfigError(f"user {name} has a client certificate without a key, or the reverse")


def _authorization(user: _User) -> tuple[tuple[str, str], ...]:
    """Return the Authorization header of a user whose secret is in the kubeconfig, if any."""
    if user.token_file:
        return ()
    if user.token:
        return (auth.bearer_header(user.token),)
    return (auth.basic_header(user.username, user.password),) if user.username else ()


def _reads_key_pair_now(user: _User) -> bool:
    """Whether the key pair is read once; otherwise FileCredentials reads its files again.

    A part that is inside the kubeconfig never changes. With an exec plugin, which renews the
    identity itself, the files are read once, too.
    """
    inside = user.client_certificate_data or user.client_key_data
    return bool(inside or (user.exec and user.client_key))


def _renewable_files(user: _User, folder: Path, *, with_certificate: bool) -> auth.CredentialFiles:
    """Return the files that are read again because others renew them."""
    certificate = user.client_certificate if with_certificate else ""
    return auth.CredentialFiles(
        token=str(folder / user.token_file) if user.token_file else "",
        certificate=str(folder / certificate) if certificate else "",
        key=str(folder / user.client_key),
    )


def _key_pair(user: _User, name: str, folder: Path) -> KeyPair:
    certificate = _read_pem(
        user.client_certificate_data,
        user.client_certificate,
        folder,
        f"the client certificate of user {name}",
    )
    key = _read_pem(user.client_key_data, user.client_key, folder, f"the client key of user {name}")
    return KeyPair(certificate, key)


def _impersonation(user: _User) -> tuple[tuple[str, str], ...]:
    if not user.as_:
        return ()
    headers = [("Impersonate-User", user.as_)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", group) for group in user.as_groups or ()]
    for key, values in sorted((user.as_user_extra or {}).items()):
        # Characters that are invalid in a header's name are escaped as in Go programs.
        name = f"Impersonate-Extra-{quote(key, safe=_HEADER_NAME_CHARACTERS)}"
        headers += [(name, value) for value in values]
    return tuple(headers)


def _plugin_command(
    exec_: _Exec, user: str, folder: Path, cluster_info: dict[str, Any]
) -> auth.PluginCommand:
    return auth.PluginCommand(
        command=exec_.command,
        api_version=exec_.api_version,
        args=tuple(exec_.args or ()),
        env={variable.name: variable.value for variable in exec_.env or ()},
        install_hint=exec_.install_hint,
        interactive=exec_.interactive_mode,
        folder=str(folder),
        user=user,
        cluster=cluster_info if exec_.provide_cluster_info else None,
    )


def _cluster_info(cluster: _Cluster, ca: bytes) -> dict[str, Any]:
    """Return the cluster as an ExecCredential describes it to a plugin."""
    info: dict[str, Any] = {"server": cluster.server}
    if ca:
        info["certificate-authority-data"] = auth.encode_base64(ca)
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
