"""The guide's examples are true, and its pages and the API name what exists."""

import doctest
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import skrbm
from skrbm import sequences

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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


def results(name):
    """Results in a file of benchmarks/results."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["results"]


def test_density_page_has_the_numbers_of_the_results():
    """Seen to fail with a table that was not copied again after a run."""
    page = (DOCS / "guide" / "density.md").read_text()
    content = json.loads((ROOT / "benchmarks" / "results" / "density.json").read_text())
    assert content["results"]
    for name, own in content["results"].items():
        peers = own["peers"]
        names = ["mixture", "tree", "scikit-learn", "independent columns"]
        numbers = [own["mean"], *content["settings"]["published"][name].values()]
        numbers += [peers[peer]["mean"] for peer in names]
        assert f"| {name} | {' | '.join(f'{number:.2f}' for number in numbers)} |" in page


def filled_cells(measure):
    """Medians over the splits of benchmarks/quality/forests.py, by table and method."""
    medians = {}
    for table, own in results("forests").items():
        values = {}
        for split in own["holes"]:
            for name, measured in split.items():
                values.setdefault(name, []).append(measured.get(measure, np.nan))
        medians[table] = {name: np.median(of_splits) for name, of_splits in values.items()}
    return medians


def updates(size, quantity):
    """A quantity of the updates in benchmarks/speed/sweep.py, by model."""
    ends = f", update, batch {size}"
    return {
        name.removesuffix(ends): own[quantity]
        for name, own in results("sweep").items()
        if name.endswith(ends)
    }


def known_cells(n_epochs):
    """Ranges of the gains of benchmarks/quality/missing_values.py, by the share of known cells."""
    own, shares = results("missing_values"), {50: [], 20: [], 10: []}
    for kind in ("groups of bits", "factors of bits", "factors of numbers"):
        complete = own[f"{kind}, 2000 rows, 100% observed"]
        independent = complete["independent, 0 epochs"]["mean"]
        gain = complete[f"skrbm, {n_epochs} epochs"]["mean"] - independent
        for share, values in shares.items():
            trained = own[f"{kind}, 2000 rows, {share}% observed"][f"skrbm, {n_epochs} epochs"]
            values.append((trained["mean"] - independent) / gain * 100)
    return {share: f"{min(v):.0f} to {max(v):.0f} %" for share, v in shares.items()}


def passages():
    """Pages, and passages with the numbers of the result files."""
    error, rate, coverage = map(filled_cells, ("error", "error rate", "coverage"))
    for table, before in (("hawks", "the error is"), ("saratoga", "on saratoga, it is")):
        ours, peer = error[table]["skrbm"], error[table]["miceforest"]
        unit = " standard deviations" if table == "hawks" else ""
        yield (
            "docs/guide/tables.md",
            f"{before} {ours:.3f}{unit}, and that of miceforest {peer:.3f}",
        )
    for table, peer, passage in (
        ("saratoga", "random forests", "saratoga ({:.3f}, {} {:.3f})"),
        ("sacramento", "miceforest", "sacramento ({:.3f}, {} {:.3f})"),
        ("penguins", "miceforest", "On penguins, the rate is {:.3f}, and that of {} {:.3f}"),
        ("hawks", "miceforest", "on hawks, it is {:.3f}, and that of {} {:.3f}"),
    ):
        ours, other = rate[table]["skrbm"], rate[table][peer]
        yield "docs/guide/tables.md", passage.format(ours, peer, other)
    for name, before in (("skrbm", "`TabularRBM` contain"), ("miceforest", "miceforest")):
        shares = [own[name] for own in coverage.values()]
        ends = f"between {min(shares) * 100:.0f} % and {max(shares) * 100:.0f} %"
        yield "docs/guide/tables.md", f"{before} {ends}"
    few, many = known_cells(10), known_cells(40)
    passage = (
        f"are known, ten epochs reach {few[50]} of the gain from complete rows; with a fifth, they "
        f"reach {few[20]}, and with a tenth, {few[10]}. More epochs often help: 40 epochs reach "
        f"{many[50]}, {many[20]} and {many[10]}."
    )
    yield "docs/guide/tables.md", passage
    annealed = results("annealing")["784 x 500, float32"]["seconds of 10,000 temperatures"]
    yield "docs/guide/cost.md", f"over 10,000 temperatures takes {annealed:.0f} s for a model"
    accuracy = results("features_patches")["100"]["skrbm, relu"]["mean_accuracy"]
    yield "docs/guide/features.md", f"{accuracy:.3f} on 100 features of an RBM with `hidden_units="
    shares = [own["skrbm"]["coverage"] for own in results("tables")["imputation"].values()]
    ends = f"{min(shares) * 100:.0f} to {max(shares) * 100:.0f} % of the removed numbers"
    yield "docs/guide/alternatives.md", f"contain {ends}"
    times = [own["skrbm"]["seconds"] for own in results("tables")["imputation"].values()]
    ends = f"take {min(times):.0f} to {max(times):.0f} s (`benchmarks/quality/tables.py`)"
    yield "docs/guide/cost.md", ends
    speed = updates(10, "scikit-learn / plain")
    single, double = (1 / speed[f"64 x 64, {dtype}"] for dtype in ("float32", "float64"))
    yield "MIGRATING.md", f"takes {single:.1f} times as long as in scikit-learn in single precision"
    yield "MIGRATING.md", f"and {double:.1f} times as long in double precision"
    most = [max(updates(size, "all / plain").values()) * 100 - 100 for size in (10, 100)]
    yield "MIGRATING.md", f"ten rows by up to {most[0]:.0f} %, and an update with 100 rows by up"
    yield "MIGRATING.md", f"by up to {most[1]:.0f} %."


@pytest.mark.parametrize(("page", "passage"), list(passages()))
def test_passages_have_the_numbers_of_the_results(page, passage):
    """Seen to fail with eight numbers of earlier runs."""
    assert passage in re.sub(r"\s+", " ", (ROOT / page).read_text())
