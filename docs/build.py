"""Builds every page into a folder, as Markdown: those of the repository, the reference pages, the gallery, each file
that one of them links to, and the order of all. Says which links lead nowhere. `make docs` is this; `make site` makes
HTML of that folder (mkdocs.yml).

A page of the repository has `<!-- reference: NAME -->` where the built page links to a reference page; NAME/* stands
for all directly below NAME. `<!-- drawn: NAME -->` stands for a drawing (drawings.py). What stands between
`<!-- playground -->` and `<!-- /playground -->` leads to the playground, and is left out where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import drawings
import gallery
import generate
import recipes
import reference
import suite_pages
from layout import listing, plain, sentence

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = ROOT / "site"
MARK = re.compile(r"^<!-- reference: (\S+) -->$", re.MULTILINE)
TO_PLAYGROUND = re.compile("<!-- playground -->(.*?)<!-- /playground -->", re.DOTALL)
DRAWN = re.compile(r"^<!-- drawn: (\S+) -->$", re.MULTILINE)
SUITES = "<!-- suites -->"
"""There: the table of all suites."""
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")
PAGE = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#]+\.md)\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
RENAMED = {
    "site/index.md": "index.md",
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "reference/README.md": "results-files.md",
}
"""Pages that stand beside docs/, and their names among the built ones."""
INDEX = "reference/index.md"
GALLERY = "gallery/index.md"
ORDER = "SUMMARY.md"
"""The sections of the site and their pages, as the plugin literate-nav reads them."""
CONTENTS = "contents.md"


def sources() -> dict[str, str]:
    """The pages of the repository by the paths of the built ones. The index of docs/ has a name of its own."""
    names = {built: source for source, built in RENAMED.items()}
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        names[CONTENTS if name == "README.md" else name.replace("README.md", "index.md")] = f"docs/{name}"
    return names


def build(out: Path, *, playground: bool) -> list[str]:
    """Writes all pages below `out`, which is made anew; they lead to a playground only if there will be one. Returns
    what is wrong with their links."""
    if out.exists() and not (out / INDEX).exists():
        raise SystemExit(f"docs: {out}: got a folder of something else; expected a new one, or pages built before.")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(DOCS / "pictures", out / "pictures")
    shutil.copytree(SITE / "look", out / "look")
    _write(out / "look" / "families.css", drawings.styles())
    made = reference.pages()
    claims, of_suites = gallery.pages(playground=playground), suite_pages.pages()
    written = {INDEX: _index(made), GALLERY: gallery.index()}
    written |= {f"reference/{name}.md": _titled(page) for name, page in made.items()}
    written |= {f"gallery/{name}.md": _titled(page) for name, page in claims.items()}
    written |= {f"suites/{name}.md": _titled(page) for name, page in of_suites.items()}
    contributing, steps = recipes.split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    # Where each page is built, by the path that links to it. Links of a written page are as those of a page of docs/.
    places = {source: built for built, source in sources().items()}
    places |= {f"docs/{built}": built for built in written}
    places |= {f"docs/contribute/{one.name}.md": f"contribute/{one.name}.md" for one in steps}
    places |= {f"docs/pictures/{picture.name}": f"pictures/{picture.name}" for picture in DOCS.glob("pictures/*")}
    pages = {built: (Path(source).parent, _page(source, made)) for built, source in sources().items()}
    pages |= {built: (Path("docs"), text) for built, text in written.items()}
    pages[RENAMED["CONTRIBUTING.md"]] = (Path(), contributing)
    pages |= {f"contribute/{one.name}.md": (Path(), one.text) for one in steps}
    kept = r"\1" if playground else ""
    pages = {built: (folder, TO_PLAYGROUND.sub(kept, text)) for built, (folder, text) in pages.items()}
    linked: dict[str, str] = {}
    for built, (folder, text) in pages.items():
        _write(out / built, _outside_code(text, _relinked(Path(built).parent, folder, places, linked)))
    for built, source in linked.items():
        _write(out / built, _of_file(source))
    wrong = broken(sorted(out.rglob("*.md")))
    _write(out / ORDER, _order(out, made, claims, of_suites, steps, playground=playground))
    return wrong


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _titled(page: reference.Page) -> str:
    return f"# {page.title}\n\n{page.text}"


def _of_file(source: str) -> str:
    """A page that shows a file of the repository; of a folder, the names of its files."""
    path = ROOT / source
    text = "\n".join(f"- `{one.name}`" for one in sorted(path.iterdir())) if path.is_dir() else listing(path)
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{source}`\n\n{text}\n"


def _order(
    out: Path,
    made: dict[str, reference.Page],
    claims: dict[str, reference.Page],
    of_suites: dict[str, reference.Page],
    steps: list[recipes.Recipe],
    *,
    playground: bool,
) -> str:
    """The sections of docs/README.md with the pages that it names, the reference, the gallery, and the recipes."""
    below = {
        "Start": [(1, "[tcpknee](index.md)")],
        "Gallery": [(1, f"[Gallery]({GALLERY})"), *_grouped("gallery", _by_id(claims), gallery.GROUPED)],
        "Reference": [(1, f"[Reference]({INDEX})"), *_grouped("reference", made, reference.GROUPED)],
        "Validation": [
            (1, "[Validation](validation/index.md)"),
            *_listed(out / "validation" / "index.md", 1),
            (1, "[Suites](suites.md)"),
            *((2, f"[{page.title}](suites/{name}.md)") for name, page in of_suites.items()),
        ],
    }
    lines: list[tuple[int, str]] = []
    for part in (out / CONTENTS).read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        if title == "Validation" and playground:
            lines.append((0, "[Playground](play/index.html)"))
        lines += [(0, title), *below.get(title, [])]
        if title == "Validation":
            continue
        depth = 1
        for line in text.splitlines():
            if line.startswith("### "):
                lines.append((1, line.removeprefix("### ")))
                depth = 2
            lines += [(depth, f"[{_entry(name)}]({page})") for name, page in PAGE.findall(line)]
        if title == "Start":
            lines.append((1, f"[All pages]({CONTENTS})"))
        if title == "Contribute":
            lines += [(1, f"[{one.title}](contribute/{one.name}.md)") for one in steps]
    return "".join(f"{'    ' * depth}- {line}\n" for depth, line in lines)


def _by_id(claims: dict[str, reference.Page]) -> dict[str, reference.Page]:
    """Claims are sentences, which are too long for a navigation."""
    return {name: reference.Page(name, page.text) for name, page in claims.items()}


def _entry(name: str) -> str:
    """As the navigation says it. A command begins as it is typed."""
    return plain(name) if name.startswith("`") else sentence(plain(name))


def _listed(page: Path, depth: int) -> list[tuple[int, str]]:
    """The pages beside a page that it links to."""
    found = PAGE.findall(page.read_text(encoding="utf-8"))
    return [(depth, f"[{name}]({page.parent.name}/{to})") for name, to in found if "/" not in to]


def _grouped(
    folder: str, pages: dict[str, reference.Page], grouped: dict[str, Callable[[str], bool]]
) -> Iterator[tuple[int, str]]:
    for title, belongs in grouped.items():
        yield 1, title
        yield from ((2, f"[{plain(page.title)}]({folder}/{name}.md)") for name, page in pages.items() if belongs(name))


def _page(source: str, made: dict[str, reference.Page]) -> str:
    """A page of the repository: its generated parts lead to reference pages, and so do its marks."""
    text = generate.generated((ROOT / source).read_text(encoding="utf-8"), built=True)
    text = DRAWN.sub(lambda mark: drawings.DRAWN[mark[1]](), text)
    text = text.replace(SUITES, suite_pages.index())
    return MARK.sub(lambda mark: "Reference: " + ", ".join(_links(mark[1], made)) + ".", text)


def _links(name: str, made: dict[str, reference.Page]) -> Iterator[str]:
    family, _, every = name.rpartition("/")
    chosen = [one for one in made if one == name or (every == "*" and one.rpartition("/")[0] == family)]
    if not chosen:
        raise SystemExit(f'docs: no reference page "{name}"; expected one of {", ".join(made)}')
    return (f"[{made[one].title}](/reference/{one}.md)" for one in chosen)


def _index(made: dict[str, reference.Page]) -> str:
    """All reference pages, by what they are of."""
    parts = ["# Reference\n"]
    for title, belongs in reference.GROUPED.items():
        listed = [
            f"- [{page.title}](reference/{name}.md){_first_words(page)}\n"
            for name, page in made.items()
            if belongs(name)
        ]
        parts.append(f"## {title}\n\n{''.join(listed)}")
    return "\n".join(parts)


def _first_words(page: reference.Page) -> str:
    """What a page begins with, up to its first full stop, where those are words of its own."""
    first = page.text.lstrip().split("\n\n", 1)[0].replace("\n", " ")
    if not re.match(r"[A-Z](?!.*\]\()", first):
        return ""
    return ": " + re.split(r"(?<=[.])\s", first)[0]


def _outside_code(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """The text with each link changed that stands in no block of code."""
    parts, at = [], 0
    for block in FENCE.finditer(text):
        parts += [LINK.sub(change, text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*parts, LINK.sub(change, text[at:])])


def _relinked(
    here: Path, folder: Path, places: dict[str, str], linked: dict[str, str]
) -> Callable[[re.Match[str]], str]:
    """A link of a page of `folder` as it is from `here`: to a built page, or else to one that shows the file, which
    `linked` keeps."""

    def change(link: re.Match[str]) -> str:
        target, hash_, anchor = link[2].partition("#")
        if not target or ":" in target:
            return link[0]
        # A mark's link is written as from docs/, on whatever page the mark stands.
        path = os.path.normpath(("docs" if target.startswith("/") else folder) / Path(target.removeprefix("/")))
        built = places.get(path)
        if built is None and (ROOT / path).exists():
            # A suffix would make it a page of code, as that of a scenario.
            built = f"source/{path.replace('.', '-')}.md"
            linked[built] = path
        to = os.path.relpath(built or path, here)
        return f"{link[1]}{to}{hash_}{anchor}{link[3]}"

    return change


def links(text: str) -> Iterator[str]:
    """The targets of a page's links."""
    found: list[str] = []

    def note(link: re.Match[str]) -> str:
        found.append(link[2])
        return link[0]

    _outside_code(text, note)
    yield from found


def anchors(text: str) -> set[str]:
    """What the headings of a page may be linked by, as GitHub makes it."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def broken(pages: list[Path]) -> list[str]:
    """Links of pages to files and headings that are not there."""
    wrong = []
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    for page, text in texts.items():
        for target in links(text):
            name, _, anchor = target.partition("#")
            if ":" in name:
                continue
            to = (page.parent / name).resolve() if name else page.resolve()
            if not to.exists():
                wrong.append(f"{page}: {target}: no such file")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to.read_text(encoding="utf-8")):
                wrong.append(f"{page}: {target}: no such heading")
    return wrong


def main() -> int:
    out = Path(sys.argv[1])
    wrong = build(out, playground=False)
    for one in wrong:
        print(one, file=sys.stderr)
    print(f"built {len(list(out.rglob('*.md')))} pages into {out}; begin with {out / 'index.md'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
