"""Private files: secrets, keys and data that only their owner may read."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_FILE: Final = 0o600
_FOLDER: Final = 0o700
_OURS: Final = ("cluster.db", "identity.")  # how the names of our own files begin


def write_private_file(path: Path, data: bytes) -> None:
    """Replace a file in one step, readable by its owner alone; raises OSError.

    The temporary file has an unpredictable name and must not exist before, so another user who can
    write to the folder can neither plant a link for us to follow nor open the file before we do.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _FILE)  # independent of the umask
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_private(folder: Path, *names: str) -> None:
    """Make a folder and the named files in it private, with the files of SQLite beside them.

    Missing ones are created; the umask does not matter, and existing ones are changed. Raises
    OSError. A folder that holds other files too is left as it is, since other programs may need it:
    /tmp, or a home.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    if is_new or _is_ours(folder):
        with suppress(PermissionError):  # another user owns it and lets us write in it
            folder.chmod(_FOLDER)
    for name in names:
        if not (folder / name).exists():
            os.close(_create(folder / name))
        for path in (folder / name, folder / f"{name}-wal", folder / f"{name}-shm"):
            if path.exists():
                path.chmod(_FILE)  # not opened: closing it would drop the locks of SQLite


def _create(path: Path) -> int:
    """Open a file for writing, created if it is missing; return its descriptor."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE)
    try:
        os.fchmod(descriptor, _FILE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_ours(folder: Path) -> bool:
    return all(entry.name.startswith(_OURS) for entry in folder.iterdir())
