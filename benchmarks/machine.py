"""Where a benchmark ran, and one home for what it found."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import skrbm

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def describe() -> dict[str, Any]:
    """Machine, versions and commit.

    Returns
    -------
    description : dict of str
        In the order in which it is worth printing.
    """
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "skrbm": skrbm.__version__,
        "commit": _commit(),
    }


def begin(page: str) -> str:
    """Print what a script asks, and where it runs; or its docstring alone, if asked for help.

    Parameters
    ----------
    page : str
        The script's docstring.

    Returns
    -------
    question : str
        Its first line.
    """
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(page)
        sys.exit()
    question = page.splitlines()[0]
    print(question)
    for name, value in describe().items():
        print(f"{name:12} {value}")
    return question


def written(name: str) -> dict[str, Any]:
    """Results that a benchmark wrote before, or an empty dictionary.

    Parameters
    ----------
    name : str
        Name of the file in benchmarks/results, without suffix.

    Returns
    -------
    results : dict of str
        Results by name of what was measured.
    """
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["results"] if path.exists() else {}


def write(name: str, question: str, results: Any, **settings: Any) -> Path:
    """Write what a benchmark found, with where it ran.

    Parameters
    ----------
    name : str
        Name of the file in benchmarks/results, without suffix.
    question : str
        What the benchmark asks.
    results : object
        Anything that JSON can hold.
    **settings : object
        What the results depend on.

    Returns
    -------
    path : Path
        The file.
    """
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {
        "question": question,
        "machine": describe(),
        "settings": settings,
        "results": results,
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    """Checked-out commit, read from the files of the repository; changes since do not show."""
    folder = ROOT / ".git"
    try:
        if folder.is_file():  # a further worktree: its HEAD is elsewhere, references in one place
            folder = Path(folder.read_text().strip().removeprefix("gitdir: "))
        head = (folder / "HEAD").read_text().strip()
        if (folder / "commondir").is_file():
            folder = folder / (folder / "commondir").read_text().strip()
        if not head.startswith("ref: "):
            return head
        reference = head.removeprefix("ref: ")
        if (folder / reference).is_file():
            return (folder / reference).read_text().strip()
        packed = (folder / "packed-refs").read_text().splitlines()
        found = [line.split()[0] for line in packed if line.endswith(f" {reference}")]
    except OSError:
        return "unknown"
    return found[0] if found else "unknown"
