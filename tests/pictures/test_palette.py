from __future__ import annotations

import re

from everynode.pictures.palette import COLOURS, stylesheet
from tests.support.paths import ROOT

STYLE = (ROOT / "src" / "everynode" / "dashboard" / "page" / "style.css").read_text()


def test_pictures_have_the_colours_of_the_page() -> None:
    page = re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", STYLE)
    light: dict[str, str] = {}
    dark: dict[str, str] = {}
    for name, value in page:
        (dark if name in light else light)[name] = value.replace("#fff", "#ffffff")
    # Pictures stand on pages of others: their ground is that of a card.
    shown = {"ground": "card"}
    for name, on_light, on_dark in COLOURS:
        named = shown.get(name, name)
        assert (on_light, on_dark) == (light[named], dark[named]), name


def test_a_picture_holds_the_rules_that_it_uses_for_light_and_dark() -> None:
    rules = stylesheet({"text", "state-5-line"})
    assert rules.count(".text{fill:") == rules.count(".state-5-line{stroke:") == 2
    assert ".state-6" not in rules
    assert "@media(prefers-color-scheme:dark)" in rules
