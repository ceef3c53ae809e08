"""Search the pages of a built site for content that is clipped or runs out of its box.

    python .ci/overflow.py SITE [--widths 420 800 1400] [--pictures FOLDER] [--pages GLOB ...]

Each page is opened in headless Chromium at each width. Three things count as a fault: an element that
hides a part of its content or scrolls it, an element whose content is wider than its box, and an
element that ends outside of the window. Code, formulas and tables may scroll by themselves: they and
all that is inside them are no faults. Needs playwright from PyPI and Chromium (apt-get install chromium).
With --pictures, screenshots of the pages in light and dark mode are left in FOLDER. The exit status
is 1 if there are faults.
"""

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SLACK = 2  # pixels: positions are rounded
SCROLLERS = "pre, div.math, mjx-container, .pst-scrollable-table-container, .output_subarea, table"
FAULTS = """
([slack, scrollers]) => {
  const width = document.documentElement.clientWidth;
  const scrolls = (element, style) => element.matches(scrollers)
    && ["auto", "scroll"].includes(style.overflowX);
  const name = element => {
    const id = element.id ? "#" + element.id : "";
    const names = [...element.classList].slice(0, 3).map(word => "." + word).join("");
    return element.tagName.toLowerCase() + id + names;
  };
  const faults = [];
  const visit = element => {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden") return;
    if (element.tagName === "MJX-ASSISTIVE-MML" || element.matches("svg, .visually-hidden")) return;
    const box = element.getBoundingClientRect();
    const isSmall = box.width <= 1 || box.height <= 1;  // text for screen readers alone
    if (isSmall && style.overflowX !== "visible") return;
    const text = element.textContent.trim().replace(/\\s+/g, " ").slice(0, 50);
    const report = (kind, excess) =>
      faults.push(`${kind} by ${Math.round(excess)} px: ${name(element)} "${text}"`);
    const excess = element.scrollWidth - element.clientWidth;
    const isBlock = element.clientWidth > 0 && style.display !== "inline";
    const outside = Math.max(box.right - width, -box.left);
    if (box.width > 1 && outside > slack && style.position !== "fixed") report("outside", outside);
    else if (scrolls(element, style)) return;
    else if (isBlock && excess > slack)
      report(style.overflowX === "visible" ? "wider than its box" : "cut off", excess);
    if (scrolls(element, style)) return;
    for (const child of element.children) visit(child);
  };
  visit(document.querySelector(".bd-container") ?? document.body);
  for (const bar of document.querySelectorAll("header.bd-header, footer")) visit(bar);
  const excess = document.documentElement.scrollWidth - width;
  if (excess > slack) faults.push(`the page scrolls sideways by ${excess} px`);
  return faults;
}
"""
IS_SETTLED = """
() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise ?? true]).then(() => true)
"""


def main():
    """Print the faults of each page and width."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--widths", type=int, nargs="+", default=[420, 800, 1400])
    parser.add_argument("--pages", nargs="+", default=["**/*.html"])
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    paths = sorted({path for pattern in options.pages for path in options.site.glob(pattern)})
    n_faults = 0
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=options.chromium, args=FLAGS, headless=True
        )
        tab = browser.new_page()
        for path in paths:
            tab.goto(path.resolve().as_uri())
            tab.evaluate(IS_SETTLED)
            for width in options.widths:
                tab.set_viewport_size({"width": width, "height": 900})
                page = path.relative_to(options.site)
                faults = tab.evaluate(FAULTS, [SLACK, SCROLLERS])
                n_faults += len(faults)
                for fault in faults:
                    print(f"{page} at {width}: {fault}")
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    for mode in ("light", "dark"):
                        tab.evaluate(f"document.documentElement.dataset.theme = '{mode}'")
                        name = "-".join([*page.with_suffix("").parts, str(width), mode])
                        tab.screenshot(path=options.pictures / f"{name}.png")
        browser.close()
    print(f"{n_faults} faults on {len(paths)} pages at {options.widths} px")
    return n_faults > 0


if __name__ == "__main__":
    raise SystemExit(main())
