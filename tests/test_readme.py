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
    assert float(capsys.readouterr().out) == names["rbm"].score(names["X"][1500:])
    assert names["images"].shape == (16, 64)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
