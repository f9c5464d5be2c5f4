"""Makes a web site of all pages: `site.py FOLDER [PLAYGROUND]`, which is `make site`. Each version has a folder of its
own below FOLDER, and stays until somebody removes it; a page leads to the versions beside its own. PLAYGROUND is the
page that `make play` built: without one, or with one of other sources, nothing leads to it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from importlib import metadata
from pathlib import Path
from urllib.parse import quote

import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "site" / "play"))
import built_of  # noqa: E402

HOME = re.compile("<!-- home -->(.+?)<!-- /home -->")
"""Where the playground, which may stand alone, has a way to the site that it is a part of."""
VERSION = re.compile(r"\d+(\.\d+)*([.+-]?[a-z]+\d*)*")
OURS = "gallery/index.html"
"""What each folder that this wrote has."""


def make(site: Path, version: str, playground: str | None) -> Path:
    """All pages as the folder `version` of `site`. Returns the page to begin with."""
    folder = site / version
    if folder.exists() and not (folder / OURS).exists():
        raise SystemExit(f"site: {folder}: got a folder of something else; expected a new one, or a site built before.")
    site.mkdir(parents=True, exist_ok=True)
    # Beside the folder that it becomes.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=site) as name:
        # Folders in it are those that mkdocs.yml names.
        work = Path(name)
        shutil.copy(ROOT / "mkdocs.yml", work)
        if wrong := build.build(work / "build" / "docs", playground=playground is not None):
            raise SystemExit("\n".join(wrong))
        words = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
        done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"site: zensical failed:\n{done.stdout}{done.stderr}")
        html = work / "build" / "html"
        # The order of pages is none, pages search what stands in the script (the same as JSON is for servers), and the
        # page for wrong addresses takes this folder for the root of a host.
        for made in ("SUMMARY.html", "sitemap.xml", "search.json", "404.html"):
            (html / made).unlink(missing_ok=True)
        if playground is not None:
            (html / "play").mkdir()
            (html / "play" / "index.html").write_text(
                HOME.sub(r'<a href="../index.html">\1</a>', playground), encoding="utf-8"
            )
        if folder.exists():
            folder.rename(work / "before")
        html.rename(folder)
    found = (one.parents[1].name for one in site.glob(f"*/{OURS}"))
    versions = sorted(filter(VERSION.fullmatch, found), key=_by_number, reverse=True)
    (site / "versions.js").write_text(f"window.tcpkneeVersions = {json.dumps(versions)};\n", encoding="utf-8")
    newest = {"address": escape(quote(versions[0])), "version": escape(versions[0])}
    (site / "index.html").write_text(TO_NEWEST.format(**newest), encoding="utf-8")
    return folder / "index.html"


def taken(playground: Path) -> str | None:
    """The page, if it is there and of the present sources."""
    text = playground.read_text(encoding="utf-8") if playground.exists() else ""
    if built_of.mark() in text:
        return text
    why = "is of other sources" if text else "is not there"
    print(f"site: without the playground: {playground} {why}; `make play` builds it", file=sys.stderr)
    return None


def _by_number(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


TO_NEWEST = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>tcpknee</title>
<meta http-equiv="refresh" content="0; url={address}/index.html">
<p><a href="{address}/index.html">tcpknee {version}</a></p></html>
"""

if __name__ == "__main__":
    page = taken(Path(sys.argv[2])) if len(sys.argv) > 2 else None
    print(f"built {make(Path(sys.argv[1]), metadata.version('tcpknee'), page)}")
