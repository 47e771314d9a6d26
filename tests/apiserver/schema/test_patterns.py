from __future__ import annotations

import subprocess
import sys

import pytest

from everynode.apiserver.schema.patterns import PatternError, compile_pattern


def test_a_pattern_that_backtracks_elsewhere_is_matched_at_once() -> None:
    # Python's own module would try two to the power of the length ways.
    assert not compile_pattern("^(a+)+$").matches("a" * 10_000 + "b")
    assert compile_pattern("^(a+)+$").matches("a" * 10_000)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[", "missing closing ]: `[`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("a\\C", "invalid escape sequence: `\\C`"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_does_not_take_is_refused_in_its_words(pattern: str, words: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == f"error parsing regexp: {words}"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a\\z", "a", True),
        ("^a$", "a\n", False),  # to Python's module that is the end
        ("\\\\C", "\\C", True),
        ("^\\pL+$", "é", True),
        ("b", "abc", True),
    ],
)
def test_patterns_mean_what_they_mean_to_go(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern).matches(text) is found


def test_the_library_is_imported_when_the_first_pattern_is_met() -> None:
    code = (
        "import sys; from tests.support.api_client import Cluster; Cluster(); "
        "sys.exit('re2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
