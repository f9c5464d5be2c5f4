"""Every page of HTML that tcpknee writes. Nothing foreign runs in it, and nothing leaves it.

Titles, labels and notes in a page were written by others. Jinja escapes all words; data stands in an element of its
own, which no string in it can end; and a Content-Security-Policy tells the browser to run the scripts of the page,
named by their hashes, and to fetch nothing. `unsafe-eval` is not needed: Vega interprets its expressions (`ast` in
page.js). Styles may be inline, because Vega places its tooltips so; without a network a style can tell nobody anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tcpknee import say

if TYPE_CHECKING:
    import jinja2

NONE = "'none'"
"""Nothing, in a Content-Security-Policy."""


def page(template: str, data: Mapping[str, Any], **values: Any) -> str:
    """A template of `assets` that extends frame.html.j2, with `data` for page.js to draw and `values` for its words.

    What `data` has as `flame`, flame.js draws.
    """
    flame = [_asset("flame.js")] if data.get("flame") else []
    return _page(template, data, [_library(), _asset("page.js"), *flame], values)


def flame_page(template: str, data: Mapping[str, Any], **values: Any) -> str:
    """The same with a flame graph, which flame.js draws, and no other figure."""
    return _page(template, data, [_asset("flame.js")], values)


def still_page(template: str, **values: Any) -> str:
    """The same without any script: what it draws stands in it as lines and words."""
    return _page(template, {}, [], values)


def part(template: str, **values: Any) -> str:
    """A template of `assets` that is no whole page, for a notebook."""
    return _templates().get_template(template).render(**values)


def _page(template: str, data: Mapping[str, Any], scripts: Sequence[str], values: Mapping[str, Any]) -> str:
    policy = [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        f"script-src {' '.join(_hash(script) for script in scripts) or NONE}",
        "style-src 'unsafe-inline'",
    ]
    return (
        _templates()
        .get_template(template)
        .render(
            policy="; ".join(policy),
            css=_unending(_asset("page.css"), "style"),
            scripts=[_unending(script, "script") for script in scripts],
            data=json_in_page(data),
            **values,
        )
    )


@cache
def _templates() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_asset),
        finalize=_printable,
    )
    environment.filters["code"] = _code
    return environment


def _asset(name: str) -> str:
    return (resources.files("tcpknee.pages") / "assets" / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Words without characters that turn lines around or that UTF-8 has no bytes for; markup is ours."""
    return say.printable_text(value) if type(value) is str else value


@cache
def _library() -> str:
    """The script that draws the figures. It takes a second to put together, and never differs."""
    import vl_convert

    # The library offers to open charts in an online editor; this page offers nothing that needs a network.
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _unending(text: str, element: str) -> Any:
    """Our own script or style, as it is."""
    import markupsafe

    assert f"</{element}" not in text.lower() and "<!--" not in text, f"it would end the {element} that it stands in"
    return markupsafe.Markup(text)


def json_in_page(data: Mapping[str, Any]) -> Any:
    """JSON that cannot end the script element it stands in, whatever the titles say."""
    import markupsafe

    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return markupsafe.Markup(say.printable_json(text))


def _code(text: str) -> Any:
    """Words between backquotes as code; all else escaped."""
    import markupsafe

    parts = [markupsafe.escape(_printable(part)) for part in text.split("`")]
    whole = len(parts) % 2 == 1
    pieces = [markupsafe.Markup("<code>{}</code>").format(p) if k % 2 and whole else p for k, p in enumerate(parts)]
    return markupsafe.Markup("" if whole else "`").join(pieces)
