"""Reading and understanding tables: every odd file gets a result or a clear sentence."""

import gzip

import numpy as np
import pandas as pd
import pytest

from psilearn.app.encoding import TableEncoder
from psilearn.app.tables import TableError, read_chunks, read_table, understand
from psilearn.app.words import listed, shown


def table(n=40, **columns):
    rng = np.random.default_rng(0)
    base = {"a": rng.normal(size=n), "b": rng.normal(size=n), "target": np.resize(["yes", "no"], n)}
    return pd.DataFrame(base | columns)


def kinds(frame, **options):
    return {c.name: c.kind for c in understand(frame, **options).columns}


# -- reading


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_formats_agree(tmp_path, suffix):
    frame = table()
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    again = read_table(path)
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    parts = list(read_chunks(path, 7))
    assert [len(p) for p in parts] == [7] * 5 + [5]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), again, check_dtype=False)


ARFF = """% a comment
@relation 'weather data'
@attribute outlook {sunny, overcast, 'very rainy'}
@ATTRIBUTE 'air temperature' REAL
@attribute windy {TRUE, FALSE}
@data
sunny, 85.5, FALSE
% in between
'very rainy', ?, TRUE

overcast,64,TRUE
"""


@pytest.mark.parametrize("zipped", [False, True])
def test_arff(tmp_path, zipped):
    path = tmp_path / ("w.arff.gz" if zipped else "w.arff")
    path.write_bytes(gzip.compress(ARFF.encode()) if zipped else ARFF.encode())
    frame = read_table(path)
    assert list(frame.columns) == ["outlook", "air temperature", "windy"]
    assert frame["outlook"].tolist() == ["sunny", "very rainy", "overcast"]
    assert frame["air temperature"].isna().tolist() == [False, True, False]
    assert frame["windy"].tolist() == ["FALSE", "TRUE", "TRUE"]
    assert [len(p) for p in read_chunks(path, 2)] == [2, 1]


def test_arff_longer_than_the_reading_buffer(tmp_path):
    path = tmp_path / "long.arff"
    rows = [f"{i},{'ab'[i % 2]}" for i in range(20_000)]
    path.write_text("@attribute x numeric\n@attribute c {a,b}\n@data\n" + "\n".join(rows) + "\n")
    frame = read_table(path)
    assert frame["x"].tolist() == list(range(20_000))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b,target\n", "has no rows"),
        ("twins.csv", b"a,a,target\n1,2,x\n", "Two columns are named 'a'"),
        ("ragged.csv", b"a,target\n1,2\n1,2,3\n", "line 3 has 3 cells, the header 2"),
        ("not.parquet", b"hello", "could not be read"),
        ("not.arff", b"hello\n", "no @attribute"),
        ("sparse.arff", b"@attribute x numeric\n@data\n{0 1}\n", "sparse ARFF"),
        ("not.csv.gz", b"hello", "could not be read"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=says) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_absent_file_and_folder(tmp_path):
    with pytest.raises(TableError, match="There is no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")

    def absent(*arguments, **options):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(TableError, match="pip install pyarrow"):
        read_table(tmp_path / "x.parquet")


def test_semicolons_bom_and_missing_marks(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("\ufeffa;b;target\n1;NA;yes\n?;x;no\n".encode())
    frame = read_table(path)
    assert list(frame.columns) == ["a", "b", "target"]
    assert frame.isna().sum().tolist() == [1, 1, 0]


# -- understanding


def test_kinds_of_columns():
    n = 40
    frame = table(
        n,
        patient_id=np.arange(n)[::-1] * 7 % 41,
        row=np.arange(n) + 100,
        code=[f"k{i}" for i in range(n)],
        same=np.ones(n),
        nothing=np.full(n, np.nan),
        colour=np.resize(["red", "green", None], n),
        when=pd.date_range("2020-01-01", periods=n),
        flag=np.resize([True, False, False], n),
        meta_split=np.resize(["train", "test"], n),
    )
    assert kinds(frame) == {
        "a": "number", "b": "number", "patient_id": "identifier", "row": "identifier", "code": "identifier",
        "same": "constant", "nothing": "empty", "colour": "category", "when": "date", "flag": "number",
        "meta_split": "left out",
    }  # fmt: skip
    assert understand(frame, drop=["a"]).features == ["b", "colour", "flag"]
    assert understand(frame).ids is None  # three columns might name the rows
    data = understand(frame.drop(columns=["row", "code"]))
    assert data.ids.tolist() == [str(v) for v in frame["patient_id"]]
    assert any("'patient_id'" in note and "names the rows" in note for note in data.notes)
    assert understand(frame, identifier="code").ids.tolist() == frame["code"].tolist()


def test_numbers_with_words_among_them():
    cells = [str(v) for v in range(39)]
    data = understand(table(x=[*cells[:20], "hemolytic", *cells[20:]]))
    assert "x" in data.numbers
    assert any("hemolytic" in note for note in data.notes)
    assert np.isnan(data.frame["x"].iloc[20])


def test_infinite_values_are_missing():
    values = np.r_[np.inf, np.arange(39.0)]
    column = next(c for c in understand(table(x=values)).columns if c.name == "x")
    assert column.missing == 1
    assert "infinite" in column.note


def test_leaks_are_named():
    target = np.resize(["yes", "no"], 40)
    data = understand(table(copy=target, shifted=np.where(target == "yes", 3.0, 1.0) + np.arange(40) / 100))
    leaks = [n for n in data.notes if "alone decides" in n]
    assert len(leaks) == 2
    assert not [n for n in understand(table()).notes if "alone decides" in n]


def test_target_is_guessed_or_asked_for():
    assert understand(table()).target == "target"
    with pytest.raises(TableError, match=r"Which column.* columns of few values are 'outcome'"):
        understand(table().rename(columns={"target": "outcome"}))
    with pytest.raises(TableError, match="did you mean 'target'"):
        understand(table(), "tarGet")


def test_labels_that_cannot_be_used():
    with pytest.raises(TableError, match="is empty"):
        understand(table(target=np.full(40, np.nan)))
    with pytest.raises(TableError, match="one class only"):
        understand(table(target=["yes"] * 40))
    with pytest.raises(TableError, match="measurement"):
        understand(table(target=np.arange(40) / 7))
    with pytest.raises(TableError, match="too many"):
        understand(table(target=[f"n{i}" for i in range(40)]))
    with pytest.raises(TableError, match="need 4 rows each"):
        understand(table(target=["yes"] * 39 + ["no"]))
    with pytest.raises(TableError, match="one class only"):
        understand(table(n=1))


def test_rows_without_label_and_rare_classes_are_left_out():
    target = np.array(["yes"] * 20 + ["no"] * 16 + ["odd"] + [None] * 3, dtype=object)
    data = understand(table(target=target))
    assert data.class_counts == {"yes": 20, "no": 16}
    assert len(data.frame) == len(data.labels) == 36
    assert len([n for n in data.notes if "left out" in n]) == 2


def test_only_a_target():
    with pytest.raises(TableError, match="No column is left"):
        understand(table()[["target"]])


def test_float_labels_read_as_whole_numbers():
    assert set(understand(table(target=np.resize([0.0, 1.0, np.nan], 40))).class_counts) == {"0", "1"}


# -- showing


def test_shown_is_inert_and_short():
    assert shown("a\x1b[31mred\u202eevil") == "a\ufffd[31mred\ufffdevil"
    assert len(shown("x" * 10_000)) == 60
    assert listed(list("abcdefgh"), 2) == "'a', 'b' and 6 more"


# -- encoding


def test_encoder_standardises_and_one_hots():
    frame = pd.DataFrame({"x": [1.0, 3.0, np.nan, 5.0], "c": ["u", "v", "w", None], "d": ["p", "q", "p", "p"]})
    encoder = TableEncoder(numbers=["x"]).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["x", "c=missing", "c=u", "c=v", "c=w", "d=q"]
    Z = encoder.transform(frame)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1)
    assert Z[2, 0] == 0  # the median is the mean here
    unseen = encoder.transform(pd.DataFrame({"d": ["p"], "c": ["new"], "x": [3.0]}))
    np.testing.assert_allclose(unseen[0, 1:5] * encoder.scales_[1:5] + encoder.means_[1:5], 0, atol=1e-12)


def test_encoder_groups_rare_levels():
    frame = pd.DataFrame({"c": [f"l{i}" for i in range(30)] + ["l0"] * 5})
    encoder = TableEncoder(max_levels=4).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["c=l0", "c=l1", "c=l10", "c=other"]
    raw = encoder.transform(pd.DataFrame({"c": ["zzz", "l0"]})) * encoder.scales_ + encoder.means_
    np.testing.assert_allclose(raw, [[0, 0, 0, 1], [1, 0, 0, 0]], atol=1e-12)


def test_encoder_names_what_is_wrong():
    encoder = TableEncoder(numbers=["x"]).fit(pd.DataFrame({"x": [1.0, 2.0], "c": ["a", "b"]}))
    with pytest.raises(TableError, match=r"lacks columns .*'c'"):
        encoder.transform(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(TableError, match="held numbers in training"):
        encoder.transform(pd.DataFrame({"x": ["high"] * 10, "c": ["a"] * 10}))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a;target\n0,5;x\n-1,25;y\n", 0.5),
        ("a;target\n0.5;x\n-1.25;y\n", 0.5),
        ("a,target\n0.5,x\n-1.25,y\n", 0.5),
        ("a;target\n1,5;x\n1.5;y\n", "1,5"),  # both signs: nobody knows
    ],
)
def test_decimal_comma(tmp_path, text, first):
    (tmp_path / "t.csv").write_text(text)
    assert read_table(tmp_path / "t.csv")["a"].iloc[0] == first


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d %H:%M:%S"])
def test_typed_dates_are_dates(form):
    days = pd.date_range("2020-01-01", periods=40).strftime(form)
    assert kinds(table(when=days, often=np.resize(days[:3], 40))) == {
        "a": "number", "b": "number", "when": "date", "often": "date",
    }  # fmt: skip


def test_infinite_label_is_no_label():
    frame = table(target=np.resize([1.0, 2.0, np.inf, -np.inf], 40))
    understood = understand(frame)
    assert understood.class_counts == {"1": 10, "2": 10}
    assert any("20 of 40 rows have no label" in note for note in understood.notes)
