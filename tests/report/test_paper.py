"""Figures as papers take them: of a given width to the point, in greys, as PDF; and what notebooks see of a run."""

from __future__ import annotations

import itertools
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tcpknee
from tcpknee import pages
from tcpknee.datasets.table import Table
from tcpknee.errors import UsageError
from tcpknee.pages import palette
from tcpknee.pages.export import Paper

FIGURES = ("axes", "goodput", "timeseries")


@pytest.mark.parametrize("figure", FIGURES)
def test_svg_and_pdf_are_as_wide_as_was_asked(case: Callable[[str], Path], tmp_path: Path, figure: str) -> None:
    svg = pages.save(case("matrix"), figure, tmp_path / "a.svg", width="3.4in").read_text()
    width, height = re.findall(r'<svg [^>]* width="([0-9.]+)pt" height="([0-9.]+)pt"', svg)[0]
    left, top, across, down = map(float, re.findall(r'viewBox="([^"]+)"', svg)[0].split())
    assert (float(width), left, top) == (244.8, 0, 0)
    assert float(height) / float(width) == pytest.approx(down / across, rel=1e-3), "nothing is stretched"
    # Letters of 12 pixels are of 8 points.
    assert across == pytest.approx(1.5 * 244.8, abs=2)
    pdf = pages.save(case("matrix"), figure, tmp_path / "a.pdf", width="3.4in").read_bytes()
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", pdf)
    assert pdf.startswith(b"%PDF-") and box and float(box[1]) == pytest.approx(244.8, abs=0.1)


@pytest.mark.parametrize(
    ("width", "pixels", "dots_per_inch"), [("3.4in", 2040, 600), ("86mm", 2031, 600), (None, None, 144)]
)
def test_a_png_says_how_wide_it_is_on_paper(
    case: Callable[[str], Path], tmp_path: Path, width: str | None, pixels: int | None, dots_per_inch: int
) -> None:
    png = pages.save(case("one"), "goodput", tmp_path / "a.png", width=width).read_bytes()
    across, _ = struct.unpack(">II", png[16:24])
    at = png.index(b"pHYs") + 4
    x_per_metre, y_per_metre, unit = struct.unpack(">IIB", png[at : at + 9])
    assert (x_per_metre, y_per_metre, unit) == (round(dots_per_inch / 0.0254), round(dots_per_inch / 0.0254), 1)
    assert pixels is None or abs(across - pixels) <= 1


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_figure_that_is_saved_twice_is_the_same_bytes(
    case: Callable[[str], Path], tmp_path: Path, ending: str
) -> None:
    figure = tcpknee.figure(case("one"), "timeseries")
    first, second = (figure.save(tmp_path / f"{name}.{ending}", width="3.4in").read_bytes() for name in "ab")
    assert first == second


def test_pictures_in_one_page_share_no_name(case: Callable[[str], Path], tmp_path: Path) -> None:
    names = []
    for condition in (0, 1):
        picture = pages.save(case("matrix"), "timeseries", tmp_path / "a.svg", condition=condition).read_text()
        names.append(set(re.findall(r'\bid="([^"]+)"', picture)))
        assert names[-1] == set(re.findall(r"url\(#([^)]+)\)", picture)) != set()
    assert not names[0] & names[1]


@pytest.mark.parametrize("width", ["3.4", "in", "0.5in", "30in", "-3in", "3.4 in", "1e2in"])
def test_a_width_that_is_none_is_refused(width: str) -> None:
    with pytest.raises(UsageError, match=r'width: got ".*"; expected 1in to 20in'):
        _ = Paper(width).points


def test_a_font_is_asked_for_by_name_and_must_be_installed(case: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='font: got "No Such Letters", which is not installed'):
        pages.save(case("matrix"), "axes", tmp_path / "a.pdf", font="No Such Letters")
    svg = pages.save(case("matrix"), "axes", tmp_path / "a.svg", font="DejaVu Serif").read_text()
    assert 'font-family="DejaVu Serif"' in svg and "system-ui" not in svg


@pytest.mark.skipif(shutil.which("fc-list") is None, reason="not installed: fontconfig")
def test_a_font_is_found_in_whatever_case_and_a_near_one_is_named(case: Callable[[str], Path], tmp_path: Path) -> None:
    svg = pages.save(case("matrix"), "axes", tmp_path / "a.svg", font="dejavu SERIF").read_text()
    assert 'font-family="DejaVu Serif"' in svg and "dejavu SERIF" not in svg
    with pytest.raises(UsageError, match=r'not installed here; .* Did you mean "DejaVu Serif"\?'):
        pages.save(case("matrix"), "axes", tmp_path / "b.svg", font="dejavu serrif")


def test_grey_has_no_colour_and_keeps_algorithms_apart(case: Callable[[str], Path], tmp_path: Path) -> None:
    svg = pages.save(case("matrix"), "axes", tmp_path / "a.svg", grey=True).read_text()
    inks = set(re.findall(r"#[0-9A-Fa-f]{6}\b", svg))
    assert {"#000000", "#999999"} <= {ink.upper() for ink in inks}
    assert all(ink[1:3] == ink[3:5] == ink[5:7] for ink in inks), inks


def test_no_two_algorithms_look_alike_in_grey() -> None:
    """Where dash and shape are the same, greys are far apart, in steps of 255."""

    def look(name: str) -> tuple[int, list[int], str]:
        slot = palette.KNOWN[name]
        level = int(palette.grey(palette.colour(slot))[1:3], 16)
        return level, palette.dash(slot + palette.turn(slot)), palette.shape(slot)

    for one, other in itertools.combinations(set(palette.KNOWN) - {"bbr"}, 2):
        (dark, dash, shape), (light, dash_of_other, shape_of_other) = look(one), look(other)
        assert dash != dash_of_other or abs(dark - light) >= 32, f"lines: {one}, {other}"
        assert shape != shape_of_other or abs(dark - light) >= 32, f"points: {one}, {other}"
    for name in ("bbr1", "reno", "vegas", "dctcp", "htcp"):
        assert abs(look(name)[0] - look("cubic")[0]) >= 40, f"the grey alone: {name}"


def test_the_command_refuses_what_is_of_a_figure_without_one(case: Callable[[str], Path]) -> None:
    from click.testing import CliRunner

    from tcpknee.cli.report import command

    for option in (["--width", "3in"], ["--grey"], ["--font", "Times"]):
        done = CliRunner().invoke(command, [str(case("matrix")), *option])
        got = option[1] if len(option) > 1 else "it"
        assert done.exit_code == 2 and f"{option[0]}: got {got} without --figure" in done.output


def test_a_run_gives_its_figures_with_their_data(case: Callable[[str], Path], tmp_path: Path) -> None:
    run = tcpknee.open(case("matrix"))
    assert "goodput" in tcpknee.figures(run) and "cpu" not in tcpknee.figures(run)
    figure = run.figure("timeseries")
    data = figure.data()
    assert data["lines_srtt"].num_rows > 0 and all(isinstance(table, pa.Table) for table in data.values())
    assert all(name.startswith("values_") for name in run.figure("axes").data())
    shown = figure._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg") and any("vegalite" in kind for kind in shown)
    assert figure.save(tmp_path / "a.pdf", width="86mm").stat().st_size > 1000
    with pytest.raises(UsageError, match="does not apply"):
        run.figure("cpu")


def test_a_notebook_shows_a_run_and_a_table_and_runs_nothing_foreign(case: Callable[[str], Path]) -> None:
    shown = tcpknee.open(case("matrix"))._repr_html_()
    assert shown.startswith("<pre>") and "goodput" in shown
    table = Table(pa.table({"a<b>": ["<script>x</script>", None]}))
    assert table._repr_html_() == (
        "<table><thead><tr><th>a&lt;b&gt;<br><small></small></th></tr></thead>"
        "<tbody><tr><td>&lt;script&gt;x&lt;/script&gt;</td></tr><tr><td></td></tr></tbody></table>"
    )
    assert "<p><small>and 5 more rows</small></p>" in Table(pa.table({"a": range(25)}))._repr_html_()
