from __future__ import annotations

import pytest

from everynode.kube.http.proxies import proxy_for

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.example.com", {}, ""),
        ("https://api.example.com", PROXY, "http://proxy:3128"),
        ("https://api.example.com", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("http://api.example.com", PROXY, ""),
        ("https://127.0.0.1:6443", PROXY, ""),
        ("https://localhost:6443", PROXY, ""),
        ("https://[::1]:6443", PROXY, ""),
        ("https://api.example.com", PROXY | {"NO_PROXY": "*"}, ""),
        ("https://api.example.com", PROXY | {"NO_PROXY": "other, example.com"}, ""),
        ("https://api.example.com", PROXY | {"no_proxy": ".example.com"}, ""),
        ("https://example.com", PROXY | {"NO_PROXY": ".example.com"}, "http://proxy:3128"),
        ("https://badexample.com", PROXY | {"NO_PROXY": "example.com"}, "http://proxy:3128"),
        ("https://10.1.2.3", PROXY | {"NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", PROXY | {"NO_PROXY": "10.0.0.0/8,nonsense/8"}, "http://proxy:3128"),
        ("https://10.1.2.3:6443", PROXY | {"NO_PROXY": "10.1.2.3:6443"}, ""),
        ("https://10.1.2.3:6443", PROXY | {"NO_PROXY": "10.1.2.3:443"}, "http://proxy:3128"),
        ("https://10.1.2.3:6443", PROXY | {"NO_PROXY": "10.1.2.3:²"}, "http://proxy:3128"),
    ],
)
def test_the_environment_chooses_the_proxy(
    server: str, environ: dict[str, str], proxy: str
) -> None:
    assert proxy_for(server, environ) == proxy
