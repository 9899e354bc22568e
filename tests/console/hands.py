"""Two ways to use a page: a mouse, and a keyboard alone. Tests say what is done, hands say how."""

from __future__ import annotations

from typing import Protocol

from playwright.sync_api import Locator, Page, Position, expect

FIRST_CELL: Position = {"x": 60, "y": 40}
"""Where the map has its first host."""
IS_FOCUSED = "(all) => all.includes(document.activeElement)"


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(target: Locator, most: int = 60) -> None:
    """By Tab alone, as often as it takes; what cannot be reached so is not there for some."""
    expect(target.first).to_be_visible()
    for _ in range(most):
        if target.evaluate_all(IS_FOCUSED):
            return
        target.page.keyboard.press("Tab")
    raise AssertionError(f"{most} times Tab did not lead to {target}")


class Hands(Protocol):
    def use(self, target: Locator) -> None:
        """A link, a button, or something to be unfolded."""

    def write(self, text: str, field: Locator) -> None: ...

    def send(self, button: Locator) -> None:
        """The form in which something was written last."""

    def choose(self, option: str, among: Locator) -> None: ...

    def point_at_first_host(self, page: Page) -> None:
        """Of those on the map."""

    def open_first_host(self, page: Page) -> None: ...


class Mouse:
    def use(self, target: Locator) -> None:
        target.click()

    def write(self, text: str, field: Locator) -> None:
        field.click()
        field.fill(text)

    def send(self, button: Locator) -> None:
        button.click()

    def choose(self, option: str, among: Locator) -> None:
        # The browser draws the list outside of the page, where Playwright has no mouse.
        among.select_option(option)

    def point_at_first_host(self, page: Page) -> None:
        page.locator(".map canvas").click(position=FIRST_CELL)

    def open_first_host(self, page: Page) -> None:
        self.point_at_first_host(page)
        page.locator(".host-card").get_by_role("link", name="Open").click()


class Keyboard:
    """Nothing is clicked, and nothing focused but by Tab."""

    def use(self, target: Locator) -> None:
        tab_to(target, most=300)
        target.page.keyboard.press("Enter")

    def write(self, text: str, field: Locator) -> None:
        tab_to(field, most=300)
        field.page.keyboard.press("Control+a")
        field.page.keyboard.press("Delete")
        field.page.keyboard.type(text)

    def send(self, button: Locator) -> None:
        button.page.keyboard.press("Enter")

    def choose(self, option: str, among: Locator) -> None:
        tab_to(among, most=300)
        options = among.locator("option").evaluate_all("(all) => all.map((each) => each.value)")
        steps = options.index(option) - options.index(among.input_value())
        press(among.page, *(["ArrowDown"] * steps or ["ArrowUp"] * -steps))
        expect(among).to_have_value(option)

    def point_at_first_host(self, page: Page) -> None:
        tab_to(page.locator("[role=application]"), most=300)
        press(page, "Home")

    def open_first_host(self, page: Page) -> None:
        self.point_at_first_host(page)
        press(page, "Enter")


WAYS: dict[str, Hands] = {"mouse": Mouse(), "keyboard": Keyboard()}
