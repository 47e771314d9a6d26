"""Pod names: derived by hash, so that a second create of the same pod is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from everynode.api.keys import NAME_ALPHABET

# 27 letters carry 4.75 bits each: 13 of them are more than 61 bits.
HASH_LENGTH: Final = 13
_BASE: Final = len(NAME_ALPHABET)
_HASH_VALUES: Final = _BASE**HASH_LENGTH
NAME_LENGTH: Final = 63


def pod_name(
    ds_name: str,
    ds_uid: str,
    node: str,
    revision: str,
    replaced: Sequence[str] = (),
    name_holders: Sequence[str] = (),
) -> str:
    """Return the name of a DaemonSet's next pod on a node.

    `replaced` are the uids of own pods that it replaces. `name_holders` are the uids of foreign
    pods that have a name we would have used. Their order does not matter.
    """
    return derived_name(
        ds_name,
        (ds_uid, node, revision, "/".join(sorted(replaced)), "/".join(sorted(name_holders))),
    )


def derived_name(prefix: str, parts: Sequence[str]) -> str:
    """Return a DNS label made of a readable prefix and a hash of the parts."""
    # Each part is written with its length, so that different lists give different texts.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    # Its last letters are those of the whole number; a small one is divided in half the time.
    number = int.from_bytes(digest, "big") % _HASH_VALUES
    letters = ""
    for _ in range(HASH_LENGTH):
        letters += NAME_ALPHABET[number % _BASE]
        number //= _BASE
    readable = prefix.replace(".", "-")[: NAME_LENGTH - HASH_LENGTH - 1].rstrip("-")
    return f"{readable}-{letters}"
