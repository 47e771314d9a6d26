"""Where a server of the release before (1.36) answers otherwise than one of the current (1.37).

It takes and refuses the same requests. Some refusals have other words; each is listed here, by
conversation and in the order of the questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# What may differ in a refusal: never its code, its reason or its headers.
_WORDS: Final = re.compile(r"  \.2\.(message|details\.causes\.\d+\.(field|message|reason))")


@dataclass(frozen=True)
class Refusal:
    """A request that the release before refuses in other words."""

    request: str  # a part of the question
    said: str  # a part of what the release before says
    changed: str  # what the current one does instead

    def explains(self, difference: str) -> bool:
        """Whether this is what differs, and all that does."""
        question, *lines = difference.splitlines()
        return (
            self.request in question
            and any(self.said in line for line in lines if line.startswith("    real: "))
            and all(_WORDS.fullmatch(line) for line in lines if not line.startswith("    "))
        )


_OWNER: Final = "fields of an owner are named with its index, and are required instead of invalid"
_PATCH: Final = "a patch that is no JSON is one error, whatever is wrong with it"
_APPLY: Final = "what is applied is called a patch, not YAML"
_ROLE: Final = "the roleRef is immutable in the words that all such fields have"
_REVIEW: Final = "that one of two fields is wanted is said of the object that holds them"
_END: Final = "error decoding patch: unexpected end of JSON input"
_TEXT: Final = "error decoding YAML: error unmarshaling JSON"
_OWNER_VERSION: Final = (
    'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be'
)
_REVIEWS: Final = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

REFUSALS: Final[dict[str, tuple[Refusal, ...]]] = {
    "pods": (Refusal("'ownerReferences': [{'kind': 'x'}]", _OWNER_VERSION, _OWNER),),
    "stored kinds": (Refusal("{'roleRef': {'name': 'z'}}", "cannot change roleRef", _ROLE),),
    "applied scales": (Refusal("b'text'", _TEXT, _APPLY),),
    "JSON patches": (Refusal("b'['", _END, _PATCH),),
    "merge patches": (Refusal("b'{'", _END, _PATCH), Refusal("b''", _END, _PATCH)),
    "strategic patches": (Refusal("b'x'", "invalid character 'x' looking for", _PATCH),),
    "server-side apply": (Refusal("b'text'", _TEXT, _APPLY),),
    "names and generations": (
        Refusal("[{'kind': 'x', 'name': 'y', 'uid': 'u'}]", _OWNER_VERSION, _OWNER),
    ),
    "refusals": (
        Refusal(_REVIEWS, "spec.resourceAttributes: Invalid value: null: exactly one", _REVIEW),
        Refusal(_REVIEWS, "cannot be specified in combination with resourceAttributes", _REVIEW),
    ),
}
