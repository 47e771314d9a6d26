"""Everynode's own image without a registry or a build tool: this Python, and what it runs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import everynode
from everynode.cli.kubernetes.node_images import write_layout
from tests import containerfile

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "run.txt"
# Of the standard library; nothing of ours imports them.
LEFT_OUT = {"test", "tests", "site-packages", "ensurepip", "idlelib", "lib2to3", "tkinter"}


class OwnImage:
    """The image that the Containerfile describes, as far as this machine can make it."""

    name = f"example.test/everynode:{everynode.__version__}"

    def write(self, path: Path, busybox: Path) -> None:
        """Write the image as a tar of the OCI layout."""
        told = containerfile.settings()
        told["Env"] = ["PATH=/usr/local/bin", *told["Env"]]
        write_layout(path, self.name, layer=_layer(), settings=told)


def _layer() -> bytes:
    """Pack the interpreter where it is on this machine, and the application in /app."""
    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    files = {file: str(file) for file in [python, *_files(library)]}
    for file, place in _application():
        files[file] = f"/app/{place}"
    libraries = {file: str(file) for file in _shared_libraries(list(files))}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for folder in sorted({str(each) for name in files.values() for each in Path(name).parents}):
            archive.addfile(_entry(folder, tarfile.DIRTYPE))
        for file, place in (files | libraries).items():
            with file.open("rb") as content:
                entry = _entry(place, tarfile.REGTYPE)
                entry.size = os.fstat(content.fileno()).st_size
                archive.addfile(entry, content)
        link = _entry("/usr/local/bin/python", tarfile.SYMTYPE)
        link.linkname = str(python)
        archive.addfile(link)
    return out.getvalue()


def _entry(place: str, kind: bytes) -> tarfile.TarInfo:
    """Root's, and readable and executable for all."""
    entry = tarfile.TarInfo(place.lstrip("/") or ".")
    entry.type, entry.mode = kind, 0o755
    return entry


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from (Path(place, name) for name in names if not name.endswith(".a"))


def _application() -> Iterator[tuple[Path, str]]:
    """Yield each file of ours and of what is pinned for running it, and its place in /app."""
    source = Path(everynode.__file__).parent
    for file in _files(source):
        yield file, str(file.relative_to(source.parent))
    for name in re.findall(r"^([\w.-]+)==", REQUIREMENTS.read_text(), re.MULTILINE):
        try:
            listed = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue  # not for this platform
        for each in listed:
            if ".." not in each.parts:
                yield Path(str(each.locate())), str(each)


def _shared_libraries(files: list[Path]) -> list[Path]:
    """List what the dynamic linker would load for programs and extensions, itself included."""
    linked = [str(file) for file in files if ".so" in file.suffixes or file == files[0]]
    said = subprocess.run(["ldd", *linked], check=True, capture_output=True, text=True).stdout
    return sorted({Path(path) for path in re.findall(r"^\s.*?(/\S+) \(0x", said, re.MULTILINE)})
