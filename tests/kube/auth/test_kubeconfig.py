"""Kubeconfigs as people have them, and every mistake in them as one clear line."""

from __future__ import annotations

import base64
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.clock import SystemClock
from everynode.kube.auth.credentials import ConfigError, PluginCredentials
from everynode.kube.auth.kubeconfig import ClusterConfig, in_cluster, load_cluster_config
from tests.support.certificate_authority import Authority


def pem(text: str) -> bytes:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n".encode()


def data(text: bytes) -> str:
    return base64.b64encode(text).decode()


def config(user: Any = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def write(folder: Path, content: Any, name: str = "config") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def read(path: str, context: str = "", **environ: str) -> ClusterConfig:
    return load_cluster_config(SystemClock(), kubeconfig=path, context=context, environ=environ)


async def headers(access: ClusterConfig) -> list[tuple[str, str]]:
    return list((await access.credentials.identity()).headers)


# --- What is there is understood -----------------------------------------------------------------


async def test_token_and_defaults(tmp_path: Path) -> None:
    access = read(write(tmp_path, config({"token": "secret"})))
    assert (access.server, access.namespace, access.context) == (
        "https://api:6443",
        "default",
        "dev",
    )
    assert (access.ca, access.insecure, access.proxy, access.server_name) == (b"", False, "", "")
    assert await headers(access) == [("Authorization", "Bearer secret")]


async def test_everything_about_a_cluster(tmp_path: Path) -> None:
    content = config(
        **{
            "certificate-authority-data": data(pem("PEM")),
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
            "insecure-skip-tls-verify": True,
        }
    )
    content["contexts"][0]["context"]["namespace"] = "agents"
    access = read(write(tmp_path, content), HTTPS_PROXY="http://other:1")
    assert (access.ca, access.server_name, access.proxy) == (
        pem("PEM"),
        "kubernetes",
        "http://proxy:3128",
    )
    assert (access.insecure, access.namespace) == (True, "agents")


async def test_proxy_of_the_environment(tmp_path: Path) -> None:
    access = read(write(tmp_path, config()), HTTPS_PROXY="http://proxy:1")
    assert access.proxy == "http://proxy:1"


async def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "cert", "key"):
        (tmp_path / "pki" / name).write_bytes(pem(name.upper()))
    user = {"client-certificate": "pki/cert", "client-key": "pki/key"}
    access = read(write(tmp_path, config(user, **{"certificate-authority": "pki/ca"})))
    pair = (await access.credentials.identity()).key_pair
    assert access.ca == pem("CA")
    assert pair is not None
    assert (pair.certificate, pair.key) == (pem("CERT"), pem("KEY"))


async def test_certificates_inside_the_file_go_before_files(tmp_path: Path) -> None:
    user = {
        "client-certificate-data": data(pem("CERT")),
        "client-key-data": data(pem("KEY")),
        "client-certificate": "/does/not/exist",
        "client-key": "/does/not/exist",
        "token": "secret",
    }
    identity = await read(write(tmp_path, config(user))).credentials.identity()
    assert identity.key_pair is not None
    assert identity.key_pair.key == pem("KEY")
    assert identity.headers == (("Authorization", "Bearer secret"),)


async def test_secrets_do_not_show_when_an_identity_is_printed(tmp_path: Path) -> None:
    user = {
        "client-certificate-data": data(pem("CERT")),
        "client-key-data": data(pem("PRIVATE")),
        "token": "secret",
    }
    identity = await read(write(tmp_path, config(user))).credentials.identity()
    assert "PRIVATE" not in repr(identity)
    assert "secret" not in repr(identity)


async def test_token_files_go_before_tokens(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    access = read(write(tmp_path, config({"token": "fixed", "tokenFile": "token"})))
    assert await headers(access) == [("Authorization", "Bearer from-file")]


async def test_name_and_password(tmp_path: Path) -> None:
    access = read(write(tmp_path, config({"username": "ada", "password": "pw"})))
    assert await headers(access) == [("Authorization", f"Basic {data(b'ada:pw')}")]


async def test_impersonation_headers_are_sent(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "ada",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x"]},
    }
    assert await headers(read(write(tmp_path, config(user)))) == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "ada"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "x"),
    ]


async def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    content = config()
    content["contexts"].append({"name": "prod", "context": {"cluster": "p", "user": "u"}})
    content["clusters"].append({"name": "p", "cluster": {"server": "https://prod/"}})
    assert read(write(tmp_path, content), "prod").server == "https://prod"


async def test_several_files_are_merged_and_the_first_word_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    (second / "ca").write_bytes(pem("SECOND"))
    one = {"current-context": "dev", "contexts": config()["contexts"], "users": None}
    two = config({"token": "t"}, **{"certificate-authority": "ca"}) | {"current-context": "x"}
    paths = [write(first, one), str(tmp_path / "missing"), write(second, two)]
    access = load_cluster_config(SystemClock(), environ={"KUBECONFIG": os.pathsep.join(paths)})
    assert (access.context, access.ca) == ("dev", pem("SECOND"))


async def test_home_is_where_kubeconfigs_are_found(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", config())
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert load_cluster_config(SystemClock(), environ=environ).context == "dev"


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in {
        "token": "t1\n",
        "ca.crt": pem("CA").decode(),
        "namespace": "agents",
    }.items():
        (tmp_path / name).write_text(text)
    environ = {
        "HOME": "/nowhere",
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    access = load_cluster_config(SystemClock(), environ=environ, account=str(tmp_path))
    assert (access.server, access.ca, access.namespace) == (
        "https://[fd00::1]:443",
        pem("CA"),
        "agents",
    )
    assert await headers(access) == [("Authorization", "Bearer t1")]


async def test_a_plugin_gets_the_cluster_info_if_it_asks_for_it(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(
        "#!/bin/sh\n"
        'printf "%s" "$KUBERNETES_EXEC_INFO" > info; printf "%s" "$EXTRA $1" > extra\n'
        'echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"granted"}}\'\n'
    )
    script.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": ["get-token"],
            "env": [{"name": "EXTRA", "value": "yes"}],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    content = config(
        user, **{"certificate-authority-data": data(pem("CA")), "extensions": [extension]}
    )
    access = read(write(tmp_path, content))
    assert isinstance(access.credentials, PluginCredentials)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert await headers(access) == [("Authorization", "Bearer granted")]
    finally:
        os.chdir(before)
    assert (tmp_path / "extra").read_text() == "yes get-token"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://api:6443",
                "certificate-authority-data": data(pem("CA")),
                "config": {"audience": "a"},
            },
        },
    }


# --- Mistakes ------------------------------------------------------------------------------------


def plugin(**changes: Any) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            **changes,
        }
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "is not YAML at line"),
        ("a: &a [*a]", "is not YAML at line 1: anchor 'a' value contains itself"),
        ("[" * 100_000, "is not YAML at line 1: exceeded max depth"),
        ("- " * 50_000 + "a", "is not YAML at line 1: exceeded max depth"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghij")
            ),
            "document contains excessive aliasing",
        ),
        ("a: \0", "is not YAML: .*control characters"),
        ("x" * 4_000_000, "longer than 3145728 bytes"),
        ("just text", r"is wrong: Expected `object`, got `str`"),
        ({"clusters": [{"cluster": {}}]}, r"missing required field `name` - at `\$.clusters\[0\]`"),
        (config({"token": 7}), r"Expected `str`, got `int` - at `\$.users\[0\].user.token`"),
        (config() | {"current-context": ""}, "no current context; choose one with --context: dev"),
        (config() | {"current-context": "x"}, "asks for context 'x'; there are: dev"),
        (config() | {"clusters": []}, "context dev asks for cluster 'c'; there are: none at all"),
        (config() | {"users": []}, "context dev asks for user 'u'; there are: none at all"),
        (config(server=""), "cluster c of the kubeconfig has no server"),
        (config(server="ftp://x"), "the server ftp://x of cluster c is not an address"),
        (
            config(server="https://[::1"),
            r"the server https://\[::1 of cluster c is not an address; write it as .*config\)",
        ),
        (config(server="https://x y"), "of cluster c is not an address"),
        (config(server="https://x\r\nEvil: 1"), "of cluster c is not an address"),
        (config(server=7), r"got `int` - at `\$.clusters\[0\].cluster.server`; put it in quot"),
        (
            config(**{"proxy-url": "http://u:secret@[::1"}),
            r"the proxy http://\[::1 of cluster c is",
        ),
        (config(**{"proxy-url": "nonsense"}), "the proxy nonsense of cluster c is not an address"),
        (config({"token": "a\r\nEvil: 1"}), "user u of the kubeconfig: token holds characters"),
        (config({"as": "ä"}), "user u of the kubeconfig: as holds characters"),
        (
            config(**{"certificate-authority-data": data(b"nonsense")}),
            "the certificate authority of cluster c is not PEM",
        ),
        (
            config({"client-certificate-data": data(b"x"), "client-key-data": data(b"x")}),
            "the client certificate of user u is not PEM",
        ),
        (config(server="https://x:y"), "the server https://x:y of cluster c is not an address"),
        (
            config(**{"certificate-authority-data": "%%%"}),
            "the certificate authority of cluster c is not base64",
        ),
        (
            config(**{"certificate-authority": "/no/ca"}),
            "cannot read the certificate authority of cluster c /no/ca: No such file",
        ),
        (config({"client-certificate": "x"}), "user u has a client certificate without a key"),
        (
            config({"client-certificate-data": "%", "client-key-data": "%"}),
            "the client certificate of user u is not base64",
        ),
        (config({"auth-provider": {"name": "gcp"}}), "gke-gcloud-auth-plugin"),
        (config(plugin(command="")), "user u: the exec plugin names no command"),
        (
            config(plugin(apiVersion="client.authentication.k8s.io/v1alpha1")),
            "speaks client.authentication.k8s.io/v1alpha1, not .*; update the plugin",
        ),
        (config(plugin(interactiveMode="Perhaps")), "interactiveMode"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(write(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\x80\x81\x00")
    with pytest.raises(ConfigError, match="is not"):
        read(str(path))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the kubeconfig /no/where: No such file"):
        read("/no/where")
    with pytest.raises(ConfigError, match=r"\$KUBECONFIG names /no/where, which does not exist"):
        load_cluster_config(SystemClock(), environ={"KUBECONFIG": "/no/where"})
    with pytest.raises(ConfigError, match=r"no kubeconfig: .* name a file with --kubeconfig"):
        load_cluster_config(SystemClock(), environ={"HOME": str(tmp_path)})


def test_pod_without_a_token_is_told_what_to_set(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(SystemClock(), environ=environ, account=str(tmp_path))
    with pytest.raises(ConfigError, match="this is not a pod"):
        in_cluster(SystemClock(), environ={})


async def test_kubeconfig_of_a_real_shape_is_read(tmp_path: Path) -> None:
    pair = Authority().issue("admin")
    text = f"""
apiVersion: v1
kind: Config
preferences: {{}}
clusters:
- cluster:
    certificate-authority-data: {data(pair.certificate)}
    server: https://127.0.0.1:6443
    extensions:
  name: kind-dev
contexts:
- context: {{cluster: kind-dev, user: kind-dev}}
  name: kind-dev
current-context: kind-dev
users:
- name: kind-dev
  user:
    client-certificate-data: {data(pair.certificate)}
    client-key-data: {data(pair.key)}
"""
    identity = await read(write(tmp_path, text)).credentials.identity()
    assert identity.key_pair is not None
    assert identity.key_pair.certificate == pair.certificate


def test_a_pod_s_address_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "tcp://x"}
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST and _PORT make https://10"):
        in_cluster(SystemClock(), environ=environ, account=str(tmp_path))


async def test_the_name_of_an_extra_field_cannot_end_its_header(tmp_path: Path) -> None:
    user = {"as": "ada", "as-user-extra": {"a: b\r\nEvil: 1": ["x"]}}
    identity = await read(write(tmp_path, config(user))).credentials.identity()
    assert identity.headers[-1] == ("Impersonate-Extra-a%3A%20b%0D%0AEvil%3A%201", "x")
