"""Everynode's image, built without a registry or a build tool from this Python and the sources."""

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
from everynode.localkube.node_images import write_layout
from tests.support import containerfile
from tests.support.paths import ROOT

REQUIREMENTS = ROOT / "requirements" / "run.txt"
# Parts of the standard library that Everynode does not import.
LEFT_OUT = {"test", "tests", "site-packages", "ensurepip", "idlelib", "lib2to3", "tkinter"}


class OwnImage:
    """The image that the Containerfile describes, as far as this machine can build it."""

    name = f"example.test/everynode:{everynode.__version__}"

    def write(self, path: Path, busybox: Path) -> None:
        """Write the image as a tar file in OCI layout."""
        told = containerfile.settings()
        told["Env"] = ["PATH=/usr/local/bin", *told["Env"]]
        write_layout(path, self.name, layer=_layer(), settings=told)


def _layer() -> bytes:
    """Pack the interpreter at its path on this machine, and the application in /app."""
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
    """A tar entry owned by root, readable and executable for all."""
    entry = tarfile.TarInfo(place.lstrip("/") or ".")
    entry.type, entry.mode = kind, 0o755
    return entry


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from (Path(place, name) for name in names if not name.endswith(".a"))


def _application() -> Iterator[tuple[Path, str]]:
    """Yield each file of Everynode and its pinned dependencies, with its path in /app."""
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
    """List the libraries that programs and extensions load, including the dynamic linker."""
    linked = [str(file) for file in files if ".so" in file.suffixes or file == files[0]]
    said = subprocess.run(["ldd", *linked], check=True, capture_output=True, text=True).stdout
    return sorted({Path(path) for path in re.findall(r"^\s.*?(/\S+) \(0x", said, re.MULTILINE)})
