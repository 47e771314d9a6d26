"""Container images for a real node, made of a static busybox without registry or build tool."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_APPLETS = ("sh", "sleep", "cat", "true", "false", "test", "touch", "rm", "wget", "httpd")
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_NAME = "io.containerd.image.name"


@dataclass(frozen=True)
class Image:
    """An image of busybox that runs one command."""

    name: str
    command: Sequence[str]

    def write(self, path: Path, busybox: Path) -> None:
        """Write the image as a tar of the OCI layout, as `ctr images import` takes it."""
        layer = _root_filesystem(busybox.read_bytes(), self.name)
        settings = {"Entrypoint": list(self.command), "Env": ["PATH=/bin"]}
        _write_layout(path, self.name, layer=layer, settings=settings)


class ImageArchive(Protocol):
    """An image that can be written as a tar of the OCI layout."""

    @property
    def name(self) -> str:
        """The image reference that pods use."""

    def write(self, path: Path, busybox: Path) -> None:
        """Write the image as a tar of the OCI layout."""


def _write_layout(path: Path, name: str, *, layer: bytes, settings: dict[str, Any]) -> None:
    """Write an image of one layer, a tar itself, and of settings such as Entrypoint, Env, User."""
    config = _encode(_config(layer, settings))
    manifest = _encode(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(config, _CONFIG),
            "layers": [_descriptor(layer, _LAYER)],
        }
    )
    entry = _descriptor(manifest, _MANIFEST) | {"annotations": {_NAME: name}}
    index = _encode({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]})
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", _encode({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", index)
        for blob in (layer, config, manifest):
            _add(archive, f"blobs/sha256/{_digest(blob)}", blob)


def _config(layer: bytes, settings: dict[str, Any]) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }


def _root_filesystem(busybox: bytes, name: str) -> bytes:
    """A root file system: busybox, a link per applet, and the image's name in /etc/image."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for folder in ("bin", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        _add(archive, "bin/busybox", busybox, mode=0o755)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        _add(archive, "etc/image", name.encode())
    return out.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


def _descriptor(blob: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{_digest(blob)}", "size": len(blob)}


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _encode(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
