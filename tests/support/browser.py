"""A real browser without a window: Debian's Chromium, and its driver."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WIDE = (1280, 1000)
PHONE = (390, 844)


class Browser:
    """One tab. Elements are named by CSS selectors."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def text(self, selector: str) -> str:
        """Return the visible text of the element; empty if there is none."""
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found[0].text if found else ""

    def until_text(self, selector: str, wanted: str, timeout_s: float = 30.0) -> str:
        """Return the element's text when `wanted` is in it. Raises: AssertionError with its actual text."""
        try:
            WebDriverWait(self.driver, timeout_s, 0.1).until(lambda _driver: wanted in self._text_now(selector))
        except Exception as error:
            raise AssertionError(f"{selector} does not say {wanted!r}: {self.text(selector)!r}") from error
        return self.text(selector)

    def _text_now(self, selector: str) -> str:
        # An element that is replaced while it is read is read again.
        return str(self.driver.execute_script("return document.querySelector(arguments[0])?.innerText || ''", selector))

    def script(self, text: str, *arguments: object) -> object:
        """Return the result of a piece of JavaScript."""
        return self.driver.execute_script(text, *arguments)

    def complaints(self) -> list[str]:
        """Return the errors in the browser's console."""
        return [str(line["message"]) for line in self._lines("browser") if line["level"] == "SEVERE"]

    def asked(self) -> set[str]:
        """Return the addresses of all requests since the last call."""
        messages = [json.loads(line["message"])["message"] for line in self._lines("performance")]
        return {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}

    def _lines(self, log: str) -> list[dict[str, Any]]:
        return list(self.driver.get_log(log))  # type: ignore[no-untyped-call]


@contextmanager
def browser(size: tuple[int, int] = WIDE, *, dark: bool = False) -> Iterator[Browser]:
    """Yield Chromium with a window of that size, in pixels."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    # The sandbox needs another account than root; the page is ours.
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600},
        )
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        yield Browser(driver)
    finally:
        driver.quit()
