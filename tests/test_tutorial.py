"""The tutorial runs as it stands, and shows what it says."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULT = re.compile(r"^(\w+Classifier) +retained +([\d.]+)% +as it came +([\d.]+)%", re.MULTILINE)


def results(text):
    return {name: (float(then), float(now)) for name, then, now in RESULT.findall(text)}


def test_the_tutorial(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    text = (DOCS / "tutorial.md").read_text()
    page: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/tutorial.md", "exec"), page)  # noqa: S102
    mpl.pyplot.close("all")

    printed, written = results(capsys.readouterr().out), results(text)
    assert printed.keys() == written.keys() == page["classifiers"].keys()
    for name, numbers in printed.items():
        assert numbers == pytest.approx(written[name], abs=3)  # machines round differently

    retained = {name: np.mean(scores) for name, scores in page["accuracy"].items()}
    assert retained["LaMAMLClassifier"] > retained["MLPClassifier"] + 0.2
    assert retained["LaMAMLClassifier"] > retained["SGDClassifier"] + 0.2
    as_it_came = [online.final for online in page["online"].values()]
    assert max(as_it_came) - min(as_it_came) < 0.06
    with Image.open(tmp_path / "tutorial.png") as drawn, Image.open(DOCS / "tutorial.png") as shown:
        assert drawn.size == shown.size
