"""In a browser the page works by pointer and by keyboard, in both themes, on paper and on a telephone, and asks for nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from otimpute.reporting import Report, ReportData
from otimpute.reporting.render import render

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
SHOWN = ["several tables", "flats", "what was known", "hostile", "nothing missing", "a hundred columns", "experts"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        missing = "no Chromium and chromedriver found; on Debian: apt-get install chromium chromium-driver"
        if os.environ.get("OTIMPUTE_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=Service(executable_path=driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def addresses(pages: dict[str, ReportData], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the pages lie."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in SHOWN:
        path = folder / f"{name.replace(' ', '-')}.html"
        path.write_text(render(pages[name]), encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.fixture
def opened(browser: Chrome, addresses: dict[str, str]) -> Chrome:
    """The page on flats, just opened, in a wide window and in light colours."""
    emulate(browser, theme="light")
    resize(browser, 1280)
    browser.get(addresses["flats"])
    return browser


def emulate(browser: Chrome, *, theme: str = "light", media: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def resize(browser: Chrome, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def ground(browser: Chrome) -> str:
    return str(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))


def n_open(browser: Chrome) -> int:
    return len(browser.find_elements(By.CSS_SELECTOR, "main details[open]"))


def shown_columns(browser: Chrome) -> list[str]:
    cards = browser.find_elements(By.CSS_SELECTOR, ".column")
    return [str(each.get_attribute("data-name")) for each in cards if each.is_displayed()]


def wait(browser: Chrome, happened: Callable[[], bool]) -> None:
    """Until something has happened; the time limit is for what never does."""
    WebDriverWait(browser, 30).until(lambda _: happened())


@pytest.mark.parametrize("case", SHOWN)
def test_pages_open_without_complaint_and_ask_for_nothing(case: str, browser: Chrome, addresses: dict[str, str]) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(addresses[case])
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [each["params"]["request"]["url"] for each in asked if each["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith("data:")] == [addresses[case]]
    assert browser.get_log("browser") == []  # hostile names that run, or a policy that forbids our own script, would show here


@pytest.mark.parametrize("case", SHOWN)
def test_pages_that_are_scripts_no_longer_run(case: str, browser: Chrome, addresses: dict[str, str]) -> None:
    browser.get(addresses[case])
    assert browser.title  # an open alert would raise
    assert not browser.find_elements(By.CSS_SELECTOR, "img, body script ~ script, main script")


@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("case", SHOWN)
def test_nothing_sticks_out_at_the_side(case: str, width: int, browser: Chrome, addresses: dict[str, str]) -> None:
    resize(browser, width)
    browser.get(addresses[case])
    browser.find_element(By.ID, "expand").click()
    root = browser.find_element(By.TAG_NAME, "html")
    assert int(root.get_property("scrollWidth")) == int(root.get_property("clientWidth")) <= width


@pytest.mark.parametrize("case", SHOWN)
def test_pictures_have_names_for_screen_readers(case: str, browser: Chrome, addresses: dict[str, str]) -> None:
    browser.get(addresses[case])
    browser.find_element(By.ID, "expand").click()
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    pictures = [node for node in tree if not node["ignored"] and node["role"]["value"] in ("image", "img")]
    n_expected = len(browser.find_elements(By.CSS_SELECTOR, "svg[role=img]"))
    assert len(pictures) == n_expected > 0
    assert all(node["name"]["value"] for node in pictures)
    assert all(node.get("description", {}).get("value") for node in pictures)


@pytest.mark.parametrize("case", SHOWN)
def test_identifiers_are_unique(case: str, browser: Chrome, addresses: dict[str, str]) -> None:
    browser.get(addresses[case])
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(set(ids)) == len(ids) > 10


@pytest.mark.parametrize("key", [None, Keys.ENTER, Keys.SPACE])
def test_sections_fold_by_pointer_and_by_keyboard(key: str | None, opened: Chrome) -> None:
    section = opened.find_element(By.CSS_SELECTOR, "#missing > details")
    summary = section.find_element(By.TAG_NAME, "summary")
    for expected in (None, "true"):
        summary.click() if key is None else summary.send_keys(key)
        assert section.get_attribute("open") == expected
        assert section.find_element(By.TAG_NAME, "svg").is_displayed() == (expected == "true")


def test_everything_folds_and_unfolds_at_once(opened: Chrome) -> None:
    opened.find_element(By.ID, "collapse").click()
    assert n_open(opened) == 0
    opened.find_element(By.ID, "expand").click()
    assert n_open(opened) == len(opened.find_elements(By.CSS_SELECTOR, "main details")) > 10


def test_links_unfold_where_they_lead(opened: Chrome) -> None:
    opened.find_element(By.ID, "collapse").click()
    opened.find_element(By.CSS_SELECTOR, "nav a[href='#reproduce']").click()
    section = opened.find_element(By.CSS_SELECTOR, "#reproduce > details")
    wait(opened, lambda: section.get_attribute("open") == "true")
    assert "import otimpute" in section.text


def test_the_theme_follows_the_system_until_it_is_chosen(opened: Chrome) -> None:
    light = ground(opened)
    emulate(opened, theme="dark")
    wait(opened, lambda: ground(opened) != light)
    dark = ground(opened)
    opened.find_element(By.ID, "theme").click()
    assert ground(opened) == light
    opened.find_element(By.ID, "theme").click()
    assert ground(opened) == dark
    emulate(opened, theme="light")
    assert ground(opened) == dark


def test_columns_are_found_by_name_and_by_light(opened: Chrome, pages: dict[str, ReportData]) -> None:
    columns = pages["flats"].columns
    assert shown_columns(opened) == [each.name for each in columns]
    box = opened.find_element(By.ID, "filter")
    box.send_keys("RE")
    assert shown_columns(opened) == [each.name for each in columns if "re" in each.name]
    assert opened.find_element(By.ID, "shown").text == f"{len(shown_columns(opened))} of {len(columns)} shown"
    box.clear()
    opened.find_element(By.ID, "care").click()
    expected = [each.name for each in columns if each.light != "good"]
    assert shown_columns(opened) == expected != [each.name for each in columns]


def test_the_keyboard_reaches_the_report_first(opened: Chrome) -> None:
    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = opened.switch_to.active_element
    assert skip.text == "Skip to the report"
    skip.send_keys(Keys.ENTER)
    wait(opened, lambda: opened.switch_to.active_element.get_attribute("id") == "content")


def test_paper_shows_what_is_folded_and_no_tools(opened: Chrome) -> None:
    opened.find_element(By.ID, "collapse").click()
    emulate(opened, theme="dark", media="print")
    visible = "return document.querySelector(arguments[0]).checkVisibility()"
    for selector in ("#missing svg", "#reproduce pre", ".column svg", "#check table"):
        wait(opened, lambda folded=selector: opened.execute_script(visible, folded))
    assert not opened.find_element(By.ID, "theme").is_displayed()
    assert ground(opened) == "rgb(255, 255, 255)"


def test_without_scripts_everything_is_there(browser: Chrome, addresses: dict[str, str]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(addresses["flats"])
        assert not browser.find_element(By.CSS_SELECTOR, ".tools").is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, "#missing svg").is_displayed()
        browser.find_element(By.CSS_SELECTOR, "#reproduce summary").click()
        assert "import otimpute" in browser.find_element(By.ID, "reproduce").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_it_works_in_the_frame_of_a_notebook_too(browser: Chrome, pages: dict[str, ReportData], tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>n</title>{Report(pages['flats'])._repr_html_()}", encoding="utf-8")
    browser.get(notebook.as_uri())
    browser.switch_to.frame(0)
    browser.find_element(By.ID, "collapse").click()
    browser.find_element(By.CSS_SELECTOR, "nav a[href='#reproduce']").click()
    assert "import otimpute" in browser.find_element(By.ID, "reproduce").text
    assert browser.get_log("browser") == []


def test_code_is_copied_or_at_least_selected(opened: Chrome) -> None:
    opened.find_element(By.ID, "expand").click()
    button = opened.find_element(By.CSS_SELECTOR, ".copy")
    button.click()
    wait(opened, lambda: button.text in ("Copied", "Selected"))
