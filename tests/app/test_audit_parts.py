"""The parts of an audit: other sources of scores, refusal, annotators, reasons, and what is wrong beside the labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from psilearn import find_label_issues
from psilearn.app.audit import machines
from psilearn.app.audit.annotators import consensus
from psilearn.app.audit.checks import findings
from psilearn.app.audit.issues import near_chance
from psilearn.app.audit.machines import standardised
from psilearn.app.audit.noise import stretched
from psilearn.app.audit.reasons import reasons
from psilearn.app.audit.story import answer
from psilearn.app.compare.job import flip_labels
from psilearn.app.tables import understand


def probabilities(n, k, steep, seed=0):
    """Probabilities of classes, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    scores = steep * rng.normal(size=(n, k))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def test_given_probabilities_need_no_fit():
    p, truth = probabilities(800, 3, 4.0)
    names = np.array(["a", "b", "c"])
    given, rows = flip_labels(truth, 0.1, 1)
    table = find_label_issues(None, names[given], pred_probs=p)
    assert table.attrs["share"] == pytest.approx(0.1, abs=0.03)
    low, high = table.attrs["share_interval"]
    assert low <= table.attrs["share"] <= high
    assert table.attrs["noise_matrix"].to_numpy().sum(axis=1) == pytest.approx(np.ones(3))
    assert list(table.attrs["noise_matrix"].index) == ["a", "b", "c"]
    assert table.attrs["held_out_error"] == pytest.approx(np.mean(p.argmax(axis=1) != given))
    assert np.isin(table["index"].head(40), rows).mean() > 0.8
    with pytest.raises(ValueError, match="a column per class"):
        find_label_issues(None, names[given], pred_probs=p[:, :2])
    with pytest.raises(ValueError, match="add up to 1"):
        find_label_issues(None, names[given], pred_probs=2 * p)


def test_the_share_after_a_review_is_that_of_the_labels_that_remain():
    """The doubtful rows have been asked about: judged by the others alone, next to nothing would be wrong."""
    p, truth = probabilities(1500, 3, 2.5)
    given, _ = flip_labels(truth, 0.2, 3)
    table = find_label_issues(None, given, pred_probs=p)
    known = np.zeros(1500, dtype=bool)
    known[table["index"][table["score"] > 0.5]] = True
    after = np.where(known, truth, given)
    left = np.mean(after != truth)
    assert left > 0.04
    again = find_label_issues(None, after, pred_probs=p, known=known, corrected=known & (given != truth))
    low, high = again.attrs["share_interval"]
    assert low <= left <= high
    assert high < 0.12
    assert np.isnan(again.attrs["p_clean"])
    assert any(sentence.startswith("After the corrections") for sentence in answer(again))
    assert not again.set_index("index").sort_index().loc[known, "score"].any()


def test_a_panel_is_the_weighted_average_of_its_members():
    class Fixed:
        kind = "fixed"

        def __init__(self, scores):
            self.scores = scores

        def held_out(self, views, codes, parts, keep):
            return self.scores

    p, codes = probabilities(300, 3, 3.0)
    good, useless = np.log(p), np.random.default_rng(9).normal(size=p.shape)
    panel = machines.Panel((Fixed(good), Fixed(useless)), (3.0, 1.0))
    scores, agreement = panel.held_out({}, codes, [], np.ones(300, dtype=bool))
    assert np.exp(scores).sum(axis=1) == pytest.approx(np.ones(300))
    alone = [machines.probabilities(one, codes) for one in (good, useless)]
    assert np.exp(scores) == pytest.approx(0.75 * alone[0] + 0.25 * alone[1], abs=1e-8)
    assert alone[1].max() < alone[0].max()  # scores that know nothing about the labels are flat
    assert set(agreement) <= {0.0, 0.25, 0.75, 1.0}


def test_a_class_that_training_lacks_is_neither_likely_nor_impossible():
    rng = np.random.default_rng(0)
    codes = np.r_[np.repeat([0, 1], 40), np.full(20, 2)]
    X = rng.normal(size=(100, 2)) + 4.0 * codes[:, None]
    parts = [(np.arange(80), np.arange(80, 100)), (np.arange(20, 100), np.arange(20))]
    scores = machines.cross_fitted(LogisticRegression(), X, codes, parts, np.ones(100, dtype=bool))
    unseen = scores[80:]
    assert (unseen[:, 2] > unseen[:, :2].min(axis=1)).all()
    assert (unseen[:, 2] < unseen[:, :2].max(axis=1)).all()


def test_labels_that_go_wrong_one_way_show_in_the_matrix():
    p, truth = probabilities(4000, 2, 6.0, seed=2)
    rng = np.random.default_rng(0)
    given = np.where((truth == 1) & (rng.random(4000) < 0.3), 0, truth)
    matrix = find_label_issues(None, given, pred_probs=p).attrs["noise_matrix"]
    assert matrix.loc[1, 0] == pytest.approx(0.3, abs=0.05)
    assert matrix.loc[0, 1] < 0.03


def test_no_share_where_the_model_is_near_chance():
    p, _ = probabilities(400, 2, 1.0)
    given = np.random.default_rng(5).integers(0, 2, 400)
    table = find_label_issues(None, given, pred_probs=p)
    assert np.isnan(table.attrs["share"])
    assert np.isnan(table.attrs["share_interval"]).all()
    assert any("not reliably better than guessing" in sentence for sentence in answer(table))
    assert len(table) == 400
    assert near_chance(0.48, 0.5, 10_000)  # certain, but next to nothing
    assert near_chance(0.3, 0.5, 20)  # much, but not certain
    assert not near_chance(0.3, 0.5, 200)


def test_noise_free_xor_is_clean():
    X = np.random.default_rng(1).uniform(-1, 1, (250, 2))
    table = find_label_issues(X, X[:, 0] * X[:, 1] > 0)
    assert table.attrs["share"] < 0.03
    assert table.attrs["p_clean"] > 0.01


@pytest.mark.parametrize(
    ("share", "high", "p", "says"),
    [
        (0.0, 0.0, 0.6, "No label looks wrong"),
        (0.001, 0.04, 0.4, "may well be clean: no more than 8 rows"),
        (0.03, 0.08, 0.02, "Perhaps 6 rows of 200 are wrong, no more than 16"),
        (0.03, 0.08, 0.001, "About 3.0% of the labels are wrong: 6 rows"),
    ],
)
def test_the_answer_is_as_sure_as_the_evidence(share, high, p, says):
    table = pd.DataFrame({"given": np.resize(["a", "b"], 200), "score": np.zeros(200)})
    table.attrs.update(share=share, share_interval=(0.0, high), p_clean=p, held_out_error=0.1, chance_error=0.5)
    assert says in " ".join(answer(table))


def test_an_estimator_of_ones_own_sees_whole_groups():
    class Watching(LogisticRegression):
        """Remembers the groups of what it was trained on and asked about."""

        def fit(self, X, y):
            self.trained_ = set(X[:, 2])
            return super().fit(X, y)

        def decision_function(self, X):
            assert not self.trained_ & set(X[:, 2])
            return super().decision_function(X)

    rng = np.random.default_rng(0)
    y = np.resize([0, 1], 120)
    groups = np.arange(120) // 4
    X = np.c_[rng.normal(size=(120, 2)) + 3 * y[:, None], groups]
    table = find_label_issues(X, y, Watching(), groups=groups)
    assert table.attrs["model"] == "Watching"
    assert table.attrs["share"] < 0.05
    with pytest.raises(AssertionError):
        find_label_issues(X, y, Watching())


def test_competition_takes_whole_groups():
    groups = np.arange(4000) // 5
    rows = machines.competition_rows(np.zeros(4000, dtype=int), groups, 0)
    counts = np.unique(groups[rows], return_counts=True)[1]
    assert rows.size == machines.SETTINGS.rows
    assert np.sum(counts < 5) <= 1


def test_annotators_are_weighed_by_how_good_they_are():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 1200)
    classes = np.array(["a", "b", "c"])

    def person(right):
        return np.where(rng.random(1200) < right, truth, (truth + rng.integers(1, 3, 1200)) % 3)

    given = person(0.7)
    frame = pd.DataFrame({"good": classes[person(0.95)], "poor": classes[person(0.5)], "fair": classes[person(0.8)]})
    frame.loc[::2, "good"] = None
    found = consensus(np.full((1200, 3), 1 / 3), given, frame, classes)
    assert found.quality.loc["good", "labels"] == 600
    for name, right in (("given", 0.7), ("good", 0.95), ("poor", 0.5), ("fair", 0.8)):
        assert found.quality.loc[name, "accuracy"] == pytest.approx(right, abs=0.08)
    best = found.classes.argmax(axis=1)
    assert np.mean(best[1::2] == truth[1::2]) > 0.9  # where the good one has spoken
    with pytest.raises(ValueError, match="none of the classes"):
        consensus(np.full((1200, 3), 1 / 3), given, frame.assign(poor="x"), classes)
    with pytest.raises(ValueError, match="a row per label"):
        consensus(np.full((1200, 3), 1 / 3), given, frame.head(10), classes)


def test_reasons_name_the_telling_features_and_the_neighbours():
    rng = np.random.default_rng(0)
    labels = np.resize(["well", "sick"], 100)
    frame = pd.DataFrame({"age": rng.normal(50, 5, 100), "dose": np.where(labels == "sick", 9.0, 1.0)})
    frame["smoker"] = np.where(labels == "sick", "yes", "no")
    frame["dose"] += rng.normal(0, 0.1, 100)
    given = labels.copy()
    given[7] = "well"  # a sick one
    X = standardised(np.c_[frame["age"], frame["dose"], frame["smoker"] == "yes"])
    wrong = np.where(np.arange(100) == 7, 0.9, 0.01)
    (reason,) = reasons(frame, X, given, labels, wrong, np.array([7]))
    assert reason.features[-1] == 0
    assert "All of its 5 nearest believed rows are 'sick'" in reason.text
    assert "smoker 'yes' is found in 100% of 'sick' and 0% of 'well'" in reason.text
    assert "dose" in reason.text
    assert "age" not in reason.text
    assert 7 not in reason.neighbours
    assert set(given[list(reason.neighbours)]) == {"sick"}


def test_what_is_wrong_beside_the_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[10] = X[11]  # contradictory
    X[20] = X[22]  # repeated
    X[30] = X[31] + 1e-5  # nearly
    X[40] = 60.0  # far off
    labels = np.resize(["a", "b"], 200)
    frame = pd.DataFrame(X, columns=list("xyz")).assign(target=labels)
    data = understand(frame)
    prefix = pd.Series([f"{'N' if c == 'a' else 'S'}{i}" for i, c in enumerate(labels)])
    found = {f.name: f for f in findings(data, standardised(X), {"site": prefix, "free": pd.Series(rng.random(200))})}
    assert found["contradictory rows"].sets == ((10, 11),)
    assert found["repeated rows"].sets == ((20, 22),)
    assert found["near duplicates"].sets == ((30, 31),)
    assert (40,) in found["outliers"].sets
    assert "label known from the identifier 'site'" in found
    assert not any("free" in name or "order" in name for name in found)
    ordered = understand(frame.assign(target=np.sort(labels)))
    assert any("order of the rows" in f.name for f in findings(ordered, standardised(X), {}))


def test_stretching_keeps_the_order_and_no_tie_outweighs_the_rest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, 4))
    scores[5, :2] = scores[5].max() + 1.0  # a tie at the top
    scores[6, :2] = scores[6].max() + np.array([1.0, 1.0 + 1e-14])
    out = stretched(scores)
    assert np.array_equal(out.argmax(axis=1)[7:], scores.argmax(axis=1)[7:])
    assert np.all(np.diff(np.take_along_axis(out, np.argsort(scores, axis=1), axis=1), axis=1) >= 0)
    assert np.abs(out).max() < 100
    gap = np.sort(out, axis=1)[7:]
    gap = gap[:, -1] - gap[:, -2]
    assert np.median(gap) == pytest.approx(np.log(2), rel=0.05)
    two = scores[:, :2]
    assert np.abs(stretched(two)).max() == pytest.approx(np.log(600), rel=1e-6)


def test_ties_do_not_hide_the_flips_of_many_classes():
    p, truth = probabilities(600, 6, 5.0, seed=4)
    p[:3] = np.full(6, 1 / 6)
    given, rows = flip_labels(truth, 0.1, 1)
    table = find_label_issues(None, given, pred_probs=p)
    assert table.attrs["share"] == pytest.approx(0.1, abs=0.04)
    assert np.isin(table["index"].head(30), rows).mean() > 0.8
