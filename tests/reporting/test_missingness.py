"""The tests of missingness agree with those of others, and err as rarely as they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, kstest, mannwhitneyu

from otimpute.baselines import MeanImputer
from otimpute.reporting._before_after import BeforeAfter, read_table, see
from otimpute.reporting._missingness import _compare_categories, _compare_numbers, _predictors, little_test
from otimpute.reporting.data import McarTest

# Air quality in New York, May to September 1973 (R's data set ``airquality``); a dash is missing.
AIR = {
    "Ozone": """
        41 36 12 18 - 28 23 19 8 - 7 16 11 14 18 14 34 6 30 11 1 11 4 32 - - - 23 45 115 37 - - - - - - 29 - 71 39 -
        - 23 - - 21 37 20 12 13 - - - - - - - - - - 135 49 32 - 64 40 77 97 97 85 - 10 27 - 7 48 35 61 79 63 16 - -
        80 108 20 52 82 50 64 59 39 9 16 78 35 66 122 89 110 - - 44 28 65 - 22 59 23 31 44 21 9 - 45 168 73 - 76 118
        84 85 96 78 73 91 47 32 20 23 21 24 44 21 28 9 13 46 18 13 24 16 13 23 36 7 14 30 - 14 18 20
    """,
    "Solar.R": """
        190 118 149 313 - - 299 99 19 194 - 256 290 274 65 334 307 78 322 44 8 320 25 92 66 266 - 13 252 223 279 286
        287 242 186 220 264 127 273 291 323 259 250 148 332 322 191 284 37 120 137 150 59 91 250 135 127 47 98 31
        138 269 248 236 101 175 314 276 267 272 175 139 264 175 291 48 260 274 285 187 220 7 258 295 294 223 81 82
        213 275 253 254 83 24 77 - - - 255 229 207 222 137 192 273 157 64 71 51 115 244 190 259 36 255 212 238 215
        153 203 225 237 188 167 197 183 189 95 92 252 220 230 259 236 259 238 24 112 237 224 27 238 201 238 14 139
        49 20 193 145 191 131 223
    """,
    "Wind": """
        7.4 8 12.6 11.5 14.3 14.9 8.6 13.8 20.1 8.6 6.9 9.7 9.2 10.9 13.2 11.5 12 18.4 11.5 9.7 9.7 16.6 9.7 12 16.6
        14.9 8 12 14.9 5.7 7.4 8.6 9.7 16.1 9.2 8.6 14.3 9.7 6.9 13.8 11.5 10.9 9.2 8 13.8 11.5 14.9 20.7 9.2 11.5
        10.3 6.3 1.7 4.6 6.3 8 8 10.3 11.5 14.9 8 4.1 9.2 9.2 10.9 4.6 10.9 5.1 6.3 5.7 7.4 8.6 14.3 14.9 14.9 14.3
        6.9 10.3 6.3 5.1 11.5 6.9 9.7 11.5 8.6 8 8.6 12 7.4 7.4 7.4 9.2 6.9 13.8 7.4 6.9 7.4 4.6 4 10.3 8 8.6 11.5
        11.5 11.5 9.7 11.5 10.3 6.3 7.4 10.9 10.3 15.5 14.3 12.6 9.7 3.4 8 5.7 9.7 2.3 6.3 6.3 6.9 5.1 2.8 4.6 7.4
        15.5 10.9 10.3 10.9 9.7 14.9 15.5 6.3 10.9 11.5 6.9 13.8 10.3 10.3 8 12.6 9.2 10.3 10.3 16.6 6.9 13.2 14.3 8
        11.5
    """,
    "Temp": """
        67 72 74 62 56 66 65 59 61 69 74 69 66 68 58 64 66 57 68 62 59 73 61 61 57 58 57 67 81 79 76 78 74 67 84 85
        79 82 87 90 87 93 92 82 80 79 77 72 65 73 76 77 76 76 76 75 78 73 80 77 83 84 85 81 84 83 83 88 92 92 89 82
        73 81 91 80 81 82 84 87 85 74 81 82 86 85 82 86 88 86 83 81 81 81 82 86 85 87 89 90 90 92 86 86 82 80 79 77
        79 76 78 78 77 72 75 79 81 86 88 97 94 96 94 91 92 93 93 87 84 80 78 75 73 81 76 77 71 71 78 67 76 68 82 64
        71 81 69 63 70 77 75 76 68
    """,
}


def seen(X: pd.DataFrame) -> BeforeAfter:
    imputer = MeanImputer().fit(X)
    return see(imputer, read_table(imputer, X), None, np.arange(len(X)))


def air_quality() -> pd.DataFrame:
    columns = {name: [np.nan if cell == "-" else float(cell) for cell in text.split()] for name, text in AIR.items()}
    days = pd.date_range("1973-05-01", "1973-09-30")
    return pd.DataFrame(columns).assign(Month=days.month.astype(float), Day=days.day.astype(float))


def test_littles_test_gives_what_r_gives() -> None:
    # naniar::mcar_test(airquality): statistic 35.1, df 14, p.value 0.00142, missing.patterns 4.
    found = little_test(seen(air_quality()))
    assert found.statistic == pytest.approx(35.1, abs=0.05)
    assert (found.degrees_of_freedom, found.n_patterns) == (14, 4)
    assert found.p_value == pytest.approx(0.00142, abs=5e-6)
    assert "finds evidence against" in found.words


def holes_by_chance(seed: int) -> McarTest:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 3))
    X[rng.random(X.shape) < 0.15] = np.nan
    return little_test(seen(pd.DataFrame(X, columns=list("abc"))))


def test_littles_p_values_are_uniform_if_holes_are_made_by_chance() -> None:
    p_values = [holes_by_chance(seed).p_value for seed in range(120)]
    assert kstest(p_values, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("X", "why"),
    [
        (pd.DataFrame({"a": [1.0, 2.0] * 10, "b": ["x", None] * 10}), "no column of varying numbers"),
        (pd.DataFrame({"a": [1.0, None, 2.0] * 10, "b": ["x", "y", "x"] * 10}), "two columns"),
        (pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 4.0]}), "too few rows (3)"),
    ],
)
def test_what_cannot_be_tested_is_not(X: pd.DataFrame, why: str) -> None:
    found = little_test(seen(X))
    assert found.p_value is None
    assert why in found.words


def test_numbers_are_compared_as_mann_and_whitney_do() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 12, 200).astype(float)  # with ties
    absent = (rng.random((200, 3)) < [0.3, 0.1, 0.5]).astype(float)
    strength, p_value, direction = _compare_numbers(values, absent)
    for k in range(3):
        gone = absent[:, k] == 1
        expected = mannwhitneyu(values[gone], values[~gone], method="asymptotic", use_continuity=False)
        assert p_value[k] == pytest.approx(expected.pvalue)
        effect = 2 * expected.statistic / (gone.sum() * (~gone).sum()) - 1
        assert (strength[k], direction[k]) == pytest.approx((abs(effect), effect))


def test_categories_are_compared_as_pearson_does() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, 300).astype(float)
    absent = (rng.random((300, 2)) < np.column_stack([np.full(300, 0.3), 0.1 + 0.2 * values])).astype(float)
    strength, p_value, most = _compare_categories(values, absent)
    for k in range(2):
        expected = chi2_contingency(pd.crosstab(values, absent[:, k]), correction=False)
        assert p_value[k] == pytest.approx(expected.pvalue)
        assert strength[k] == pytest.approx(np.sqrt(expected.statistic / 300))
    assert most[1] == 3


def test_chance_is_rarely_taken_for_a_reason() -> None:
    n_found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
        X["g"] = rng.choice(["x", "y", "z"], 200)
        n_found += bool(_predictors(seen(X.mask(rng.random(X.shape) < 0.2))).strongest)
    assert n_found <= 3  # one in a hundred tables is expected


def test_a_column_that_is_missing_where_itself_would_be_high_cannot_be_found() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    X.loc[X["a"] > 0.5, "a"] = np.nan
    found = _predictors(seen(X))
    assert found.strongest == []
    assert found.n_pairs == 1


def test_rare_categories_are_not_taken_for_a_reason() -> None:
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(300):
        values = np.where(rng.random(500) < 0.5, rng.integers(0, 2, 500), rng.integers(2, 100, 500)).astype(float)
        p_values += list(_compare_categories(values, (rng.random((500, 5)) < 0.03).astype(float))[1])
    assert np.isfinite(p_values).all()
    assert np.mean(np.array(p_values) < 0.001) < 0.005  # if rare ones count one by one, 0.09


def test_values_unlike_all_others_are_no_finding() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).assign(rare=(rng.random(300) < 0.03).astype(float))
    X = X.mask(rng.random(X.shape) < 0.1)
    assert little_test(seen(X)).n_columns == 3


def test_words_do_not_contradict_themselves() -> None:
    # Missing for the highest values and just below the median: high on the whole, yet less often above the median.
    x = np.arange(1000.0)
    holes = ((x >= 430) & (x < 490)) | (x >= 960)
    X = pd.DataFrame({"x": x, "y": np.where(holes, np.nan, 1.0)})
    (found,) = _predictors(seen(X)).strongest
    assert found.words == "missing more often where x is high"
