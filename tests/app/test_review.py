"""The review: what the page holds, and decisions applied to tables of several kinds."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psilearn.app.audit.table import audit_table
from psilearn.app.review import (
    corrected,
    corrected_name,
    log_beside,
    log_text,
    read_decisions,
    review_page,
    settled_before,
)
from psilearn.app.tables import TableError, read_table, understand


@pytest.fixture
def flipped():
    """A table of two clouds with identifiers, three labels changed, and cells that must not be touched."""
    rng = np.random.default_rng(3)
    sick = np.resize([True, False], 60)
    frame = pd.DataFrame({"patient": [f"P-{i:03d}" for i in range(60)]})
    frame["dose"] = [f"{v:.3f}" for v in rng.normal(size=60) + 7 * sick]
    frame["code"] = np.resize(["007", "1,5", 'a "b"'], 60)
    frame["outcome"] = np.where(sick, "sick", "well")
    wrong = [4, 17, 30]
    frame.loc[wrong, "outcome"] = frame.loc[wrong, "outcome"].map({"sick": "well", "well": "sick"})
    return frame, wrong


def understood(path):
    return understand(pd.read_csv(path), "outcome", (), None, "patient")


def decide(path, frame, rows):
    lines = [
        {"row": i + 1, "id": frame["patient"][i], "given": frame["outcome"][i], "decision": decision, "label": label}
        for i, (decision, label) in rows.items()
    ]
    pd.DataFrame(lines).to_csv(path, index=False)


def test_page_lists_the_changed_rows_with_reasons(flipped, tmp_path):
    frame, wrong = flipped
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False)
    audit = audit_table(understood(path), exact=0.0)
    assert set(audit.suspects["row"]) == {i + 1 for i in wrong}
    html = review_page(audit, "in.csv", "psilearn audit in.csv --apply decisions.csv")
    tree = json.loads(re.search(r'id="review-data">(.*?)</script>', html).group(1))
    names = {tree["id"][tree["index"].index(s["i"])] for s in tree["suspects"]}
    assert names == {f"P-{i:03d}" for i in wrong}
    for suspect in tree["suspects"]:
        here = tree["index"].index(suspect["i"])
        assert "nearest believed rows" in suspect["why"]
        assert tree["cells"][tree["features"].index("dose")][here] == f"{float(frame['dose'][suspect['i']]):.4g}"
        assert tree["classes"][tree["label"][here]] == frame["outcome"][suspect["i"]]
        assert all(tree["label"][tree["index"].index(i)] == suspect["s"] for i in suspect["near"])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_only_the_labels_change(flipped, tmp_path, separator, encoding):
    frame, _ = flipped
    frame.loc[7, "code"] = "Größe"
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False, sep=separator, encoding=encoding)
    data = understand(pd.read_csv(path, sep=separator, encoding=encoding), "outcome", (), None, "patient")
    decide(tmp_path / "d.csv", frame, {4: ("relabel", "sick"), 17: ("relabel", "well"), 2: ("keep", "sick")})
    decisions = read_decisions(tmp_path / "d.csv", data)
    (tmp_path / "out.csv").write_bytes(corrected(path, data, decisions))
    after = pd.read_csv(tmp_path / "out.csv", sep=separator, dtype=str, encoding=encoding)
    assert list(np.flatnonzero((after != frame.astype(str)).any(axis=1))) == [4, 17]
    assert after["outcome"][4] == "sick"
    assert after["outcome"][17] == "well"
    assert after.drop(columns="outcome").equals(frame.drop(columns="outcome").astype(after.dtypes["code"]))


def test_rounds_remember_what_was_settled(flipped, tmp_path):
    frame, _ = flipped
    first, second = tmp_path / "one.csv", tmp_path / "two.csv"
    frame.to_csv(first, index=False)
    data = understood(first)
    assert settled_before(first, data) is None
    decide(tmp_path / "d.csv", frame, {4: ("relabel", "sick"), 17: ("keep", "sick"), 30: ("unsure", "well")})
    decisions = read_decisions(tmp_path / "d.csv", data)
    assert decisions.counted() == "1 relabelled, 1 kept, 1 left open as unsure"
    log_beside(second).write_text(log_text(decisions, first))
    second.write_bytes(corrected(first, data, decisions))
    again = understood(second)
    before = settled_before(second, again)
    assert list(np.flatnonzero(before.known)) == [4, 17]
    assert list(np.flatnonzero(before.corrected)) == [4]
    audit = audit_table(again, known=before.known, corrected=before.corrected, exact=0.0)
    assert audit.issues["row"][0] == 31
    assert not audit.suspects["row"].isin([5, 18]).any()
    by_row = audit.issues.set_index("row")
    assert by_row.loc[18, "score"] == 0.0
    assert by_row.loc[18, "suggested"] == by_row.loc[18, "given"]
    # A third round keeps the history; a label changed by hand is in doubt again.
    decide(tmp_path / "e.csv", pd.read_csv(second), {30: ("relabel", "sick")})
    log = log_text(read_decisions(tmp_path / "e.csv", again), second)
    assert [line.split(",")[:2] for line in log.splitlines()[1:]] == [["1", "5"], ["1", "18"], ["1", "31"], ["2", "31"]]
    by_hand = pd.read_csv(second)
    by_hand.loc[17, "outcome"] = "well"
    by_hand.to_csv(second, index=False)
    assert list(np.flatnonzero(settled_before(second, understood(second)).known)) == [4]


def test_rows_that_moved_are_asked_again(flipped, tmp_path):
    frame, _ = flipped
    first, second = tmp_path / "one.csv", tmp_path / "two.csv"
    frame.to_csv(first, index=False)
    data = understood(first)
    decide(tmp_path / "d.csv", frame, {4: ("relabel", "sick"), 16: ("keep", "sick"), 18: ("keep", "sick")})
    decisions = read_decisions(tmp_path / "d.csv", data)
    log_beside(second).write_text(log_text(decisions, first))
    content = corrected(first, data, decisions).decode().splitlines(keepends=True)
    second.write_text("".join([*content[:11], *content[13:]]))  # two rows are gone, and sick and well alternate
    assert list(np.flatnonzero(settled_before(second, understood(second)).known)) == [4]


@pytest.mark.parametrize("corner", [(1, 1), (4, 3)])
def test_a_workbook_stays_a_workbook(flipped, tmp_path, corner):
    openpyxl = pytest.importorskip("openpyxl")
    frame, _ = flipped
    frame["outcome"] = (frame["outcome"] == "sick").astype(int)
    book = openpyxl.Workbook()
    book.create_sheet("notes")["B2"] = "other sheet"
    sheet = book.active
    sheet["A1"] = "ward 7" if corner != (1, 1) else None
    for i, row in enumerate([list(frame), *frame.to_numpy().tolist()]):
        for j, value in enumerate(row):
            sheet.cell(corner[0] + i + (i > 20), corner[1] + j, value)  # a blank row within
    changed = sheet.cell(corner[0] + 5, corner[1] + 3)
    changed.fill = openpyxl.styles.PatternFill("solid", fgColor="FFFF00")
    book.save(tmp_path / "in.xlsx")
    data = understand(read_table(tmp_path / "in.xlsx"), "outcome", (), None, "patient")
    decide(
        tmp_path / "d.csv",
        frame.astype({"outcome": str}),
        {4: ("relabel", "1"), 17: ("relabel", "0"), 30: ("relabel", "1")},
    )
    decisions = read_decisions(tmp_path / "d.csv", data)
    (tmp_path / "out.xlsx").write_bytes(corrected(tmp_path / "in.xlsx", data, decisions, as_excel=True))
    after = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert after["notes"]["B2"].value == "other sheet"
    different = [
        (new.row - corner[0], new.value) for old, new in zip(_cells(book.worksheets[0]), _cells(after.worksheets[0]))
        if old.value != new.value
    ]  # fmt: skip
    assert different == [(5, 1), (18, 0), (32, 1)]
    assert after.worksheets[0].cell(changed.row, changed.column).fill.fgColor.rgb.endswith("FFFF00")


def _cells(sheet):
    return [cell for row in sheet.iter_rows() for cell in row]


def test_titles_and_line_ends_stay(flipped, tmp_path):
    frame, _ = flipped
    path = tmp_path / "in.csv"
    text = "Ward 7\r\n\r\n" + frame.to_csv(index=False, lineterminator="\r\n")
    path.write_bytes(text.encode("utf-8-sig"))
    data = understand(read_table(path), "outcome", (), None, "patient")
    decide(tmp_path / "d.csv", frame, {4: ("relabel", "sick")})
    after = corrected(path, data, read_decisions(tmp_path / "d.csv", data)).decode("utf-8-sig")
    lines = text.split("\r\n")
    lines[7] = lines[7].replace(",well", ",sick")
    assert after == "\r\n".join(lines)


def test_logs_of_two_versions_do_not_collide(tmp_path):
    assert log_beside(tmp_path / "a.v1.csv") != log_beside(tmp_path / "a.v2.csv")
    assert log_beside(tmp_path / "a.csv.gz") == log_beside(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"given": "well"}, "another table"),
        ({"row": 900}, "row 900"),
        ({"row": "x"}, "line 2"),
        ({"decision": "maybe"}, "keep, relabel or unsure"),
        ({"label": "sikc"}, "'sikc'"),
        ({"label": "sick", "decision": "relabel"}, "the label it has"),
        ({"label": None}, "lacks the columns 'label'"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(flipped, tmp_path, change, says):
    frame, _ = flipped
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False)
    decision = {"row": 1, "given": "sick", "decision": "relabel", "label": "well", **change}
    pd.DataFrame([{k: v for k, v in decision.items() if v is not None}]).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(TableError, match=says):
        read_decisions(tmp_path / "d.csv", understood(path))
    pd.DataFrame([{"row": 1, "given": "sick", "decision": "keep", "label": "sick"}] * 2).to_csv(tmp_path / "d.csv")
    with pytest.raises(TableError, match="twice"):
        read_decisions(tmp_path / "d.csv", understood(path))


def test_a_corrected_table_is_numbered_not_corrected_twice():
    names = [Path("in/a.csv")]
    for _ in range(3):
        names.append(corrected_name(names[-1]))
    assert [p.name for p in names] == ["a.csv", "a-corrected.csv", "a-corrected-2.csv", "a-corrected-3.csv"]
    assert names[-1].parent == Path("in")
    assert corrected_name(Path("b.xlsx")).name == "b-corrected.xlsx"
    assert corrected_name(Path("c.csv.gz")).name == "c-corrected.csv"


def test_decisions_that_the_browser_saved_elsewhere(flipped, tmp_path, monkeypatch):
    frame, _ = flipped
    frame.to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(TableError, match="folder of downloads"):
        read_decisions(tmp_path / "decisions.csv", understood(tmp_path / "in.csv"))
    (tmp_path / "Downloads").mkdir()
    (tmp_path / "Downloads" / "decisions.csv").write_text("row\n")
    with pytest.raises(TableError, match=r"Is it '.*Downloads/decisions.csv'"):
        read_decisions(tmp_path / "decisions.csv", understood(tmp_path / "in.csv"))


def test_rows_without_a_label_do_not_shift_the_others(flipped, tmp_path):
    frame, _ = flipped
    frame.loc[2, "outcome"] = None
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False)
    path.write_text(path.read_text().replace("\nP-006", "\n\nP-006"))  # a blank line, too
    data = understood(path)
    decide(tmp_path / "d.csv", frame, {4: ("relabel", "sick")})
    (tmp_path / "out.csv").write_bytes(corrected(path, data, read_decisions(tmp_path / "d.csv", data)))
    after = pd.read_csv(tmp_path / "out.csv")
    assert after["outcome"][4] == "sick"
    assert after["outcome"].drop(4).equals(frame["outcome"].drop(4))
