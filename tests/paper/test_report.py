"""The report page, without a browser: what is on it, that it loads nothing, and missing or broken results."""

import json
import math
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from linearcore import LinearCore, Pairwise
from linearcore.analysis import certify, regret_ratio
from linearcore.forms import FORMS
from linearcore.surrogates import BASES, LogisticBase
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report import write_report
from linearcore_paper.report._evidence import LIVE
from linearcore_paper.report._facts import SIDES, explorer_facts, linear_bound
from linearcore_paper.report._figures import inline_svg
from linearcore_paper.report._page import _ICONS, _ORDER, _split_long
from linearcore_paper.report._results import catalogue, format_value, number
from linearcore_paper.report.corrections import CORRECTIONS
from linearcore_paper.runner import VERDICTS, results_folder
from tests.cases import each
from tests.paper.outcomes import write_conclusion

CLAIMS = [
    dict(zip(("claim", "paper", "ours", "verdict", "correction"), row, strict=True))
    for row in (
        ("The local slope tends to 1", 1.0, 0.9996, "holds", None),
        ("A straight fit has slope 1", "1", 0.8388694, "holds with a correction", "l"),
        ("T(t) ≥ t/τ & more <b>, as `thresholds` has it", "t/τ", "τ·t", "does not hold", "f"),
        ("At full size", None, None, "not judged", None),
    )
]


def fake_results(out: Path, names: tuple[str, ...] = ("rates", "thresholds"), draw=None) -> Path:
    """An output folder as the runner leaves it, with `draw(path, name)` for the figures."""
    for name in names:
        write_conclusion(
            out,
            name,
            command=f"linearcore reproduce {name}",
            settings={"scale": "smoke", "deltas": [1e-4, 1e-1], "device": "cpu"},
            results={"claims": CLAIMS, "data": {}, "alt": f"Curves of {name} & their limits"},
            seed=7,
        )
        (draw or tiny_svg)(results_folder(out, name) / f"{name}.svg", name)
    return out


def tiny_svg(path: Path, name: str) -> None:
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="100pt" height="50pt">'
        '<metadata><a href="http://example.org/"/></metadata><!-- a comment --><script>alert(1)</script>'
        '<defs><style type="text/css">*{stroke-linejoin: round}</style><path id="dot" d="M0 0h1"/>'
        '<clipPath id="c"><rect width="9" height="9"/></clipPath></defs>'
        '<use xlink:href="#dot" onclick="x()" clip-path="url(#c)"/><image xlink:href="http://example.org/x.png"/></svg>',
        "utf-8",
    )


class Page(HTMLParser):
    """Collects ids, references and texts, and complains about tags that do not close."""

    VOID = frozenset(("meta", "input", "img", "link", "br", "hr"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else at {self.getpos()}"

    def handle_data(self, data):
        self.text += data.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_report(fake_results(tmp_path_factory.mktemp("out"))).read_text("utf-8")


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_page_is_well_formed_and_its_ids_and_links_agree(page):
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_every_experiment_and_letter_is_there(page):
    assert {entry.name for entry in catalogue()} <= set(page.ids)
    assert {f"correction-{letter}" for letter in "abcdefghijklmnopqrstuvw"} <= set(page.ids)
    for entry in catalogue():
        assert entry.title in page.text and entry.place in page.text
    for correction in CORRECTIONS:
        assert correction.title in page.text and correction.instead in page.text


def test_nothing_is_loaded(source, page):
    loading = [
        value
        for tag, attributes in page.tags
        for key, value in attributes.items()
        if (key in ("src", "srcset", "data", "action", "poster") or (key == "href" and tag != "a"))
    ]
    assert all(value.startswith(("#", "data:")) for value in loading)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|import\(", source)
    # The one address left is the name of the SVG namespace, which a script needs and nobody fetches.
    assert set(re.findall(r"https?://[^\s\"'<>]+", source)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in source


def test_claims_stand_beside_our_numbers(source, page):
    assert "0.8389" in page.text and "holds with a correction" in page.text
    assert "t/τ &amp; more &lt;b&gt;, as <code>thresholds</code> has it" in source
    counts = dict(re.findall(r"<dt>.*?</svg>([a-z ]+)</dt><dd>(\d+)</dd>", source))
    # Two experiments with one claim of each kind, fourteen without results.
    expected = {"holds": "2", "holds with a correction": "2", "does not hold": "2", "not judged": "2", "not run": "14"}
    assert counts == expected
    assert "linearcore reproduce vanishing-core" in page.text
    assert "1e−4" not in page.text and "0.0001, 0.1" in page.text  # the settings
    assert "seed" in page.text and "smoke" in page.text


def test_corrections_show_claims_tables_or_what_to_run(source):
    parts = {letter: re.search(rf'id="correction-{letter}".*?</article>', source, re.DOTALL)[0] for letter in "fhl"}
    assert 'href="#rates"' in parts["l"] and "0.8389" in parts["l"] and "not run" not in parts["l"]
    assert "0.002698" in parts["f"]
    assert "not run" in parts["h"] and "noise" in parts["h"]


def test_figures_have_text_alternatives_and_do_not_collide(source, page):
    figures = [
        attributes for tag, attributes in page.tags if tag == "svg" and attributes.get("id", "").startswith("figure-")
    ]
    assert [figure["aria-label"] for figure in figures] == [
        f"Curves of {name} & their limits" for name in ("rates", "thresholds")
    ]
    assert all(figure["role"] == "img" and "width" not in figure for figure in figures)
    assert "url(#figure-rates-c)" in source and 'href="#figure-thresholds-dot"' in source
    assert "alert" not in source and "onclick" not in source and "#figure-rates * {" in source


def test_a_folder_without_results_gives_a_page_that_says_so(tmp_path):
    page = Page(write_report(tmp_path).read_text("utf-8"))
    for entry in catalogue():
        known = entry.name in EXPERIMENTS
        words = f"linearcore reproduce {entry.name}" if known else f"experiment {entry.name}, which is not implemented"
        assert words in page.text
    assert f"0 of {len(catalogue())} experiments" in page.text and "no experiment has results" in page.text
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_a_missing_figure_is_said_and_a_picture_takes_its_place(tmp_path):
    fake_results(tmp_path)
    (tmp_path / "rates" / "rates.svg").unlink()
    assert "No figure was written" in write_report(tmp_path).read_text("utf-8")
    (tmp_path / "rates" / "rates.png").write_bytes(b"\x89PNG")
    assert '<img alt="Curves of rates &amp; their limits" src="data:image/png;base64,' in write_report(tmp_path).read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda record: "{\n", "a record in every line"),
        (lambda record: "[]\n", "a record in every line"),
        (lambda record: {**record, "format": 99}, "a record in every line"),
        (lambda record: {**record, "results": []}, "`results` must be an object"),
        (lambda record: {**record, "results": {"claims": [{"claim": "x"}]}}, "claim"),
        (lambda record: {**record, "results": {"claims": [{**CLAIMS[0], "verdict": "maybe"}]}}, "'maybe'"),
    ],
)
def test_a_broken_file_is_named_in_one_line(tmp_path, change, complaint):
    path = fake_results(tmp_path) / "rates" / "results.jsonl"
    broken = change(json.loads(path.read_text("utf-8")))
    path.write_text(broken if isinstance(broken, str) else json.dumps(broken) + "\n", "utf-8")
    with pytest.raises(ValueError, match=re.escape(complaint)) as error:
        write_report(tmp_path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "report.html").exists()


def test_a_broken_figure_is_named(tmp_path):
    path = fake_results(tmp_path) / "rates" / "rates.svg"
    path.write_text("<svg", "utf-8")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        write_report(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`out_dir` must be a folder"):
        write_report(tmp_path / "nowhere")


def test_svg_without_a_view_box_gets_one(tmp_path):
    tiny_svg(tmp_path / "x.svg", "x")
    assert 'viewBox="0 0 100 50"' in inline_svg(tmp_path / "x.svg", "x", "y")


def test_long_results_are_folded_after_their_first_sentence():
    details = "; ".join(f"case {number}: {number} times" for number in range(40))
    assert _split_long(f"Twice as fast. {details}") == ("Twice as fast.", details)
    # A short text, and one without a second sentence, stay as they are.
    assert _split_long("Twice as fast. Once.") == ("Twice as fast. Once.", "") and _split_long(details) == (details, "")


def test_page_and_runner_agree_on_verdicts_and_names():
    assert set(_ICONS) == set(_ORDER) == set(VERDICTS)
    assert _ORDER[0] == "holds" and _ORDER[-1] == "does not hold"
    names = [entry.name for entry in catalogue()]
    assert [name for name in names if name in EXPERIMENTS] == list(EXPERIMENTS)
    assert {name for correction in CORRECTIONS for name in correction.experiments} <= set(names)


@pytest.mark.parametrize("letter", LIVE)
def test_live_evidence_is_a_full_table(letter):
    evidence = LIVE[letter]()
    assert evidence.rows and all(len(row) == len(evidence.columns) and all(row) for row in evidence.rows)


def test_live_evidence_agrees_with_what_was_published():
    # docs/results/corrections.json, computed by another program.
    assert LIVE["b"]().rows[0][1:] == ("−1.000", "1.000")
    assert LIVE["c"]().rows[0][1:] == ("0.000", "0.111", "0.404", "0.946")
    assert LIVE["f"]().rows[0] == ("0.25", "0.01", "0.0025", "0.002698", "0.0026", "0.04")
    assert [row[2] for row in LIVE["g"]().rows] == ["0.322", "0.205", "0.148"]
    assert LIVE["j"]().rows[-1][-1] == "0.5000"


@each(
    ("base", "sides"),
    {f"{base}-{sides}": (base, sides) for base in BASES for sides in SIDES},
    ("logistic-1", "quartic-1", "gamma-2"),
)
def test_bounds_on_the_page_are_those_of_the_certificates(base, sides):
    surrogate = LinearCore(base, tau=0.5, sides=sides)
    for form in FORMS.values():
        two, more = (linear_bound(surrogate, form, more_than_two)["verdict"] for more_than_two in (False, True))
        if two == "refused":
            assert more == "refused"
            assert (form.name, sides) == ("centered", 2) or (form.name, base) == ("logodds", "quartic")
            continue
        certificate = certify(surrogate, form.normalized(False), 2)
        assert certificate.convex == explorer_facts()["forms"][form.name][base][str(sides)]["is_convex"]
        found = certificate.linear_bound
        assert (found.verdict, found.constant) == (two, 2.0)
        if more == "proven":
            found = certify(surrogate, form.normalized(False), 4).linear_bound
            assert (found.verdict, found.constant) == ("proven", 2.0)
        # The point that the page names; a search would find it too, in seconds instead of milliseconds.
        ratio = regret_ratio(surrogate, form.normalized(False), [0.402, 0.398, 0.2], prediction=1).ratio
        assert ratio >= 0.5 if more == "proven" else ratio < 0.1


def test_facts_are_json_and_complete():
    facts = json.loads(json.dumps(explorer_facts(), allow_nan=False))
    assert set(facts["bases"]) == set(BASES) and set(facts["forms"]) == set(FORMS)
    assert (
        facts["bases"]["gamma"]["sides"]["2"]["is_c2"] and facts["bases"]["exponential"]["sides"]["2"]["lipschitz"] is None
    )


def test_the_explorer_leaves_out_what_it_cannot_draw(monkeypatch):
    @dataclass(frozen=True)
    class Other(LogisticBase):
        name = "other"

    @dataclass(frozen=True)
    class Uneven(Pairwise):
        """Margins that differ from each other."""

        name = "uneven"

        def margins(self, own, candidates, basis):
            system = super().margins(own, candidates, basis)
            return replace(system, rows=system.rows * torch.arange(1.0, len(system.rows) + 1).unsqueeze(-1))

    monkeypatch.setitem(BASES, "other", Other())
    monkeypatch.setitem(FORMS, "uneven", Uneven())
    facts = explorer_facts()
    assert "other" not in facts["bases"] and "uneven" not in {*facts["forms"], *facts["margins"]}


def test_the_margin_of_a_lead_is_computed_by_the_library():
    margins = explorer_facts()["margins"]
    assert margins["centered"]["10"] == pytest.approx({"gain": 0.1, "shift": 0.0})
    assert margins["logodds"]["100"] == pytest.approx({"gain": 1.0, "shift": -math.log(99)})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (True, "yes"),
        (-3, "−3"),
        (0.8388694, "0.8389"),
        (1e-7, "1e−7"),
        ([1, 2.5], "1, 2.5"),
        ({"a": 1}, "a: 1"),
    ],
)
def test_values_are_written_for_readers(value, text):
    assert format_value(value) == text


def test_infinity_is_a_sign():
    assert (number(float("inf")), number(float("-inf"))) == ("∞", "−∞")
