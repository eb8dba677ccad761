"""Files as clinics have them: each gets a table and the right notes, or one sentence."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from psilearn.app.tables import TableError, as_numbers, read_chunks, read_table, understand
from psilearn.app.tables.cells import missing_codes

N = 40
RNG = np.random.default_rng(3)
A, B = RNG.normal(50, 9, N).round(2), RNG.normal(size=N).round(3)
LABELS = np.resize(["krank", "gesund"], N)


def table(**columns):
    return pd.DataFrame({"a": A, "b": B} | columns | ({} if "target" in columns else {"target": LABELS}))


def text(frame=None, sep=",", encoding="utf-8", **columns):
    return (table(**columns) if frame is None else frame).to_csv(index=False, sep=sep).encode(encoding)


def excel(*sheets, above=0):
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as writer:
        for at, sheet in enumerate(sheets):
            sheet.to_excel(writer, sheet_name=f"S{at}", index=False, startrow=above)
            if above:
                writer.sheets[f"S{at}"].cell(row=1, column=1, value="Ward 3, 2024")
    return buffer.getvalue()


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t.csv", "a,target\n1,x\n")
    return buffer.getvalue()


def some(values, cells, every=7):
    """Put odd cells among numbers."""
    out = [str(v) for v in values]
    for at, cell in zip(range(1, len(out), every), np.resize(cells, len(out))):
        out[at] = cell
    return out


LINES = text().decode().splitlines()
SURVIVES = {
    # name: (bytes, what a note must say)
    "t.csv": (text(), None),
    "semicolon.csv": (text(sep=";"), None),
    "tab.txt": (text(sep="\t"), None),
    "pipe.csv": (text(sep="|"), None),
    "quoted header.csv": (b'"a, b, c, d";target\n' + b"1.5;x\n2.5;y\n" * 20, None),
    "crlf.csv": (text().replace(b"\n", b"\r\n"), None),
    "cr.csv": (text().replace(b"\n", b"\r"), None),
    "bom.csv": (b"\xef\xbb\xbf" + text(), None),
    "utf16.csv": (text(encoding="utf-16"), None),
    "utf16 be.csv": (b"\xfe\xff" + text(encoding="utf-16-be"), None),
    "utf16 no mark.csv": (text(encoding="utf-16-le"), None),
    "utf32.csv": (text(encoding="utf-32"), None),
    "cp1252.csv": (text(ort=np.resize(["Köln", "Genf", "Bern"], N), encoding="cp1252"), "cp1252"),
    "latin1.csv": (text(ort=np.resize(["K\x81", "Genf", "Bern"], N), encoding="latin-1"), "cp1252"),
    "t.csv.gz": (gzip.compress(text()), None),
    "t.csv.bz2": (bz2.compress(text()), None),
    "t.csv.xz": (lzma.compress(text()), None),
    "T.CSV": (text(), None),
    "no suffix": (text(), None),
    "no newline at end.csv": (text().rstrip(), None),
    "blank lines.csv": ("\n\n".join(LINES).encode(), None),
    "spaces in header.csv": (text().replace(b"a,b,target", b" a, b , target "), None),
    "spaces after commas.csv": (text().replace(b",", b", "), None),
    "line break in a cell.csv": (text(c=np.resize(['x "y"\nz', "u"], N)), None),
    "empty columns at the end.csv": ("\n".join(line + ",," for line in LINES).encode(), "every cell is missing"),
    "short row.csv": ("\n".join([*LINES[:9], "1.5", *LINES[9:]]).encode(), r"1 row has fewer cells.*line 10"),
    "total at the end.csv": ("\n".join([*LINES, "Total"]).encode(), "fewer cells"),
    "title above.csv": ("\n".join(["Ward 3", *LINES]).encode(), "1 row above the header"),
    "titles above.csv": ("\n".join(["Ward 3,,", "", ",,", *LINES]).encode(), "1 row above the header"),
    "open quotation.csv": (
        "\n".join([*LINES[:9], '"' + LINES[9], *LINES[10:14], '"' + LINES[14], *LINES[15:]]).encode(),
        "quotation mark not closed",
    ),
    "no header.csv": ("\n".join(["5.1,3.5,target", *LINES[1:]]).encode(), "looks like data"),
    "t.xlsx": (excel(table()), None),
    "an xlsx called.csv": (excel(table()), None),
    "sheets.xlsx": (excel(table(), table()), "The sheet 'S0' was read; not 'S1'"),
    "title.xlsx": (excel(table(), above=3), "1 row above the header"),
    "dates.xlsx": (excel(table(when=pd.date_range("2024-01-01", periods=N))), "holds dates"),
    "limits.csv": (text(c=some(A, ["<0.5"])), "6 cells such as '<0.5' read as the limit itself"),
    "limits and units.csv": (text(c=some(A, ["> 120 mg/dl", "88 mg/dl"])), "mg/dl"),
    "units.csv": (text(c=[f"{v} kg" for v in A]), "unit 'kg'"),
    "percent.csv": (text(c=[f"{v:.0f}%" for v in A]), "unit '%'"),
    "decimal comma in commas.csv": (text(c=[f"{v:.2f}".replace(".", ",") for v in A]), None),
    "thousands.csv": (text(c=[f"{1000 * v:,.0f}" for v in A]), None),
    "swiss.csv": (text(c=[f"{1000 * v:,.0f}".replace(",", "’") for v in A]), None),
    "minus sign.csv": (text(c=[f"{v}".replace("-", "−") for v in B]), None),
    "one word.csv": (text(c=some(A, ["hämolytisch"], 30)), "2 cells without a number .*hämolytisch.* taken as missing"),
    "several words.csv": (text(c=some(A, ["lost", "n.d."])), "without a number"),
    "half words.csv": (text(c=some(A, ["low"], 3)), "others are not"),
    "excel errors.csv": (text(c=some(A, ["#DIV/0!", "#N/A"])), None),
    "999.csv": (text(c=np.where(np.arange(N) % 9 == 0, 999, A.round())), "999 .5 cells. cannot be a measurement"),
    "minus 9.csv": (text(c=np.where(np.arange(N) % 9 == 0, -9, A.round())), "-9 .5 cells."),
    "1e300.csv": (text(c=np.where(np.arange(N) == 5, 1e300, A)), r"1e\+300 .1 cell. cannot be a measurement"),
    "1e12.csv": (text(c=np.where(np.arange(N) == 5, 1e12, A)), "cannot be a measurement"),
    "zeros.csv": (text(c=np.where(np.arange(N) % 9 == 0, 0, A)), "if 0 means missing"),
    "infinite.csv": (text(c=np.where(np.arange(N) == 5, np.inf, A)), "infinite values count as missing"),
    "spaces in labels.csv": (
        text(target=np.resize(["krank", "gut", "krank ", "gut"], N)),
        "are read as one class",
    ),
    "slips in labels.csv": (text(target=["Krank", *np.resize(["gesund", "krank"], N - 1)]), "are read as one class"),
    "capitals in labels.csv": (text(target=np.resize(["AA", "Aa", "aa"], N)), "differ in capitals only"),
    "spaces in cells.csv": (text(c=np.resize(["m", "f ", "f"], N)), "are read as one value"),
    "steps.csv": (text(target=np.resize([0, 1, 2, 3], N)), "steps of a scale"),
    "words of a scale.csv": (text(target=np.resize(["mild", "moderate", "severe"], N)), "steps of a scale"),
    "missing labels.csv": (text(target=[None, None, *LABELS[2:]]), "2 of 40 rows have no label"),
    "blank labels.csv": (text(target=["  ", *LABELS[1:]]), "have no label"),
    "rare class.csv": (text(target=["dead", *LABELS[1:]]), "fewer than 4 rows are left out"),
    "yes no.csv": (text(target=np.resize([True, False], N)), None),
    "patients.csv": (text(patient_id=np.repeat(np.arange(N // 2), 2)), "--group patient_id"),
    "leak.csv": (text(diagnosis=LABELS), "alone decides the label"),
    "constant.csv": (text(c=["x"] * N), "every cell is the same"),
    "remarks.csv": (text(c=[f"seen on ward {i}, well" for i in range(N)]), "identifier|different texts"),
    "names.csv": (text(patient=[f"P{i:03}" for i in range(N)]), "identifier"),
    "long cell.csv": (text(c=["x" * 200_000, *["y", "z"] * 19, "z"]), None),
    "control characters.csv": (text(c=np.resize(["\x1b[31mred", "blue"], N)), None),
    "formulas.csv": (text(c=np.resize(["=1+1", "@SUM(A1)"], N)), None),
    "meta.csv": (text(meta_split=np.resize(["train", "test"], N)), None),
    "many columns.csv": (text(pd.DataFrame(RNG.normal(size=(20, 3000))).assign(target=LABELS[:20])), None),
}


@pytest.mark.parametrize("name", SURVIVES)
def test_odd_files_are_understood(tmp_path, name):
    content, says = SURVIVES[name]
    (tmp_path / name).write_bytes(content)
    data = understand(read_table(tmp_path / name))
    assert 20 <= len(data.labels) <= 41
    assert data.frame.shape[1] >= 1
    if says:
        assert pd.Series(data.notes).str.contains(says, regex=True).any(), data.notes
    elif name not in {"many columns.csv"}:
        assert not [note for note in data.notes if "alone decides" not in note], data.notes


REFUSED = {
    "nothing.csv": (b"", "is empty"),
    "blank.csv": (b" \n \n\n", "is empty"),
    "header only.csv": (b"a,b,target\n", "has no rows"),
    "long row.csv": ("\n".join([*LINES[:9], "1,2,3,4,5", *LINES[9:]]).encode(), "line 10 has 5 cells, the header 3"),
    "every row long.csv": ("\n".join([LINES[0], *(line + ",x" for line in LINES[1:])]).encode(), "line 2 has 4 cells"),
    "title and a long row.csv": ("\n".join(["Ward 3", *LINES, "1,2,3,4"]).encode(), "line 43 has 4 cells"),
    "twins.csv": (text().replace(b"a,b,", b"a,a,"), "Two columns are named 'a'"),
    "twins by spaces.csv": (text().replace(b"a,b,", b"a, a ,"), "Two columns are named 'a'"),
    "binary.csv": (b"a,target\n1,\x00\x00\n" * 9, "zero bytes"),
    "xls.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, "old .* or password-protected Excel"),
    "password.xlsx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, "password-protected"),
    "text called.xlsx": (text(), "is not an Excel file"),
    "broken.xlsx": (b"PK\x03\x04" + b"x" * 100, "could not be read"),
    "zip.zip": (zipped(), "no Excel workbook"),
    "empty.xlsx": (excel(pd.DataFrame()), "is empty"),
    "header.xlsx": (excel(table().head(0)), "has no rows"),
    "pdf.csv": (b"%PDF-1.4\n" * 9, "is a PDF"),
    "page.csv": (b"<!doctype html>\n<table>", "is a web page"),
    "t.json": (b'[{"a": 1}]', "is JSON"),
    "t.parquet": (b"PAR1" + b"x" * 99, "could not be read"),
    "broken.csv.gz": (b"\x1f\x8b\x08\x00" + b"x" * 20, "could not be read"),
    "cut.csv.gz": (gzip.compress(text())[:60], "could not be read"),
    "one column.csv": (b"target\n" + b"x\ny\n" * 20, "No column is left"),
    "one class.csv": (text(target=["krank"] * N), "one class only"),
    "one class in two spellings.csv": (text(target=np.resize(["krank", "krank "], N)), "one class only"),
    "no target.csv": (text(table().rename(columns={"target": "outcome"})), "Which column"),
    "empty target.csv": (text(target=[""] * N), "is empty"),
    "age.csv": (text(target=np.r_[np.arange(21, 51), np.resize(40, 10)]), "30 different whole numbers from 21 to 50"),
    "measurement.csv": (text(target=A), "a measurement, not classes"),
    "names as labels.csv": (text(target=[f"P{i}" for i in range(N)]), "too many for classes"),
    "two rows.csv": (b"a,target\n1,x\n2,y\n", "need 4 rows each"),
    "nothing to learn.csv": (text(table().assign(a=1, b="")), "No column is left"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_files_get_one_sentence(tmp_path, name):
    content, says = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=says) as caught:
        understand(read_table(tmp_path / name))
    assert "\n" not in str(caught.value)
    assert str(caught.value).rstrip(")")[-1] in ".?'", caught.value


def test_standard_input(monkeypatch):
    for content in (text(), text(encoding="utf-16"), excel(table())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        pd.testing.assert_frame_equal(read_table("-"), table(), check_dtype=False)


def test_pieces_are_the_whole(tmp_path):
    for name, content in (
        ("t.csv", text(c=some(A, ["<0.5"]))),
        ("t.xlsx", excel(table())),
        ("u.csv", text(encoding="utf-16")),
    ):
        (tmp_path / name).write_bytes(content)
        parts = pd.concat(read_chunks(tmp_path / name, 7), ignore_index=True)
        pd.testing.assert_frame_equal(parts, read_table(tmp_path / name), check_dtype=False)


# -- cells


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "<0.5", "2", "3"], [1, 0.5, 2, 3]),
        (["1", ">= 3.5 mg", "2 mg"], [1, 3.5, 2]),
        (["1,5", "2,25", "3"], [1.5, 2.25, 3]),
        (["1,500", "22,000", "3"], [1500, 22000, 3]),
        (["1.500,5", "2,5", "3"], [1500.5, 2.5, 3]),
        (["1 500", "2’500", "−3"], [1500, 2500, -3]),
        (["1e3", "2E-2x", "5"], [1000, 0.02, 5]),
        (["5 mg", "6 mg", "7 g"], [5, 6, np.nan]),  # a rarer unit is not silently the same
        (["5", "6-7", "1.2.3", "2024-01-02", ""], [5, np.nan, np.nan, np.nan, np.nan]),
        (["ca. 5", "~6", "7"], [5, 6, 7]),
    ],
)
def test_cells_as_numbers(cells, values):
    np.testing.assert_array_equal(as_numbers(pd.Series(cells)).values, values)


@pytest.mark.parametrize(
    "cells", [["2a", "2b", "3a"] * 13, ["<50", ">=50"] * 20, ["20-30", "30-40"] * 20, ["yes", "no", "7"] * 13]
)
def test_codes_and_bands_are_categories(cells):
    column = next(c for c in understand(table(c=(cells * 2)[:N])).columns if c.name == "c")
    assert column.kind == "category"


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([1, 2, 3, 999], [999]),
        ([20, 45, 90, 99], []),  # 99 years is an age
        ([0, 1, 2, -9, -9], [-9]),
        ([7, 8, 9, 10], []),
        ([1.0, 2.0, 3.0] * 9 + [1e300, -1e300], [-1e300, 1e300]),
        ([1.0, 10.0, 100.0, 1e4, 1e5] * 5, []),
        ([5, 5, 5, 999], []),  # nothing to compare with
    ],
)
def test_codes_for_missing(values, codes):
    assert missing_codes(np.array(values, dtype=float)) == codes
