"""The tutorial runs as it stands, and shows what it says."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULT = re.compile(r"^(.*\S) +retained +([\d.]+)% +as it came +([\d.]+)%", re.MULTILINE)


def results(text):
    return {name: (float(then), float(now)) for name, then, now in RESULT.findall(text)}


def mean_heights(picture):
    """Returns the mean height of the pixels of each curve, as a share of the picture's height."""
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    colours = [np.round(255 * np.array(mpl.colors.to_rgb(f"C{number}"))) for number in range(4)]
    rows = [np.nonzero((pixels == colour).all(axis=-1))[0] for colour in colours]
    return [1 - found.mean() / len(pixels) for found in rows]


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

    assert len(printed) == 4
    ours, forest, trees, mlp = printed.values()  # (retained, as it came)
    assert ours[0] > forest[0] + 50
    assert ours[1] > trees[1] + 10
    assert min(ours) > max(mlp) + 20
    assert ours == pytest.approx((trees[0], forest[1]), abs=5)
    drawn, shown = (mean_heights(folder / "tutorial.png") for folder in (tmp_path, DOCS))
    assert drawn == pytest.approx(shown, abs=0.03)
