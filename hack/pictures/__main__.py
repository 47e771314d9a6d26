"""`make pictures`: draws every picture of the documentation into docs/pictures."""

from __future__ import annotations

import logging
import sys

from hack.pictures.catalogue import FOLDER, PICTURES

if __name__ == "__main__":
    logging.disable()
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / name).write_text(PICTURES[name](), encoding="utf-8")
        print(f"docs/pictures/{name}")
