"""The README's example runs, and its links lead somewhere."""

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


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
