"""Writes the page: a self-contained HTML file with the data, the script and the style in it.

The page's policy allows only this script and this style, by their hashes, and no connection: even after a mistake, a
browser would not run code in the data. A served page may connect to its own server only.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from html import escape
from pathlib import Path
from string import Template
from typing import Final

_STATIC: Final = Path(__file__).with_name("static")
_SCRIPTS: Final = (
    *("data.js", "states.js", "text.js", "dom.js", "grid.js", "charts.js", "advice.js"),
    *("status.js", "runs.js", "timeline.js", "run.js", "layout.js", "graph.js", "tables.js", "table.js", "notes.js"),
    "main.js",
)
"""In execution order: each script uses the scripts before it."""


def page(data: str, live: str | None = None, seconds: float = 2) -> str:
    """Returns the page.

    Args:
        data: the JSON of `document`, which is text in HTML.
        live: the relative URL from which a served page requests newer data; None for a file.
        seconds: the time between two such requests.
    """
    script, style = _script(), _read("report.css")
    asks = "" if live is None else json.dumps({"url": live, "seconds": seconds})
    shown = data if live is None else f'{data}</script>\n<script type="application/json" id="live">{asks}'
    policy = policy_of(script, style, "'none'" if live is None else "'self'")
    return Template(_read("page.html")).substitute(policy=policy, style=style, script=script, data=shown)


def plain_page(title: str, body: str) -> str:
    """Returns a self-contained page without a script, in the style of the report.

    Args:
        title: its title, as text.
        body: its content, as HTML.
    """
    style = _read("report.css")
    parts = {"policy": policy_of("", style, "'none'"), "title": escape(title), "style": style, "body": body}
    return Template(_read("plain.html")).substitute(parts)


def policy_of(script: str, style: str, connections: str) -> str:
    """Returns the content security policy of a page with this script and this style."""
    parts = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "connect-src": connections,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.cache
def _script() -> str:
    return "".join(_read(name) for name in _SCRIPTS)


@functools.cache
def _read(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")
