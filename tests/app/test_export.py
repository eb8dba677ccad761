"""Exported models answer as the model itself does, in engines that know nothing of it."""

import math
import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from psilearn import (
    L0BoostClassifier,
    LPBoostClassifier,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    save,
)
from psilearn.app.encoding import TableEncoder
from psilearn.app.export import ExportError, Formula, export
from psilearn.app.export.onnx import register, to_onnx
from psilearn.app.export.pmml import to_pmml
from psilearn.app.export.sql import to_sql
from psilearn.app.tablemodel import TableModel

from oracles import pmml


def arrays(k, seed=0, n=150, d=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d))
    X[:, :2] += 1.3 * np.column_stack([np.cos(2 * np.pi * y / k), np.sin(2 * np.pi * y / k)])
    return X, np.array(["ill", "it's well", "unsure"])[y], rng.normal(scale=2.0, size=(200, d))


def tables(seed=0, n=160):
    """Numbers with missing cells and a code, and two categories; new rows hold levels nobody has seen."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age in years": rng.normal(50, 15, n), 'the "dose"': rng.exponential(2.0, n)})
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["site"] = rng.choice(["north", "south", "o'hare", "west"], n)
    y = np.where(frame["age in years"] / 15 + 2 * (frame["site"] == "north") + rng.normal(size=n) > 4, 7, 3)
    frame.iloc[::7, 0] = np.nan
    frame.iloc[3::9, 1] = 999.0
    frame.iloc[::11, 3] = None
    new = frame.sample(80, random_state=1).reset_index(drop=True)
    new.loc[:3, "site"] = "elsewhere"
    return frame, y, new


MATRIX_MODELS = {
    "linear, two classes": (SVMClassifier(), 2),
    "linear, three classes": (TruncatedHingeClassifier(solver="dca"), 3),
    "abstaining": (RejectClassifier(threshold=0.9), 2),
    "abstaining, three classes": (RejectClassifier(threshold=0.4, penalty="l2"), 3),
    "rbf": (SVMClassifier(kernel="rbf", gamma=0.3), 2),
    "rbf, three classes": (PsiClassifier(kernel="rbf", a=2.0, solver="dca"), 3),
    "poly": (SVMClassifier(kernel="poly", degree=2, coef0=1.0), 2),
    "low rank": (SVMClassifier(kernel="rbf", n_components=20), 2),
    "rules": (LPBoostClassifier(max_order=2, nu=0.3), 2),
    "rules, three classes": (LPBoostClassifier(), 3),
    "L0-RBoost": (L0BoostClassifier(binarizer="support"), 2),
    "L0-RBoost, three classes": (L0BoostClassifier(binarizer="support"), 3),
}
PLAIN = [name for name, (model, _) in MATRIX_MODELS.items() if getattr(model, "kernel", "linear") == "linear"]


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def fit(name):
        if name not in made:
            model, k = MATRIX_MODELS[name]
            X, y, new = arrays(k)
            made[name] = model.fit(X, y), np.vstack([X, new])
        return made[name]

    return fit


def onnx_answers(formula, inputs):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(formula), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def sql_answers(engine, formula, frame):
    """The rows of the SELECT, in the order of the table."""
    frame = frame.astype(object).where(frame.notna(), None)
    columns = ", ".join(
        f'"{c.name.replace(chr(34), 2 * chr(34))}" {"DOUBLE" if c.levels is None else "TEXT"}' for c in formula.columns
    )
    if engine == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        connection = pytest.importorskip("duckdb").connect(":memory:")
    connection.execute(f"CREATE TABLE data (place INTEGER, {columns})")
    marks = ", ".join("?" * (len(formula.columns) + 1))
    rows = [(at, *row) for at, row in enumerate(frame[[c.name for c in formula.columns]].values.tolist())]
    connection.executemany(f"INSERT INTO data VALUES ({marks})", rows)
    cursor = connection.execute(to_sql(formula) + "ORDER BY place")
    names = [column[0] for column in cursor.description]
    return pd.DataFrame(cursor.fetchall(), columns=names)


@pytest.mark.parametrize("name", MATRIX_MODELS)
def test_onnx_answers_as_the_model(name, fitted):
    model, X = fitted(name)
    answers = onnx_answers(Formula.of(model), {"X": X})
    assert answers["label"].tolist() == model.predict(X).tolist()
    scores = model.decision_function(X)
    np.testing.assert_allclose(answers["scores"].reshape(scores.shape), scores, rtol=1e-9, atol=1e-9)
    if hasattr(model, "abstains"):
        assert answers["abstains"].tolist() == model.abstains(X).tolist()
        assert 0 < answers["abstains"].sum() < len(X)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", PLAIN)
def test_sql_answers_as_the_model(engine, name, fitted):
    model, X = fitted(name)
    answers = sql_answers(engine, Formula.of(model), pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]))
    assert answers["prediction"].tolist() == model.predict(X).tolist()
    if hasattr(model, "abstains"):
        assert [bool(a) for a in answers["abstains"]] == model.abstains(X).tolist()


@pytest.mark.parametrize("name", [name for name in PLAIN if "abstaining" not in name])
def test_pmml_answers_as_the_model(name, fitted):
    model, X = fitted(name)
    text = to_pmml(Formula.of(model))
    rows = [{f"x{j}": value for j, value in enumerate(row)} for row in X[::5]]
    assert [pmml.answer(text, row) for row in rows] == model.predict(X[::5]).tolist()


def test_pmml_decides_equal_votes_as_the_model():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    far = 1e3 * X * np.random.default_rng(0).normal(size=X.shape)
    model = LPBoostClassifier(nu=0.2).fit(X, y)
    far = far[np.abs(model.decision_function(far)) < 1e-9]
    assert len(far) > 0
    text = to_pmml(Formula.of(model))
    first = text.index("<SimpleRule ")
    votes = text[first : text.index("</SimpleRule>", first)]
    assert f'score="{model.predict(far[:1])[0]}"' in votes
    assert "<True />" in votes
    rows = [{f"x{j}": value for j, value in enumerate(row)} for row in far]
    assert [int(pmml.answer(text, row)) for row in rows] == model.predict(far).tolist()


def table_model(classifier, on_table=False, max_levels=20):
    frame, y, new = tables()
    encoder = TableEncoder(list(frame.columns[:2]), max_levels, {'the "dose"': (999.0,)})
    encoder.fit(frame.assign(**{'the "dose"': frame['the "dose"'].where(frame['the "dose"'] != 999.0)}))
    X = encoder.checked(frame) if on_table else encoder.transform(frame)
    return TableModel(encoder, classifier.fit(X, y), "outcome", "a method", {}, on_table), new


TABLE_MODELS = {
    "linear": (SVMClassifier(), False, 20),
    "linear, with a level of the rest": (SVMClassifier(), False, 3),
    "rules": (LPBoostClassifier(nu=0.2, max_order=2), True, 20),
}


@pytest.fixture(params=TABLE_MODELS)
def model_and_rows(request):
    return table_model(*TABLE_MODELS[request.param])


def test_onnx_takes_a_table_column_by_column(model_and_rows):
    model, new = model_and_rows
    formula = Formula.of(model)
    inputs = {
        c.name: new[[c.name]].to_numpy(float) if c.levels is None else new[[c.name]].fillna("missing").to_numpy(object)
        for c in formula.columns
    }
    assert onnx_answers(formula, inputs)["label"].tolist() == model.predict(new)["prediction"].tolist()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_sql_takes_a_table_with_gaps_and_new_levels(model_and_rows, engine):
    model, new = model_and_rows
    answers = sql_answers(engine, Formula.of(model), new)
    assert answers["prediction"].tolist() == model.predict(new)["prediction"].tolist()
    assert len(set(answers["prediction"])) == 2


def test_pmml_takes_a_table_with_gaps_and_new_levels():
    for made in TABLE_MODELS.values():
        model, new = table_model(*made)
        text = to_pmml(Formula.of(model))
        rows = new.astype(object).where(new.notna(), None).to_dict("records")
        assert [int(pmml.answer(text, row)) for row in rows] == model.predict(new)["prediction"].tolist()


def test_a_constant_model_travels():
    X, _, new = arrays(2)
    with pytest.warns(UserWarning, match="constant"):
        model = LPBoostClassifier(nu=0.9).fit(X[:, 3:], np.where(np.arange(len(X)) % 10 == 0, "ill", "well"))
    answers = onnx_answers(Formula.of(model), {"X": new[:, 3:]})
    assert answers["label"].tolist() == model.predict(new[:, 3:]).tolist()
    frame = pd.DataFrame(new[:, 3:], columns=["x0"])
    assert sql_answers("sqlite", Formula.of(model), frame)["prediction"].tolist() == answers["label"].tolist()


def test_pipelines_travel_by_skl2onnx():
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    register()
    X, y, new = arrays(3)
    model = make_pipeline(StandardScaler(), SVMClassifier(kernel="rbf")).fit(X, y)
    whole = skl2onnx.to_onnx(model, new[:1].astype(np.float64), target_opset=19)
    session = runtime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, scores = session.run(None, {session.get_inputs()[0].name: new})
    assert labels.tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(scores, model.decision_function(new), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_loads_what_was_saved(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    from psilearn.app.export.mlflow import save_model

    model, new = table_model(SVMClassifier())
    save_model(model, tmp_path / "model")
    answers = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(new)
    assert answers["prediction"].tolist() == model.predict(new)["prediction"].tolist()


def test_what_cannot_travel_is_said(tmp_path, fitted):
    kernel, _ = fitted("rbf")
    abstaining, _ = fitted("abstaining")
    own = SVMClassifier(kernel=lambda A, B: A @ B.T).fit(*arrays(2)[:2])
    for model, to, sentence in (
        (kernel, "sql", "A kernel machine is no plain SQL; export it to ONNX"),
        (abstaining, "pmml", "PMML has no way to abstain"),
        (own, "onnx", "A kernel given as a function or a matrix cannot be exported"),
        (StandardScaler(), "onnx", "A StandardScaler cannot be exported"),
        (kernel, "docx", "There is no export to 'docx'; choose among onnx, sql, pmml."),
    ):
        with pytest.raises(ExportError, match=sentence):
            export(model, tmp_path / "model", to)
    assert not list(tmp_path.iterdir())


def test_numbers_keep_all_their_digits():
    model = SVMClassifier().fit(*arrays(2)[:2])
    model.coef_ = np.array([[math.pi * 1e-20, 1.0 / 3.0, 0.0, 1e17]])
    text = to_sql(Formula.of(model), "visits")
    assert f"{math.pi * 1e-20:.17e} * " in text
    assert '"x2"' not in text
    assert 'FROM "visits"' in text


def test_the_command_writes_every_format(tmp_path, monkeypatch, capsys):
    from psilearn.app.cli import main

    model, _ = table_model(*TABLE_MODELS["rules"])
    save(model, tmp_path / "model.psi")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["psilearn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capsys.readouterr()

    for to in ("onnx", "sql", "pmml"):
        status, said = run("export", tmp_path / "model.psi", "--to", to)
        assert status == 0, said
    assert (tmp_path / "model.sql").read_text() == to_sql(Formula.of(model))
    assert (tmp_path / "model.onnx").read_bytes() == to_onnx(Formula.of(model))
    status, said = run("export", tmp_path / "nothing.psi", "--to", "sql")
    assert (status, said.err) == (1, f"psilearn: There is no model file '{tmp_path / 'nothing.psi'}'.\n")
    assert run("export", tmp_path / "model.psi", "--to", "docx")[0] == 2
