"""Makes a web site of all pages: `make site`. Each version has a folder of its own below build/site, and stays until
somebody removes it; a page leads to the versions beside its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import build

ROOT = Path(__file__).resolve().parent.parent
PLAYGROUND = ROOT / "build" / "play" / "index.html"
"""What `make play` built: a page with all that it needs."""


HOME = re.compile("<!-- home -->(.+?)<!-- /home -->")
"""Where the page, which may stand alone, has a way to the site that it is a part of."""


def make(site: Path, version: str) -> Path:
    """All pages as the folder `version` of `site`. Returns the page to begin with."""
    with tempfile.TemporaryDirectory() as name:
        # Folders in it are those that mkdocs.yml names.
        work = Path(name)
        shutil.copy(ROOT / "mkdocs.yml", work)
        if wrong := build.build(work / "build" / "docs"):
            raise SystemExit("\n".join(wrong))
        words = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
        done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"site: zensical failed:\n{done.stdout}{done.stderr}")
        html = work / "build" / "html"
        # The order of pages is none, pages search what stands in the script (the same as JSON is for servers), and the
        # page for wrong addresses takes this folder for the root of a host.
        for name in ("SUMMARY.html", "sitemap.xml", "search.json", "404.html"):
            (html / name).unlink(missing_ok=True)
        (html / "play").mkdir()
        playground = PLAYGROUND.read_text(encoding="utf-8") if PLAYGROUND.exists() else NO_PLAYGROUND
        (html / "play" / "index.html").write_text(
            HOME.sub(r'<a href="../index.html">\1</a>', playground), encoding="utf-8"
        )
        folder = site / version
        shutil.rmtree(folder, ignore_errors=True)
        site.mkdir(parents=True, exist_ok=True)
        shutil.move(html, folder)
    versions = sorted((one.parent.name for one in site.glob("*/index.html")), key=_by_number, reverse=True)
    (site / "versions.js").write_text(f"window.tcpkneeVersions = {json.dumps(versions)};\n", encoding="utf-8")
    (site / "index.html").write_text(TO_NEWEST.format(version=versions[0]), encoding="utf-8")
    return folder / "index.html"


def _by_number(version: str) -> list[int]:
    return [int(part) if part.isdigit() else 0 for part in version.split(".")]


TO_NEWEST = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>tcpknee</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<p><a href="{version}/index.html">tcpknee {version}</a></p></html>
"""
NO_PLAYGROUND = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>No playground here</title>
<p>This copy of the site was built without the playground. <code>make play</code> builds it, and <code>make site</code>
then takes it in. Back to <!-- home -->tcpknee<!-- /home -->.</p></html>
"""

if __name__ == "__main__":
    if not PLAYGROUND.exists():
        print("site: without the playground; `make play` builds it", file=sys.stderr)
    print(f"built {make(Path(sys.argv[1]), metadata.version('tcpknee'))}")
