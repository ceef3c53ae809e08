"""The guide's examples are true, and its pages and the API name what exists."""

import doctest
import json
import re
import warnings
from pathlib import Path

import pytest

import skrbm
from skrbm import sequences

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page):
    """Text of a page's blocks of Python, each of them a session."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem
)
def test_what_a_page_shows_is_what_comes_out(page):
    """Seen to fail with a wrong shape in five_minutes.md."""
    blocks = examples(page)
    assert all(block.startswith(">>> ") for block in blocks), "a block that is not run"
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    report = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(session, out=report.append)
    assert result.failed == 0, "".join(report)


def test_api_lists_every_public_name():
    """Catches a name that was added to the package and not to the page, and the other way round."""
    blocks = re.findall(r"\.\. autosummary::.*?```", (DOCS / "api.md").read_text(), re.DOTALL)
    listed = [
        name for block in blocks for name in re.findall(r"^   ([\w.]+)$", block, re.MULTILINE)
    ]
    public = {*skrbm.__all__, "testing.check_units"} - {"__version__"}
    public |= {f"sequences.{name}" for name in sequences.__all__}
    assert sorted(listed) == sorted(public)


@pytest.mark.parametrize("page", sorted(DOCS.glob("guide/*.md")), ids=lambda page: page.stem)
def test_tests_named_in_the_guide_exist(page):
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("**/test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page.read_text()):
        assert f"def {name}(" in tests


@pytest.mark.parametrize("page", sorted(DOCS.glob("guide/*.md")), ids=lambda page: page.stem)
def test_links_in_the_guide_can_be_followed_in_the_repository_too(page):
    """Seen to fail with the pages of the gallery, which the build alone writes."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    targets = [(page.parent / link).resolve() for link in links]
    built = (DOCS / "gallery").resolve()
    assert [t for t in targets if built in t.parents or not t.exists()] == []


def test_density_page_has_the_numbers_of_the_results():
    """Seen to fail with a table that was not copied again after a run."""
    page = (DOCS / "guide" / "density.md").read_text()
    content = json.loads((DOCS.parent / "benchmarks" / "results" / "density.json").read_text())
    assert content["results"]
    for name, own in content["results"].items():
        peers = own["peers"]
        names = ["mixture", "tree", "scikit-learn", "independent columns"]
        numbers = [own["mean"], *content["settings"]["published"][name].values()]
        numbers += [peers[peer]["mean"] for peer in names]
        assert f"| {name} | {' | '.join(f'{number:.2f}' for number in numbers)} |" in page
