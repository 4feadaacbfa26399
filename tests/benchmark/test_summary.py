"""Means, ranks, tests, wins and tables against formulas written out by hand."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from otimpute.benchmark.outcome import Outcome
from otimpute.benchmark.summary import aggregate, average_ranks, relative_scores, render_table, shared_blocks, wins
from otimpute.benchmark.summary.cells import scores_by_seed
from otimpute.benchmark.summary.names import dataset_labels, method_label, setting_label, sort_methods, sort_settings
from otimpute.benchmark.summary.ranks import find_cliques, holm
from otimpute.catalogue import METRICS

SETTINGS = ("mcar-30", "logistic_mnar-30")
METHODS = ("mean", "knn", "ice", "sinkhorn")


def outcome(dataset: str, setting: str, method: str, seed: int, rmse: float, part: str = "train") -> Outcome:
    return Outcome(dataset, setting, method, seed, part, {"rmse": rmse}, 0.5, 10.0, 100, 4)


def draws(
    datasets: int = 9, settings: Sequence[str] = SETTINGS, methods: Sequence[str] = METHODS, seeds: int = 4
) -> list[Outcome]:
    rng = np.random.default_rng(1)
    return [
        outcome(f"set{d}", setting, method, seed, float(np.exp(rng.normal(-0.4 * m, 0.5))))
        for d, setting, (m, method), seed in itertools.product(range(datasets), settings, enumerate(methods), range(seeds))
    ]


def scores_of(outcomes: Sequence[Outcome], dataset: str, setting: str, method: str) -> list[float]:
    return [o.scores["rmse"] for o in outcomes if (o.dataset, o.setting, o.method) == (dataset, setting, method)]


def test_cells_hold_the_mean_and_the_sample_deviation_over_seeds() -> None:
    outcomes = draws()
    cells = aggregate(outcomes, "rmse")
    assert len(cells) == 9 * 2 * 4
    for cell in cells:
        values = scores_of(outcomes, cell.dataset, cell.setting, cell.method)
        mean = sum(values) / len(values)
        assert cell.mean == pytest.approx(mean)
        assert cell.sd == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)))
        assert cell.n_seeds == 4


def test_cells_do_not_depend_on_the_order_of_outcomes() -> None:
    outcomes = draws()
    assert aggregate(outcomes[::-1], "rmse") == aggregate(outcomes, "rmse")


def test_parts_and_absent_scores_are_kept_apart() -> None:
    outcomes = [outcome("iris", "mcar-30", "knn", 0, 1.0), outcome("iris", "mcar-30", "knn", 0, 3.0, "test")]
    assert [cell.mean for cell in aggregate(outcomes, "rmse", "test")] == [3.0]
    assert aggregate(outcomes, "wasserstein2") == []
    assert [cell.mean for cell in aggregate(outcomes, "seconds")] == [0.5]


def test_a_seed_that_failed_takes_its_cell_away() -> None:
    outcomes = [outcome("iris", "mcar-30", "knn", seed, value) for seed, value in enumerate([1.0, math.nan])]
    assert aggregate(outcomes, "rmse") == []


def test_average_ranks_are_ranks_of_means_averaged_by_data_set() -> None:
    # A set with one setting more must not weigh more.
    outcomes = [o for o in draws() if (o.dataset, o.setting) != ("set3", "mcar-30")]
    result = average_ranks(outcomes, "rmse")
    by_set = []
    for d in range(9):
        settings = [s for s in SETTINGS if (d, s) != (3, "mcar-30")]
        ranks = [rankdata([np.mean(scores_of(outcomes, f"set{d}", s, m)) for m in METHODS]) for s in settings]
        by_set.append(np.mean(ranks, axis=0))
    expected = dict(zip(METHODS, np.mean(by_set, axis=0), strict=True))
    assert dict(zip(result.methods, result.ranks, strict=True)) == pytest.approx(expected)
    assert list(result.ranks) == sorted(result.ranks)
    assert result.friedman_p == pytest.approx(friedmanchisquare(*np.transpose(by_set)).pvalue)
    assert (result.n_datasets, result.n_blocks, result.n_blocks_left_out) == (9, 17, 0)


def test_pairs_are_tested_over_data_sets_not_over_blocks() -> None:
    outcomes = draws()
    result = average_ranks(outcomes, "rmse")
    raw = {}
    for one, other in result.pairwise_p:
        differences = []
        for d in range(9):
            means = [[np.mean(scores_of(outcomes, f"set{d}", s, m)) for m in (one, other)] for s in SETTINGS]
            differences.append(np.mean([(a - b) / (a + b) for a, b in means]))
        raw[one, other] = wilcoxon(differences).pvalue
    assert result.pairwise_p == pytest.approx(dict(zip(raw, holm(list(raw.values())), strict=True)))


def test_copies_of_a_setting_do_not_make_p_values_smaller() -> None:
    once = draws(settings=["mcar-30"])
    thrice = [outcome(o.dataset, f"mcar-{r}", o.method, o.seed, o.scores["rmse"]) for o in once for r in (10, 30, 50)]
    single, triple = average_ranks(once, "rmse"), average_ranks(thrice, "rmse")
    assert triple.pairwise_p == pytest.approx(single.pairwise_p)
    assert triple.friedman_p == pytest.approx(single.friedman_p)


def test_a_method_run_on_few_blocks_is_left_out_and_named() -> None:
    outcomes = [o for o in draws() if o.method != "ice" or o.dataset in ("set0", "set1")]
    result = average_ranks(outcomes, "rmse")
    assert result.left_out == ("ice",)
    assert (result.n_blocks, result.n_blocks_left_out) == (18, 0)
    chosen = average_ranks(outcomes, "rmse", methods=["ice", "knn"])
    assert (chosen.n_datasets, chosen.n_blocks, chosen.n_blocks_left_out) == (2, 4, 14)
    assert set(chosen.left_out) == {"mean", "sinkhorn"}
    with pytest.raises(ValueError, match=r"methods must be one of .* got 'nonsense'"):
        average_ranks(outcomes, "rmse", methods=["nonsense"])


def test_methods_without_a_shared_block_are_not_compared() -> None:
    outcomes = [outcome("iris", "mcar-30", "knn", 0, 1.0), outcome("wine", "mcar-30", "ice", 0, 1.0)]
    result = average_ranks(outcomes, "rmse")
    assert result.methods == () and set(result.left_out) == {"knn", "ice"}
    assert average_ranks([], "rmse").methods == ()


def test_methods_that_are_always_equal_share_rank_and_clique() -> None:
    outcomes = [outcome(f"set{d}", "mcar-30", m, 0, 1.0 + d) for d in range(7) for m in ("a", "b", "c")]
    result = average_ranks(outcomes, "rmse")
    assert result.testable
    assert result.ranks == (2.0, 2.0, 2.0)
    assert result.friedman_p == 1.0 and set(result.pairwise_p.values()) == {1.0}
    assert result.cliques == (("a", "b", "c"),)


def test_two_methods_or_one_data_set_have_no_friedman_test() -> None:
    assert math.isnan(average_ranks(draws(methods=["mean", "knn"]), "rmse").friedman_p)
    assert math.isnan(average_ranks(draws(datasets=1), "rmse").friedman_p)


def test_holm_by_hand() -> None:
    # Sorted: .005·4, .01·3, .03·2, .04·1, each at least the one before.
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    for raw, adjusted in zip(p_values, holm(p_values), strict=True):
        assert raw <= adjusted <= min(1, raw * len(p_values))


@given(st.sets(st.sampled_from(list(itertools.combinations("abcdef", 2)))))
def test_cliques_are_the_longest_runs_without_a_difference(different: set[tuple[str, str]]) -> None:
    runs = ["abcdef"[i:j] for i in range(6) for j in range(i + 2, 7)]
    alike = [run for run in runs if not different & set(itertools.combinations(run, 2))]
    longest = {tuple(run) for run in alike if not any(run != other and run in other for other in alike)}
    assert set(find_cliques("abcdef", different)) == longest


@pytest.mark.parametrize(("mean", "winner"), [(3.1, False), (3.3, True)])
def test_wins_lie_outside_students_interval(mean: float, winner: bool) -> None:
    # Differences of spread 2 over 4 seeds: the 95 % interval is 3.182 · 2 / √4.
    differences = mean + 2 * np.array([-1, 1, -1, 1]) * np.sqrt(3 / 4)
    outcomes = [outcome("iris", "mcar-30", "knn", seed, 10 + d) for seed, d in enumerate(differences)]
    outcomes += [outcome("iris", "mcar-30", "ice", seed, 10.0) for seed in range(4)]
    assert wins(outcomes, "rmse").wins.any() == winner


def test_the_same_number_computed_in_another_order_is_a_tie() -> None:
    outcomes = [
        outcome(f"s{d}", "mcar-30", m, seed, v) for d in range(6) for seed in (0, 1) for m, v in (("a", 1), ("b", 1 + 4e-16))
    ]
    assert not wins(outcomes, "rmse").wins.any()
    result = average_ranks(outcomes, "rmse")
    assert result.ranks == (1.5, 1.5)
    assert result.pairwise_p["a", "b"] == 1


def test_methods_are_compared_on_the_seeds_they_share() -> None:
    """One that failed, or was not run, on the hard seeds must not look better for it."""
    hard = [1.0, 1.0, 5.0, 5.0, 5.0]
    outcomes = [outcome(f"set{d}", "mcar-30", "knn", seed, hard[seed]) for d in range(3) for seed in range(5)]
    outcomes += [outcome(f"set{d}", "mcar-30", "ice", seed, hard[seed] + 0.5) for d in range(3) for seed in range(2)]
    assert average_ranks(outcomes, "rmse").methods[0] == "knn"
    row = next(line for line in render_table(outcomes, "rmse").splitlines() if line.startswith("average rank"))
    assert row.split()[-2:] == ["1.00", "2.00"]
    assert "(2)" in render_table(outcomes, "rmse")


def test_a_test_that_contradicts_the_ranks_decides_nothing() -> None:
    """One is a little better in three settings of four and far worse in the fourth: first by rank, not by size."""
    scores = {"a": [0.99, 0.99, 0.99, 1.5], "b": [1.0] * 4}
    outcomes = [outcome(f"set{d}", f"mcar-{t}", m, 0, v[t]) for d in range(12) for m, v in scores.items() for t in range(4)]
    result = average_ranks(outcomes, "rmse")
    assert result.methods == ("a", "b")
    assert result.pairwise_p["a", "b"] == 1


def test_nothing_is_joined_where_no_number_of_wins_could_be_significant() -> None:
    """Three methods over six sets: the smallest p is 2 / 2⁶, times three pairs."""
    scores = {"a": 1.0, "b": 2.0, "c": 3.0}
    few, enough = ([outcome(f"set{d}", "mcar-30", m, 0, v) for d in range(n) for m, v in scores.items()] for n in (6, 7))
    assert (average_ranks(few, "rmse").testable, average_ranks(few, "rmse").cliques) == (False, ())
    assert average_ranks(enough, "rmse").testable
    assert average_ranks(enough, "rmse").pairwise_p["a", "b"] <= 0.05


def test_pairs_not_told_apart_but_not_joined_are_named() -> None:
    assert find_cliques("abc", [("a", "b")]) == (("b", "c"),)
    rng = np.random.default_rng(0)
    outcomes = []
    for d in range(12):
        outcomes += [outcome(f"set{d}", "mcar-30", "a", 0, 1.0), outcome(f"set{d}", "mcar-30", "b", 0, 1.05)]
        outcomes += [outcome(f"set{d}", "mcar-30", "c", 0, float(np.exp(rng.normal() + 0.3)))]
    result = average_ranks(outcomes, "rmse")
    joined = {pair for clique in result.cliques for pair in itertools.combinations(clique, 2)}
    assert set(result.undecided) == {pair for pair, p in result.pairwise_p.items() if p > 0.05} - joined
    assert result.undecided


def test_a_perfect_score_does_not_outweigh_the_others() -> None:
    outcomes = [outcome(f"s{d}", "mcar-30", m, 0, v) for d in range(10) for m, v in (("mean", 1.0), ("knn", 0.5), ("ice", 0.5))]
    outcomes[-1] = outcome("s9", "mcar-30", "ice", 0, 0.0)
    _, ratios = relative_scores(shared_blocks(scores_by_seed(outcomes, "rmse", "train")))
    assert ratios[2] == pytest.approx(0.5**0.9 * 5e-4**0.1)


def test_a_difference_within_the_noise_of_the_seeds_is_a_tie() -> None:
    base = [1.0, 2.0, 3.0, 4.0]  # spread over seeds is shared: only paired differences count
    clear = [0.10, 0.12, 0.08, 0.11]  # mean .1025, standard error .0085
    noisy = [0.50, -0.30, 0.20, -0.10]  # mean .075, standard error .175
    outcomes = [
        outcome("iris", "mcar-30", method, seed, base[seed] + extra[seed])
        for method, extra in {"mean": [0.0] * 4, "knn": clear, "ice": noisy}.items()
        for seed in range(4)
    ]
    result = wins(outcomes, "rmse")
    i = {method: result.methods.index(method) for method in result.methods}
    assert result.wins[i["mean"], i["knn"]] == 1 and result.losses[i["knn"], i["mean"]] == 1
    assert result.ties[i["mean"], i["ice"]] == 1 and result.ties[i["ice"], i["mean"]] == 1
    assert result.wins[i["knn"], i["mean"]] == 0
    np.testing.assert_array_equal(np.diag(result.ties), 0)


def test_with_one_seed_one_percent_is_a_tie() -> None:
    outcomes = [outcome("iris", "mcar-30", m, 0, v) for m, v in {"mean": 1.0, "knn": 0.991, "ice": 0.98}.items()]
    result = wins(outcomes, "rmse")
    assert result.methods == ("mean", "knn", "ice")
    assert result.wins.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert result.ties.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_wins_count_each_block_once_and_need_a_shared_seed() -> None:
    outcomes = draws()
    result = wins(outcomes, "rmse")
    total = result.wins + result.ties + result.losses
    assert (total[~np.eye(4, dtype=bool)] == 18).all()
    apart = [outcome("iris", "mcar-30", "mean", 0, 1.0), outcome("iris", "mcar-30", "knn", 1, 2.0)]
    assert not wins(apart, "rmse").wins.any() and not wins(apart, "rmse").ties.any()


def test_relative_scores_are_geometric_means_of_ratios() -> None:
    blocks = shared_blocks(scores_by_seed(draws(), "rmse", "train"))
    reference, ratios = relative_scores(blocks)
    assert reference == "mean" and ratios[0] == pytest.approx(1)
    np.testing.assert_allclose(ratios, [np.prod(c / blocks.means[:, 0]) ** (1 / 18) for c in blocks.means.T])
    without = shared_blocks(scores_by_seed(draws(), "rmse", "train"), ["knn", "ice"])
    reference, ratios = relative_scores(without)
    best = without.means.min(axis=1)
    assert reference == "best"
    np.testing.assert_allclose(ratios, [np.prod(c / best) ** (1 / 18) for c in without.means.T])


def test_csv_keeps_every_digit() -> None:
    outcomes = [*draws(), outcome("a,b", "mcar-30", 'quo"te', 0, 1 / 3)]
    rows = list(csv.DictReader(io.StringIO(render_table(outcomes, "rmse", "train", "csv"))))
    cells = aggregate(outcomes, "rmse")
    assert len(rows) == len(cells)
    for row, cell in zip(rows, cells, strict=True):
        assert (row["setting"], row["dataset"], row["method"]) == (cell.setting, cell.dataset, cell.method)
        assert float(row["mean"]) == cell.mean and int(row["n_seeds"]) == cell.n_seeds
        assert row["sd"] == "" if cell.n_seeds == 1 else float(row["sd"]) == cell.sd


def test_markdown_marks_the_best_and_escapes_names() -> None:
    outcomes = [outcome("a|b\n*c*", "mcar-30", m, 0, v) for m, v in {"x|y": 0.5, "z": 0.25}.items()]
    lines = render_table(outcomes, "rmse", "train", "markdown").splitlines()
    assert lines[0] == "### rmse (train), mcar-30"
    assert lines[2:5] == [r"|  | x\|y | z |", "| :-- | --: | --: |", r"| a\|b \*c\* | 0.500 | **0.250** |"]


def test_text_tables_show_gaps_ranks_and_ratios() -> None:
    outcomes = [o for o in draws(datasets=3) if (o.dataset, o.method) != ("set1", "ice")]
    table = render_table(outcomes, "rmse", "train", "text")
    first = table.split("\n\n")[0].splitlines()
    assert first[0] == "rmse (train), mcar-30" and first[1].split() == ["mean", "knn", "ice", "sinkhorn"]
    assert [line.count("*") for line in first[2:5]] == [1, 1, 1]
    assert "–" in first[3]
    assert first[5].startswith("average rank, 3 of 3 sets") and first[5].split()[-2] == "–"
    assert first[6].split()[:4] == ["relative", "to", "'mean'", "1.000"]


def test_a_method_that_always_failed_has_an_empty_column() -> None:
    nan = float("nan")
    outcomes = [outcome("iris", "mcar-30", "knn", 0, 1.0), outcome("iris", "mcar-30", "ice", 0, nan)]
    header, row = render_table(outcomes, "rmse").splitlines()[1:3]
    assert header.split() == ["knn", "ice"]
    assert row.split() == ["iris", "1.000*", "–"]


def test_tables_of_one_method_and_of_methods_without_shared_sets_are_written() -> None:
    assert "1.000*" in render_table([outcome("iris", "mcar-30", "knn", 0, 1.0)], "rmse")
    apart = [outcome("iris", "mcar-30", "knn", 0, 0.001234), outcome("wine", "mcar-30", "ice", 0, 0.0)]
    table = render_table(apart, "rmse")
    assert "0.00123*" in table and "0.000*" in table and "average rank" not in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rmse", "train", "html"), "fmt must be one of"),
        (("mae", "train", "text"), "no task has a finite 'mae'"),
        (("crps", "train", "text"), "no task has a finite 'crps'; run a suite with n_draws"),
    ],
)
def test_what_cannot_be_tabulated_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        render_table(draws(datasets=1), *arguments)


def test_names_are_ordered_and_spoken() -> None:
    ours = ["sinkhorn_paper", "linear_rr_paper", "mlp_rr_paper", "sinkhorn", "linear_rr", "mlp_rr", "meta_sinkhorn"]
    assert sort_methods(["mlp_rr_wide", *ours[::-1], "other", "mean"]) == ["mean", "other", *ours, "mlp_rr_wide"]
    settings = ["quantile_mnar-30", "odd one", "mcar-50", "mcar-2.5", "logistic_mar-30", "mcar-10"]
    assert sort_settings(settings) == ["mcar-2.5", "mcar-10", "mcar-50", "logistic_mar-30", "quantile_mnar-30", "odd one"]
    assert setting_label("logistic_self_mnar-30") == "MNAR self-masked 30 %"
    assert setting_label("mcar-2.5-per_column=True") == "MCAR 2.5 %, per_column=True"
    assert method_label("sinkhorn_wide") == "Sinkhorn wide" and method_label("missforest") == "missForest"
    clash = dataset_labels(["breast_cancer", "breast_cancer_diagnostic", "noise"])
    assert clash == {"breast_cancer": "breast cancer", "breast_cancer_diagnostic": "breast cancer diagnostic", "noise": "noise"}


def test_the_best_of_a_metric_may_be_the_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [
        outcome(f"set{d}", "mcar-30", method, 0, score) for d in range(8) for method, score in (("knn", 1.0), ("ice", 2.0))
    ]
    assert average_ranks(outcomes, "rmse").methods == ("knn", "ice")
    monkeypatch.setitem(METRICS, "rmse", replace(METRICS["rmse"], lower_is_better=False))
    ranks = average_ranks(outcomes, "rmse")
    assert ranks.methods == ("ice", "knn") and ranks.pairwise_p["ice", "knn"] < 0.05
    assert wins(outcomes, "rmse").wins.tolist() == [[0, 0], [8, 0]]
    table = render_table(outcomes, "rmse")
    assert "2.000*" in table and "1.000*" not in table and "* highest in its row" in table
    assert [line.split()[-2:] for line in table.splitlines() if line.startswith(("average", "relative"))] == [
        ["2.00", "1.00"],
        ["0.500", "1.000"],
    ]
