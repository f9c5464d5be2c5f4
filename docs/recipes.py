"""Recipes of CONTRIBUTING.md as pages of their own, each with the whole of a short example."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from layout import listing

ROOT = Path(__file__).resolve().parent.parent
RECIPE = re.compile(r"^### (.+)\n\n(?:A short one: \[(.+?)\]\(.+?\)\.\n\n)?((?:(?!^##).*\n)+)", re.MULTILINE)
"""Title, file of the example, text."""
ROW = re.compile(r"^\| ([a-z ]+) \| .+ \| .+ \| (.+) \|$", re.MULTILINE)
"""Of the table of all recipes: what is added, and what the tests demand of it."""


@dataclass(frozen=True)
class Recipe:
    """`name` is the page's path below contribute/. Links are as those of CONTRIBUTING.md."""

    title: str
    name: str
    text: str


def split(page: str) -> tuple[str, list[Recipe]]:
    """CONTRIBUTING.md with links to its recipes in their place, and those."""
    found: list[Recipe] = []
    demands = dict(ROW.findall(page))

    def take(part: re.Match[str]) -> str:
        title, example, text = part.groups()
        kinds = title.lower().removeprefix("an ").removeprefix("a ").split(", a ")
        parts = [f"# Add {title[0].lower()}{title[1:]}", text.strip()]
        parts += [f"The tests demand of a {kind}: {demands[kind]}." for kind in kinds if kind in demands]
        if example:
            parts.append(f"## A whole one\n\n`{example}`:\n\n{listing(ROOT / example)}")
        name = re.sub(r"\W+", "-", title.lower())
        found.append(Recipe(f"Add {title[0].lower()}{title[1:]}", name, "\n\n".join(parts) + "\n"))
        return f"- [{found[-1].title}](docs/contribute/{name}.md)\n"

    return RECIPE.sub(take, page), found
