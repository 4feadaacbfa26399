"""Figures are drawn for whatever outcomes there are, the same each time, and say what they cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

from otimpute.benchmark.figures import (  # noqa: E402
    draw_bars,
    draw_figures,
    draw_out_of_sample_bars,
    draw_ranks,
    draw_run_times,
    draw_time_accuracy,
    draw_wins,
)
from otimpute.benchmark.figures.bars import axis_limit  # noqa: E402
from otimpute.benchmark.figures.style import method_styles  # noqa: E402
from otimpute.benchmark.figures.time_accuracy import pareto_front  # noqa: E402
from otimpute.benchmark.outcome import Outcome  # noqa: E402

BASELINES = ["mean", "knn", "ice", "softimpute", "gaussian_em", "missforest"]
OURS = ["sinkhorn_paper", "linear_rr_paper", "mlp_rr_paper", "sinkhorn", "linear_rr", "mlp_rr", "meta_sinkhorn"]
KNOWN = BASELINES + OURS


def draws(
    datasets: Sequence[str] = ("iris", "wine", "glass"),
    settings: Sequence[str] = ("mcar-30",),
    methods: Sequence[str] = ("mean", "knn", "sinkhorn"),
    seeds: int = 2,
    parts: Sequence[str] = ("train",),
) -> list[Outcome]:
    rng = np.random.default_rng(0)
    outcomes = []
    for dataset, setting, method, seed, part in itertools.product(datasets, settings, methods, range(seeds), parts):
        error = rng.uniform(0.4, 0.6) + 0.4 * (method == "mean")
        scores = {"mae": 0.7 * error, "rmse": error, "wasserstein2": error**2, "energy_distance": error**3}
        outcomes.append(Outcome(dataset, setting, method, seed, part, scores, rng.uniform(0.1, 9), 10.0, 50 + len(dataset), 4))
    return outcomes


def replaced(outcome: Outcome, **scores: float | None) -> Outcome:
    kept = {name: value for name, value in (outcome.scores | scores).items() if value is not None}
    return Outcome(**{**vars(outcome), "scores": kept})


def texts(figure: Figure) -> Iterator[str]:
    return (text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text())


def with_rmse_only(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [replaced(o, mae=None, wasserstein2=None, energy_distance=None) for o in outcomes]


def test_every_figure_the_outcomes_allow_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otimpute.benchmark.figures.draw.save_figure", lambda figure, path, dpi: None)  # takes longest
    outcomes = draws(["iris", "wine"], ["mcar-30", "by hand/±"])
    outcomes += draws(["iris", "wine"], ["mcar-30"], parts=["test"])
    assert [path.name for path in draw_figures(outcomes, tmp_path, ["svg"])] == [
        *("bars-mcar-30.svg", "out-of-sample-mcar-30.svg", "bars-by-hand-.svg", "run-times.svg", "time-accuracy.svg"),
        *("ranks-rmse.svg", "wins-rmse.svg", "ranks-mae.svg", "wins-mae.svg", "ranks-energy_distance.svg"),
        *("wins-energy_distance.svg", "ranks-wasserstein2.svg", "wins-wasserstein2.svg"),
        *(
            f"{kind}-{score}-new-rows.svg"
            for score in ("rmse", "mae", "energy_distance", "wasserstein2")
            for kind in ("ranks", "wins")
        ),
    ]


def test_failures_neither_shrink_a_data_set_nor_break_a_figure(tmp_path: Path) -> None:
    nan = float("nan")
    failed = Outcome("iris", "mcar-30", "ice", 0, "train", {"rmse": nan}, nan, nan, 0, 0)
    good = draws(["iris"], ["mcar-30"])
    labels = [text.get_text() for text in draw_run_times([*good, failed]).axes[0].get_xticklabels()]
    assert labels == [text.get_text() for text in draw_run_times(good).axes[0].get_xticklabels()]
    assert draw_figures([*good, failed], tmp_path, ["svg"])
    with pytest.raises(ValueError, match="all tasks failed"):
        draw_figures([failed], tmp_path)


def test_the_same_outcomes_in_any_order_give_the_same_svg(tmp_path: Path) -> None:
    outcomes = with_rmse_only(draws(["iris", "wine"], parts=["train", "test"]))
    first = draw_figures(outcomes, tmp_path / "a", formats=["svg"])
    again = draw_figures(outcomes[::-1], tmp_path / "b", formats=["svg"])
    assert len(first) == 8
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    assert sorted((tmp_path / "a").iterdir()) == sorted(first)


def test_one_method_on_one_set_is_drawn_where_it_can_be(tmp_path: Path) -> None:
    outcomes = [replaced(o, wasserstein2=None) for o in draws(["iris"], methods=["knn"], seeds=1)]
    paths = draw_figures(outcomes, tmp_path, formats=["png"], dpi=30)
    assert [path.name for path in paths] == ["bars-mcar-30.png", "run-times.png", "time-accuracy.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_methods_that_share_no_set_are_drawn_but_not_compared(tmp_path: Path) -> None:
    both = with_rmse_only(draws(["iris", "wine"], methods=["knn", "sinkhorn"]))
    outcomes = [o for o in both if (o.method == "knn") == (o.dataset == "iris")]
    assert [path.stem for path in draw_figures(outcomes, tmp_path, formats=["svg"])] == ["bars-mcar-30", "run-times"]
    with pytest.raises(ValueError, match="ranks need two methods"):
        draw_ranks(outcomes, "rmse")
    with pytest.raises(ValueError, match="have no data set and setting in common"):
        draw_time_accuracy(outcomes)


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="outcomes is empty"):
        draw_figures([], "nowhere")
    with pytest.raises(ValueError, match="no outcome of setting 'mcar-99'"):
        draw_bars(draws(), "mcar-99")


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    before = dict(matplotlib.rcParams)
    draw_bars(draws(), "mcar-30")
    assert dict(matplotlib.rcParams) == before


def test_an_exploding_method_is_cut_and_its_height_written() -> None:
    outcomes = [
        replaced(o, rmse=o.scores["rmse"] * 50) if (o.method, o.dataset) == ("knn", "wine") else o for o in draws(seeds=3)
    ]
    figure = draw_bars(outcomes, "mcar-30")
    height = np.mean([o.scores["rmse"] for o in outcomes if (o.method, o.dataset) == ("knn", "wine")])
    assert f"{height:.3g}" in list(texts(figure))
    assert any("bar that was cut" in text for text in texts(figure))
    _, rmse, _ = figure.axes
    assert rmse.get_ylim()[1] < 2
    assert not any("cut" in text for text in texts(draw_bars(draws(), "mcar-30")))


def test_many_bars_go_on_below_on_the_same_scale() -> None:
    datasets = [f"set{i:02d}" for i in range(23)]
    outcomes = draws(datasets, methods=KNOWN, seeds=1, parts=["train", "test"])
    for draw, n_lines in ((draw_bars, 2), (draw_out_of_sample_bars, 3)):
        axes = draw(outcomes, "mcar-30").axes
        assert len(axes) == 3 * n_lines
        ticks = [tick.get_text() for each in axes for tick in each.get_xticklabels()]
        assert ticks == datasets
        for panels in (axes[0::3], axes[1::3], axes[2::3]):  # MAE, RMSE, W2
            assert len({(each.get_xlim(), each.get_ylim(), each.get_ylabel()) for each in panels}) == 1
    assert len(draw_bars(draws(datasets, methods=KNOWN[:8], seeds=1), "mcar-30").axes) == 3


def test_bars_are_as_high_as_the_means_on_every_line() -> None:
    datasets = [f"set{i:02d}" for i in range(40)]
    outcomes = draws(datasets, methods=["mean", *OURS], seeds=1)
    rmse = draw_bars(outcomes, "mcar-30").axes[1::3]
    drawn = [path.vertices[:, 1].max() for each in rmse for path in each.collections[0].get_paths()]
    assert drawn == [o.scores["rmse"] for o in outcomes if o.method == "mean"]


def test_scores_that_were_not_computed_leave_a_dash() -> None:
    outcomes = [replaced(o, wasserstein2=None) if o.dataset == "wine" else o for o in draws()]
    outcomes = [o for o in outcomes if (o.dataset, o.method) != ("iris", "knn")]
    # One for the method that is not there in each of three panels, one for the set without the score.
    assert list(texts(draw_bars(outcomes, "mcar-30"))).count("–") == 4
    assert list(texts(draw_bars(draws(), "mcar-30"))).count("–") == 0


def test_an_axis_shows_usual_bars_with_their_spread_and_not_explosions() -> None:
    means, sds = np.array([[1.0, 0.9], [0.5, 40.0]]), np.full((2, 2), 0.1)
    tame = np.array([[1.0, 0.9], [0.5, np.nan]])
    assert axis_limit(means, sds, tame) == pytest.approx(1.04 * 1.1)
    assert axis_limit(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1))) == 1.0


def test_names_of_any_kind_can_be_drawn(tmp_path: Path) -> None:
    odd = ["_", "a$b$_{", "sinkhorn_$x", "π|<b>&", "x" * 60]
    outcomes = with_rmse_only(draws(["$", "__", "a/b"], methods=odd, seeds=1))
    assert all(path.stat().st_size for path in draw_figures(outcomes, tmp_path, formats=["svg"]))
    assert any("π|<b>&" in text for text in texts(draw_run_times(outcomes)))


def test_titles_and_captions_say_what_is_seen() -> None:
    outcomes = draws(settings=["mcar-30", "quantile_mnar-30"], methods=[*KNOWN[:2], "ice", "sinkhorn"])
    outcomes = [o for o in outcomes if o.method != "ice" or o.setting == "mcar-30"]
    said = " ".join(texts(draw_ranks(outcomes, "energy_distance"))).replace("\n", " ")
    for words in ("Average rank by energy distance", "MNAR quantile 30 %", "3 data sets, 6 pairs", "run on too few pairs: ICE"):
        assert words in said
    said = " ".join(texts(draw_out_of_sample_bars(draws(parts=["train", "test"]), "mcar-30")))
    assert "new rows" in said and "Sinkhorn (ours, defaults)" in said


def test_win_matrix_writes_wins_ties_losses() -> None:
    outcomes = draws(["iris", "wine"], methods=["mean", "sinkhorn"], seeds=1)
    assert {"2/0/0", "0/0/2"} <= set(texts(draw_wins(outcomes, "rmse")))


def lightness(color: str) -> float:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return 116 * (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]) ** (1 / 3) - 16


def test_styles_differ_in_lightness_and_marker_and_known_ones_are_fixed() -> None:
    unknown = [f"new{i}" for i in range(6)]
    styles = method_styles([*KNOWN, *unknown, "sinkhorn_a", "sinkhorn_b"])
    shades = sorted(lightness(style.color) for style in styles.values())
    assert min(np.diff(shades)) > 2.5
    assert min(np.diff(sorted(lightness(styles[method].color) for method in KNOWN))) > 3.5
    assert len({style.marker for style in styles.values()}) == len(styles)
    assert method_styles(["sinkhorn", "zebra"])["sinkhorn"] == styles["sinkhorn"]
    assert len(set(method_styles([f"new{i}" for i in range(12)]).values())) == 12


def test_front_holds_the_points_no_other_dominates() -> None:
    rng = np.random.default_rng(0)
    seconds, errors = rng.integers(1, 9, 40).astype(float), rng.integers(1, 9, 40).astype(float)
    front = set(zip(seconds[pareto_front(seconds, errors)], errors[pareto_front(seconds, errors)], strict=True))
    points = set(zip(seconds, errors, strict=True))
    assert front == {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
