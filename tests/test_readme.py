"""The README's example runs, and the links of the pages lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_example_runs(capsys, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(code)
    names = runpy.run_path(str(script))
    score, likelihood = map(float, capsys.readouterr().out.split())
    held_out = names["X"][1500:]
    assert score == names["rbm"].score(held_out)
    assert likelihood == names["rbm"].log_likelihood(held_out).mean()
    assert names["images"].shape == (16, 64)
    assert ((names["lower"] == held_out)[:, :32]).all()


@pytest.mark.parametrize(
    ("page", "target"),
    [
        (page, target)
        for page in ("README.md", "MIGRATING.md", "CONTRIBUTING.md", "benchmarks/README.md")
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())
    ],
)
def test_links_lead_somewhere(page, target):
    assert ((ROOT / page).parent / target).exists()


def test_readme_is_short_and_its_cells_hold_one_number():
    """Catches a table that grows back into paragraphs."""
    assert TEXT.count("\n") <= 120
    table = re.findall(r"^\| (.*) \|$", TEXT.split("## Numbers")[1].split("##")[0], re.MULTILINE)
    assert 2 <= len(table) <= 9
    for row in table[1:]:
        task, *cells = row.split(" | ")
        assert all(len(re.findall(r"\d[\d.,]*", cell)) == 1 for cell in cells), task
