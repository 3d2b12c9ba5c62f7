"""The charting library of the report: Vega, Vega-Lite and vega-embed, taken out of a published package and checked.

The three files were compared with the projects' own npm releases: they are the same but for the closing source-map comment.
"""

from __future__ import annotations

from pathlib import Path

from dbext.demo import wheels

REQUIREMENT = "django-js-lib-vega-embed==6.29.0.3"
FOLDER = "js_lib_vega_embed/static/js_lib_vega_embed"
FILES = (
    wheels.WheelFile(REQUIREMENT, f"{FOLDER}/vega5.js", "6a6c1e9978bd78435dfbb51344d1d536319262e70f2c569ca9764ce5acc203da"),
    wheels.WheelFile(REQUIREMENT, f"{FOLDER}/vega-lite5.js", "594f554cecafe6b992d51b7c00f4c0e5fc5f92114c7e1a641d2cf150f21cc60d"),
    wheels.WheelFile(REQUIREMENT, f"{FOLDER}/vega-embed6.js", "dbd49aff8999dfb12983cbcefeefb355ae72af68d7556ddcec12193a0eb46450"),
)
CREDIT = "Charts: Vega 5.33.0, Vega-Lite 5.23.0 and vega-embed 6.29.0 (BSD 3-Clause licence), included above."

#: The three scripts in the order in which a page must run them.
Library = tuple[str, ...]


def load(cache: Path) -> Library:
    """Return the scripts, from `cache` or downloaded into it. Raises wheels.FileNotAvailable."""
    return tuple(_embeddable(wheels.read(file, cache).decode("utf-8")) for file in FILES)


def _embeddable(source: str) -> str:
    """Return JavaScript that can stand inside a script element: nothing in it may look like the element's end."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
