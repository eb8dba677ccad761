"""Tables larger than the memory that may be used: read in parts, fitted in blocks, whatever their format."""

import sys

import numpy as np
import pandas as pd
import pytest

from psilearn import load
from psilearn.app.cli import main
from psilearn.app.large import bytes_of, is_large, part_of
from psilearn.app.tables import TableError, read_chunks, read_table
from psilearn.core.chunks import opening


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["town"] = rng.choice(["Rome", "Oslo", "Lima"], n)
    score = frame["a"] - frame["b"] + (frame["town"] == "Oslo") + 0.5 * rng.normal(size=n)
    frame["target"] = np.where(score > 0, "ill", "well")
    frame.loc[rng.random(n) < 0.05, "c"] = np.nan
    return frame


@pytest.fixture(autouse=True)
def no_memmap_is_small(monkeypatch):
    """Files as small as those of these tests are read as a whole otherwise."""
    monkeypatch.setattr(opening, "SMALL_MEMMAP", 0)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["psilearn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capsys.readouterr()

    return call


@pytest.fixture(params=["csv", "parquet", "folder"])
def path(request, tmp_path):
    frame = table()
    if request.param == "csv":
        frame.to_csv(tmp_path / "table.csv", index=False)
        return tmp_path / "table.csv"
    if request.param == "parquet":
        frame.to_parquet(tmp_path / "table.parquet", row_group_size=700)
        return tmp_path / "table.parquet"
    (tmp_path / "parts").mkdir()
    for at, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / "parts" / f"part-{at}.parquet", index=False)
    return tmp_path / "parts"


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    frame = table(100)
    frame.iloc[:60].to_parquet(tmp_path / "a.parquet", index=False)
    frame.iloc[60:].to_parquet(tmp_path / "b.parquet", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path), frame, check_dtype=False)
    assert [len(part) for part in read_chunks(tmp_path, 50)] == [50, 10, 40]
    frame.rename(columns={"a": "z"}).to_parquet(tmp_path / "c.parquet", index=False)
    with pytest.raises(TableError, match="other columns"):
        read_table(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="without Parquet"):
        read_table(tmp_path / "empty")


def test_a_fit_in_blocks_is_that_of_all_rows(path, run, tmp_path):
    """The optimum of the saved model's own C on all encoded rows, as found in memory."""
    code, shown = run(
        "fit", path, "--out", tmp_path / "model.psi", "--memory", "100kB", "--budget", "20", "--method", "svm-l2"
    )
    assert code == 0, shown.err
    assert "Fitted on 3000 rows in blocks" in shown.out
    model = load(tmp_path / "model.psi")
    assert model.about["rows"] == 3000
    frame = read_table(path)
    X = model.encoder.transform(frame).astype(np.float32)
    here = type(model.classifier)(**{**model.classifier.get_params(), "time_limit": None}).fit(X, frame["target"])
    assert here.objective_ == pytest.approx(model.classifier.objective_, rel=1e-3)
    answers = model.predict(frame)["prediction"].to_numpy()
    assert np.mean(answers == frame["target"]) > 0.8
    assert np.mean(answers == here.predict(X)) > 0.99


def test_the_part_is_drawn_from_everywhere_and_can_be_repeated(path):
    one, rows = part_of(path, "100kB", seed=1)
    two, _ = part_of(path, "100kB", seed=1)
    pd.testing.assert_frame_equal(one, two)
    assert rows == 3000
    assert len(one) == 1000
    whole = read_table(path)
    at = np.flatnonzero(whole["a"].isin(one["a"]))
    assert at.size == 1000
    assert np.all(np.diff(at) > 0)
    assert np.all(np.histogram(at, bins=3, range=(0, 3000))[0] > 250)


def test_what_blocks_cannot_do_is_said(path, run, tmp_path):
    code, shown = run("fit", path, "--out", tmp_path / "m.psi", "--memory", "100kB", "--method", "lp-boost")
    assert code == 1
    assert "in memory" in shown.err


def test_a_comparison_uses_a_part(path, run):
    code, shown = run("compare", path, "--memory", "100kB", "--method", "svm-l2", "--budget", "5")
    assert code == 0, shown.err
    assert "1000 of 3000 rows" in shown.out


def test_an_audit_names_flipped_labels(run, tmp_path):
    frame = table()
    flipped = np.random.default_rng(1).permutation(len(frame))[:150]
    frame.loc[flipped, "target"] = np.where(frame.loc[flipped, "target"] == "ill", "well", "ill")
    frame.to_parquet(tmp_path / "t.parquet")
    code, shown = run("audit", tmp_path / "t.parquet", "--memory", "100kB", "--out", tmp_path / "s.csv")
    assert code == 0, shown.err
    suspects = pd.read_csv(tmp_path / "s.csv")
    assert np.all(suspects["given"] == frame["target"].to_numpy()[suspects["row"] - 1])
    assert np.all(np.diff(suspects["margin"]) <= 0)
    assert np.isin(suspects["row"][:60] - 1, flipped).mean() > 0.7, "the clearest suspects were flipped"
    code, shown = run("audit", tmp_path / "t.parquet", "--memory", "100kB", "--review", tmp_path / "r.html")
    assert code == 1
    assert "whole table" in shown.err


@pytest.mark.parametrize(("text", "size"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5g", 1.5e9), ("800", 800.0)])
def test_sizes(text, size, tmp_path):
    assert bytes_of(text.replace(" ", "")) == size
    (tmp_path / "t.csv").write_text("a" * 1000)
    assert is_large(tmp_path / "t.csv", text) == (size < 6000)


@pytest.mark.parametrize("text", ["", "much", "-1GB", "GB"])
def test_no_size(text):
    with pytest.raises(TableError, match="--memory"):
        bytes_of(text)
