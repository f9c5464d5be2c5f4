"""Builds every page into a folder, the reference pages among them: `make docs`. Says which links lead nowhere.

A page of the repository has `<!-- reference: NAME -->` where the built page links to a reference page; NAME/* stands
for all below NAME.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import generate
import reference

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MARK = re.compile(r"^<!-- reference: (\S+) -->$", re.MULTILINE)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
RENAMED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages that stand beside docs/, and their names among the built ones."""
INDEX = "reference/index.md"


def sources() -> dict[str, str]:
    """The pages of the repository by the paths of the built ones. The index of docs/ has a name of its own."""
    names = {built: source for source, built in RENAMED.items()}
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        names["contents.md" if name == "README.md" else name] = f"docs/{name}"
    return names


def build(out: Path) -> list[str]:
    """Writes all pages below `out`, which is made anew. Returns what is wrong with their links."""
    if out.exists() and not (out / INDEX).exists():
        raise SystemExit(f"docs: {out}: got a folder of something else; expected a new one, or pages built before.")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(DOCS / "pictures", out / "pictures")
    made = reference.pages()
    # Where each page is built, by the path that links to it.
    places = {source: built for built, source in sources().items()}
    places |= {f"docs/{built}": built for built in (INDEX, *(f"reference/{name}.md" for name in made))}
    places |= {f"docs/pictures/{picture.name}": f"pictures/{picture.name}" for picture in DOCS.glob("pictures/*")}
    # Links of a reference page are written as those of a page of docs/.
    pages = {built: (Path(source).parent, _page(source, made)) for built, source in sources().items()}
    pages |= {f"reference/{name}.md": (Path("docs"), f"# {page.title}\n\n{page.text}") for name, page in made.items()}
    pages[INDEX] = (Path("docs"), _index(made))
    for built, (folder, text) in pages.items():
        path = out / built
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_outside_code(text, _relinked(out, path.parent, folder, places)), encoding="utf-8")
    return broken(sorted(out.rglob("*.md")))


def _page(source: str, made: dict[str, reference.Page]) -> str:
    """A page of the repository: its generated parts lead to reference pages, and so do its marks."""
    text = generate.generated((ROOT / source).read_text(encoding="utf-8"), built=True)
    return MARK.sub(lambda mark: "Reference: " + ", ".join(_links(mark[1], made)) + ".", text)


def _links(name: str, made: dict[str, reference.Page]) -> Iterator[str]:
    family = name.removesuffix("*")
    chosen = [one for one in made if one == name or (family != name and one.startswith(family))]
    if not chosen:
        raise SystemExit(f'docs: no reference page "{name}"; expected one of {", ".join(made)}')
    return (f"[{made[one].title}](/reference/{one}.md)" for one in chosen)


def _index(made: dict[str, reference.Page]) -> str:
    """All reference pages, by what they are of."""
    parts = ["# Reference\n"]
    for title, belongs in reference.GROUPED.items():
        listed = [f"- [{page.title}](reference/{name}.md)\n" for name, page in made.items() if belongs(name)]
        parts.append(f"## {title}\n\n{''.join(listed)}")
    return "\n".join(parts)


def _outside_code(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """The text with each link changed that stands in no block of code."""
    parts, at = [], 0
    for block in FENCE.finditer(text):
        parts += [LINK.sub(change, text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*parts, LINK.sub(change, text[at:])])


def _relinked(out: Path, here: Path, folder: Path, places: dict[str, str]) -> Callable[[re.Match[str]], str]:
    """A link of a page of `folder` as it is from `here`: to a built page, or else to a file of the repository."""

    def change(link: re.Match[str]) -> str:
        target, hash_, anchor = link[2].partition("#")
        if not target or ":" in target:
            return link[0]
        # A mark's link is written as from docs/, on whatever page the mark stands.
        path = os.path.normpath(("docs" if target.startswith("/") else folder) / Path(target.removeprefix("/")))
        to = os.path.relpath(out / places[path] if path in places else ROOT / path, here)
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
    wrong = build(out)
    for one in wrong:
        print(one, file=sys.stderr)
    print(f"built {len(list(out.rglob('*.md')))} pages into {out}; begin with {out / 'index.md'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
