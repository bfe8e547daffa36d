"""The report page in a real browser: it loads in silence, and its explorer shows what the library computes.

Screenshots are kept under test-artefacts/report. Without Chromium, its driver and selenium the tests are skipped.
"""

import base64
import math
import re
import shutil
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from linearcore import LinearCore
from linearcore.analysis import transform
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report import write_report
from linearcore_paper.report.items import ITEMS
from tests.paper.test_report import fake_results

selenium = pytest.importorskip("selenium", reason="selenium drives the browser; it comes with linearcore[test]")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None, reason="no browser here; on Debian: apt install chromium chromium-driver"
    ),
]

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

ARTEFACTS = Path(__file__).parents[2] / "test-artefacts" / "report"
BASES = ("logistic", "exponential", "quartic", "truncated_quadratic", "gamma")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
)


def draw(path: Path, name: str) -> None:
    """A figure as experiments draw them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    delta = np.geomspace(1e-4, 1e-1, 40)
    for tau in (0.1, 0.5, 1.0, 2.0):
        left.loglog(transform(LinearCore(tau=tau), 2 * delta), 2 * delta, label=f"τ = {tau:g}")
    left.set(title=name, xlabel="surrogate regret", ylabel="0-1 regret")
    left.legend(frameon=False)
    right.contourf(np.outer(np.linspace(0, 1, 9), np.linspace(0, 1, 9)))
    figure.savefig(path)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    names = ("surrogates", "rates", "thresholds", "vanishing-core", "counterexample", "optimization")
    return write_report(fake_results(tmp_path_factory.mktemp("out"), names, draw))


@pytest.fixture(scope="module")
def browser(tmp_path_factory, page):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def tab(browser, page):
    """The page, freshly loaded at desktop width in light colours."""
    show(browser, 1280, "light")
    browser.get("about:blank")
    browser.get(page.as_uri())
    return browser


def show(browser, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def choose(tab, **params) -> None:
    """Puts values into the controls as a pointer would: the control changes, then says so."""
    tab.execute_script(
        """for (const [name, value] of Object.entries(arguments[0])) {
             const control = document.getElementById("explorer-form").elements[name];
             control.value = String(value);
             const source = control instanceof RadioNodeList ? [...control].find((one) => one.checked) : control;
             source.dispatchEvent(new Event("input", {bubbles: true}));
           }""",
        params,
    )


def read_out(tab, name: str) -> float:
    return float(tab.find_element("id", f"read-{name}").text.replace("−", "-"))


class Drawn(NamedTuple):
    """A curve read back from the page in the units of its axes, and how exactly it is drawn: to a thousandth of a pixel."""

    path: str
    x: np.ndarray
    y: np.ndarray
    dx: float
    dy: float


def curve(tab, name: str) -> Drawn:
    """The part of the curve that lies inside its frame."""
    svg = tab.find_element("id", f"plot-{name}")
    path = svg.find_element("css selector", ".curve").get_attribute("d")
    pixels = np.array(re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path), float)
    (x0, x1, left, right), (y0, y1, bottom, top) = (map(float, svg.get_attribute(f"data-{axis}").split()) for axis in "xy")
    across, up = (x1 - x0) / (right - left), (y1 - y0) / (top - bottom)
    x, y = x0 + (pixels[:, 0] - left) * across, y0 + (pixels[:, 1] - bottom) * up
    inside = (y >= y0) & (y <= y1)
    return Drawn(path, x[inside], y[inside], 1e-3 * abs(across), 1e-3 * abs(up))


def test_page_loads_without_a_word_and_without_loading_anything(tab):
    assert tab.get_log("browser") == []
    assert tab.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert tab.title == "linearcore: reproduction of the paper"


def test_every_item_of_the_paper_has_a_visible_row_with_verdict_number_and_command(browser, tmp_path):
    # An empty folder, so that the page has the shipped records.
    show(browser, 1280, "light")
    browser.get(write_report(tmp_path).as_uri())
    rows = browser.find_elements("css selector", "#items tbody tr")
    cells = [[cell.text for cell in row.find_elements("css selector", "td")] for row in rows]
    assert [item.splitlines()[0] for item, *_ in cells] == [item.name for item in ITEMS]
    for item, (_, verdict, result, command) in zip(ITEMS, cells, strict=True):
        if item.checks[0][0] in EXPERIMENTS:
            assert re.search("hold", verdict) and re.search(r"\d", result) and command.startswith("linearcore reproduce ")
        else:
            assert verdict.startswith("next")


@pytest.mark.parametrize(("base", "sides"), list(product(BASES, (1, 2))))
def test_scripts_compute_what_the_library_computes(tab, base, sides):
    margins = [*np.linspace(-25, 25, 101), 1e3, -1e3]
    t = [*np.linspace(0, 1, 41), 1e-6, 1 - 1e-6]
    for tau, sharpness in ((1.0, 1.0), (0.05, 4.0), (2.5, 0.3)):
        surrogate = LinearCore(base, tau=tau, sides=sides, sharpness=sharpness)
        points = [*margins, *surrogate.knots]
        params = {"base": base, "sides": sides, "tau": tau, "sharpness": sharpness}
        answer = tab.execute_script(
            """const [points, t, p] = arguments, lc = window.linearcore;
               const functions = [lc.value, lc.derivative, lc.curvature].map((f) => points.map((u) => f(u, p)));
               return [...functions, t.map((x) => lc.transform(x, p))];""",
            points,
            t,
            params,
        )
        expected = (
            surrogate.value(points),
            surrogate.derivative(points),
            surrogate.curvature(points),
            transform(surrogate, t),
        )
        for found, wanted in zip(answer, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("base", "sides"), list(product(BASES, (1, 2))))
def test_scripts_declare_the_facts_that_the_library_declares(tab, base, sides):
    for tau, sharpness in ((1.0, 1.0), (0.3, 2.0), (0.2, 4.0)):
        surrogate = LinearCore(base, tau=tau, sides=sides, sharpness=sharpness)
        params = {"base": base, "sides": sides, "tau": tau, "sharpness": sharpness, "form": "pairwise"}
        facts = tab.execute_script(
            """const facts = window.linearcore.declared(arguments[0]);
               for (const name of ["lipschitz", "smoothness"]) facts[name] = String(facts[name]);
               return facts;""",
            params,
        )
        for name in ("is_c1", "is_c2", "is_monotone", "bounds_zero_one"):
            assert facts[name] == getattr(surrogate, name), name
        assert facts["knots"] == pytest.approx(surrogate.knots)
        for name in ("lipschitz", "smoothness"):
            found = math.inf if facts[name] == "Infinity" else float(facts[name])
            assert found == pytest.approx(getattr(surrogate, name)), name


# base, sides, τ, sharpness, form, classes
SETTINGS = [
    ("logistic", 1, 0.4, 2.5, "pairwise", 2),
    ("gamma", 2, 1.5, 1.0, "pairwise", 10),
    ("exponential", 1, 0.6, 1.0, "centered", 3),
    ("truncated_quadratic", 2, 1.0, 1.0, "logodds", 100),
    ("quartic", 1, 0.8, 0.5, "centered", 2),
]
# The margin of a class that leads n − 1 tied competitors by d, and how fast it grows with d.
MARGINS = {
    "pairwise": lambda d, n: (d, 1),
    "centered": lambda d, n: (d / n, 1 / n),
    "logodds": lambda d, n: (d - math.log(n - 1), 1),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting)))
def test_controls_move_the_curves_to_the_values_of_the_library(tab, setting):
    base, sides, tau, sharpness, form, classes = setting
    before = {name: curve(tab, name) for name in ("value", "gradient", "curvature", "transform")}
    choose(tab, base=base, sides=sides, tau=tau, sharpness=sharpness, form=form, classes=classes, lead=1.35, t=0.3)
    surrogate = LinearCore(base, tau, sides, sharpness)
    functions = (surrogate.value, surrogate.derivative, surrogate.curvature)
    for order, (name, function) in enumerate(zip(("value", "gradient", "curvature"), functions, strict=True)):
        drawn = curve(tab, name)
        margin, gain = MARGINS[form](drawn.x, classes)
        # The curvature jumps at knots, where the pixel says too little about the margin.
        clear = np.min([np.abs(margin - knot) for knot in surrogate.knots], axis=0) > 1e-3 * gain
        expected = function(margin) * gain**order
        steepest = float(np.abs(np.diff(expected[clear]) / np.diff(drawn.x[clear])).max())
        np.testing.assert_allclose(drawn.y[clear], expected[clear], atol=drawn.dy + steepest * drawn.dx, err_msg=name)
        assert drawn.path != before[name].path
        margin, gain = MARGINS[form](1.35, classes)
        assert read_out(tab, name) == pytest.approx(float(function(margin)) * gain**order, rel=1e-6, abs=1e-9)
    drawn = curve(tab, "transform")
    expected = transform(surrogate, np.clip(drawn.x, 0, 1))
    np.testing.assert_allclose(drawn.y, expected, atol=drawn.dy + 10 * drawn.dx)
    assert drawn.path != before["transform"].path
    assert read_out(tab, "transform") == pytest.approx(float(transform(surrogate, 0.3)), rel=1e-6)


def test_certificate_says_what_is_proven_refuted_and_refused(tab):
    def certificate() -> str:
        return tab.find_element("id", "certificate").text

    choose(tab, form="pairwise", tau=0.5)
    assert re.search(r"2 classes\s+proven\s+0-1 regret ≤ 2 × surrogate regret\.", certificate())
    assert re.search(r"3 or more\s+refuted", certificate()) and not tab.find_element("id", "refusal").is_displayed()
    choose(tab, form="centered", classes=10)
    assert re.search(r"3 or more\s+proven\s+0-1 regret ≤ 2 × surrogate regret \(18 for the mean", certificate())
    choose(tab, sides=2)
    assert "refused" in certificate() and "does not support this pair" in tab.find_element("id", "refusal").text
    choose(tab, sides=1, form="logodds", base="quartic")
    assert "not be convex" in tab.find_element("id", "refusal").text
    assert re.search(r"Convex in the scores\s+no", certificate())


def test_keyboard_alone_is_enough(tab):
    def focused():
        return tab.switch_to.active_element

    ActionChains(tab).send_keys(Keys.TAB).perform()
    assert focused().text == "Skip to the results" and focused().rect["y"] >= 0
    ActionChains(tab).send_keys(Keys.ENTER, Keys.TAB).perform()
    assert tab.execute_script("return document.getElementById('main').contains(document.activeElement)")
    slider = tab.find_element("id", "tau")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert slider.get_attribute("value") == "1.1" and tab.find_element("id", "tau-output").text == "1.10"
    assert read_out(tab, "value") == pytest.approx(float(LinearCore(tau=1.1).value(0.0)), rel=1e-6)
    assert slider.value_of_css_property("outline-style") == "solid"
    base = tab.find_element("css selector", "input[name=base]:checked")
    base.send_keys(Keys.ARROW_RIGHT)
    assert read_out(tab, "value") == pytest.approx(float(LinearCore("exponential", tau=1.1).value(0.0)), rel=1e-6)
    label = tab.execute_script("return document.activeElement.nextElementSibling")
    assert label.text == "exponential" and label.value_of_css_property("outline-style") == "solid"
    tab.find_element("css selector", "button[type=reset]").send_keys(Keys.ENTER)
    ActionChains(tab).pause(0.1).perform()
    assert read_out(tab, "value") == pytest.approx(float(LinearCore().value(0.0)), rel=1e-6)


def test_a_pointer_moves_the_reading(tab):
    plot = tab.find_element("id", "plot-value")
    tab.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    ActionChains(tab).move_to_element_with_offset(plot, 40, 0).click().perform()
    lead = float(tab.find_element("id", "lead").get_attribute("value"))
    assert lead > 0.5
    assert read_out(tab, "value") == pytest.approx(float(LinearCore().value(lead)), rel=1e-6)
    label = plot.get_attribute("aria-label")
    assert label.startswith(f"Value: {tab.find_element('id', 'read-value').text} at lead {lead:g};")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_page(tab, scheme):
    show(tab, 1280, scheme)
    colours = tab.execute_script(
        """const verdicts = ["holds", "corrected", "fails", "not-run"].map((word) => `.verdict.${word}`);
           const words = ["body", ".place", "main a", ...verdicts];
           const style = (selector) => getComputedStyle(document.querySelector(selector));
           return [style("body").backgroundColor, ...words.map((selector) => style(selector).color)];"""
    )
    page, *words = (luminance(colour) for colour in colours)
    assert (page > 0.5) == (scheme == "light")
    for word in words:
        assert (max(word, page) + 0.05) / (min(word, page) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)", as WCAG defines it."""
    parts = np.array(re.findall(r"\d+", colour)[:3], float) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_page_never_scrolls_sideways(tab, width):
    show(tab, width, "light")
    # A phone would zoom out to show what is too wide; a desktop's own scroll bar takes some of the width.
    inner, scroll, client, scale = tab.execute_script(
        "const {scrollWidth, clientWidth} = document.documentElement;"
        "return [innerWidth, scrollWidth, clientWidth, visualViewport.scale]"
    )
    assert (inner, scroll, scale) == (width, client, 1)


@pytest.mark.parametrize(("width", "scheme"), list(product((390, 1280), ("light", "dark"))))
def test_screenshots_are_kept(tab, width, scheme):
    show(tab, width, scheme)
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    picture = tab.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": whole(tab)})
    path = ARTEFACTS / f"{'phone' if width == 390 else 'desktop'}-{scheme}.png"
    path.write_bytes(base64.b64decode(picture["data"]))
    assert path.stat().st_size > 50_000


def whole(tab) -> dict[str, float]:
    width, height = tab.execute_script("return [innerWidth, document.documentElement.scrollHeight]")
    return {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
