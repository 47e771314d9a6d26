from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from everynode.localkube.node_images import Image


def blobs_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        members = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read() for name, file in members.items() if file is not None}


def test_an_image_is_a_layout_whose_digests_are_right(tmp_path: Path) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"a program")
    Image("example.test/agent:v1", ["/bin/sleep", "1d"]).write(tmp_path / "image.tar", busybox)
    files = blobs_of(tmp_path / "image.tar")

    def blob(described: Any) -> bytes:
        algorithm, _, digest = described["digest"].partition(":")
        content = files[f"blobs/{algorithm}/{digest}"]
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == described["size"]
        return content

    [entry] = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"] == {"io.containerd.image.name": "example.test/agent:v1"}
    manifest = json.loads(blob(entry))
    [layer] = [blob(each) for each in manifest["layers"]]
    config = json.loads(blob(manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["/bin/sleep", "1d"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as root:
        assert root.getmember("bin/sleep").linkname == "busybox"
        assert root.getmember("bin/busybox").mode == 0o755


def test_two_names_are_two_images(tmp_path: Path) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"a program")
    for number in ("1", "2"):
        Image(f"example.test/agent:v{number}", ["/bin/sh"]).write(tmp_path / number, busybox)
    first, second = (json.loads(blobs_of(tmp_path / n)["index.json"]) for n in ("1", "2"))
    assert first["manifests"][0]["digest"] != second["manifests"][0]["digest"]
