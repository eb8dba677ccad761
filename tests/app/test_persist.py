"""Saved models: what comes back is what was saved, and a file cannot run code."""

import json
import math
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest

import psilearn
from psilearn.app.encoding import TableEncoder
from psilearn.app.files import writing
from psilearn.app.persist import CLASSES, FORMAT_VERSION, ModelFileError, _class, load, save
from psilearn.app.tablemodel import TableModel
from psilearn.app.tables import understand
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier


def sample(k=2):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    return X, np.array(["no", "yes", "ünsure"])[np.digitize(X[:, 0], np.linspace(-0.4, 0.4, k - 1) if k > 2 else [0])]


MODELS = {
    "svm": (psilearn.SVMClassifier(), 2),
    "svm, 3 classes": (psilearn.SVMClassifier(), 3),
    "svm, l1": (psilearn.SVMClassifier(penalty="l1"), 2),
    "svm, rbf": (psilearn.SVMClassifier(kernel="rbf"), 2),
    "truncated": (psilearn.TruncatedHingeClassifier(s=-0.5), 2),
    "psi": (psilearn.PsiClassifier(a=2.0), 2),
    "reject": (psilearn.RejectClassifier(d=0.1), 2),
    "lp-boost": (LPBoostClassifier(), 2),
    "l0-boost": (L0BoostClassifier(max_order=2), 2),
    "l0-boost, 3 classes": (L0BoostClassifier(), 3),
    "slipper": (SlipperClassifier(), 2),
    "margin": (psilearn.MarginClassifier(psilearn.TruncatedReject(0.2, -1.0)), 2),
}


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(tmp_path, name):
    model, k = MODELS[name]
    X, y = sample(k)
    model.fit(X, y)
    save(model, tmp_path / "m.psi")
    again = load(tmp_path / "m.psi")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert vars(again).keys() == vars(model).keys()
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.status_ is model.status_
    assert again.history_ == model.history_
    if hasattr(model, "rules_"):
        assert again.export_text() == model.export_text()
    else:
        assert again.certificate_.claim is model.certificate_.claim
    if name == "reject":
        np.testing.assert_array_equal(again.abstains(X), model.abstains(X))


def test_integer_labels_keep_their_type(tmp_path):
    X, y = sample()
    model = psilearn.SVMClassifier(penalty="l1").fit(X, (y == "yes").astype(int))
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").predict(X).dtype == model.predict(X).dtype


def test_feature_names_come_back(tmp_path):
    X, y = sample()
    model = psilearn.SVMClassifier(penalty="l1").fit(pd.DataFrame(X, columns=["a", "b", "<c>"]), y)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").feature_names_in_.tolist() == ["a", "b", "<c>"]


def test_table_model(tmp_path):
    X, y = sample()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(g=np.resize(["u", None, "w"], 60), target=y)
    data = understand(frame)
    encoder = TableEncoder(numbers=data.numbers).fit(data.frame)
    classifier = psilearn.RejectClassifier().fit(encoder.transform(data.frame), data.labels.to_numpy(dtype=str))
    model = TableModel(encoder, classifier, "target", "reject", {"rows": 60, "C": 1.0})
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.predict(frame), model.predict(frame))
    assert list(model.predict(frame).columns) == ["row", "prediction", "margin", "abstains", "unusual"]
    assert again.about == model.about


def test_every_listed_class_exists():
    for name in CLASSES:
        assert _class(name).__name__ == name


def test_every_estimator_and_loss_is_listed():
    public = {n for n in psilearn.__all__ if isinstance(getattr(psilearn, n), type)}
    assert {n for n in public if n.endswith("Classifier")} <= set(CLASSES)


@pytest.mark.parametrize(
    ("value", "says"),
    [(lambda x: x, "cannot be saved"), ({"a": object()}, "cannot be saved"), (np.array([1j]), "cannot be saved")],
)
def test_what_cannot_be_saved_is_said(tmp_path, value, says):
    with pytest.raises(TypeError, match=says):
        save(value, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_callable_kernel_is_named(tmp_path):
    X, y = sample()
    model = psilearn.SVMClassifier(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(TypeError, match=r"model\.kernel"):
        save(model, tmp_path / "m")


def archive(path, tree, arrays=()):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model.json", json.dumps(tree))
        for at, data in enumerate(arrays):
            file.writestr(f"arrays/{at}.npy", data)
    return path


def header(model, **changes):
    return {"format": "psilearn-model", "version": FORMAT_VERSION, "psilearn": "0", "model": model} | changes


class Bomb:
    def __reduce__(self):
        return (open, ("/nonexistent/never", "w"))


def bomb_array():
    import io

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


ATTACKS = {
    "unknown class": header({"$object": ["Popen", {"args": "true"}, {}]}),
    "method replaced": header({"$object": ["SVMClassifier", {}, {"predict": 1}]}),
    "dunder": header({"$object": ["SVMClassifier", {}, {"__class__": 1}]}),
    "state of a record": header({"$object": ["Hinge", {}, {"x": 1}]}),
    "class as enum": header({"$enum": ["SVMClassifier", "mro"]}),
    "unknown tag": header({"$eval": "1"}),
    "two tags": header({"$float": "inf", "$tuple": []}),
    "future version": header(1, version=99),
    "other format": {"format": "skops"},
    "not a dict": [1],
    "missing array": header({"$array": 7}),
    "path": header({"$array": "../../etc/passwd"}),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_files_are_refused(tmp_path, name):
    with pytest.raises(ModelFileError):
        load(archive(tmp_path / "m", ATTACKS[name]))


def test_pickles_are_never_opened(tmp_path):
    with pytest.raises(ModelFileError, match=r"allow_pickle|Object arrays"):
        load(archive(tmp_path / "m", header({"$array": 0}), [bomb_array()]))
    (tmp_path / "p").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        load(tmp_path / "p")


def test_truncated_file(tmp_path):
    X, y = sample()
    save(psilearn.SVMClassifier(penalty="l1").fit(X, y), tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match="damaged"):
        load(tmp_path / "half")
    with pytest.raises(ModelFileError, match="no model file"):
        load(tmp_path / "nothing")


def test_special_numbers(tmp_path):
    save([math.inf, -math.inf, (1, None), {2: "a"}], tmp_path / "m")
    assert load(tmp_path / "m") == [math.inf, -math.inf, (1, None), {2: "a"}]


def test_interrupted_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def interrupted():
        with writing(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    with writing(path) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_a_tuned_classifier_is_the_same_again(tmp_path):
    X, y = sample()
    model = psilearn.TunedClassifier(psilearn.SVMClassifier(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.best_params_ == model.best_params_


def test_an_exhaustive_search_is_saved_with_what_verify_needs(tmp_path):
    X, y = sample()
    model = psilearn.PsiClassifier(solver="mip", C=0.1).fit(X[:30], y[:30])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.verify(X[:30], y[:30])[:2] == model.verify(X[:30], y[:30])[:2]
