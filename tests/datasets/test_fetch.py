"""Downloads from a server that stumbles, lies or is slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from otimpute.datasets import DatasetUnavailableError
from otimpute.datasets.card import Card
from otimpute.datasets.download import Patience, download
from otimpute.datasets.fetch import fetch
from otimpute.datasets.source import Source


def quiet(received: int, announced: int | None) -> None:
    pass


def test_a_good_file_is_read_at_the_first_try(site, card: Card, table: bytes, patience: Patience, pauses) -> None:
    source = Source(site.put("/tiny", table))
    values = fetch(card, [source], patience)
    np.testing.assert_array_equal(values, [[1.5, 0.1], [-2.0, 1e-5], [0.0, 3.0]])
    assert site.asked == ["/tiny"]
    assert pauses == []


@pytest.mark.parametrize(
    "stumble",
    [
        {"body": b"1.5,0.1,label\n", "announced": 49},
        {"status": 500},
        {"status": 503, "body": b"busy"},
        {"status": 429},
    ],
    ids=["truncated", "500", "503", "429"],
)
def test_failures_that_may_pass_are_tried_again_after_longer_pauses(
    stumble, site, card: Card, table: bytes, patience: Patience, pauses
) -> None:
    source = Source(site.put("/tiny", stumble, stumble, table))
    card.check(fetch(card, [source], patience))
    assert len(site.asked) == 3
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("reply", "reason", "tries"),
    [
        ({"status": 404}, "404", 1),
        ({"status": 403}, "403", 1),
        ({"status": 500}, "500", 3),
        ({"body": b"1.5,0.1\n", "announced": 999}, "broke off after 8 of 999 bytes", 3),
        (b"1.5,0.1\n-2,0.00001\n0,3.1\n", "checksum of its values must be", 1),
        (b"1.5,0.1\n-2,0.00001\n", "3 rows and 2 columns, got 2 and 2", 1),
        (b"1.5,0.1\n-2,nan\n0,3\n", "missing or infinite", 1),
        (b"<html>sign in first</html>", "1 values instead of 2", 1),
        (b"", "3 rows and 2 columns, got 0 and 2", 1),
    ],
    ids=["404", "403", "500", "truncated", "value", "short", "nan", "page", "empty"],
)
def test_a_source_that_fails_is_named_with_its_reason(
    reply, reason: str, tries: int, site, card: Card, patience: Patience
) -> None:
    source = Source(site.put("/tiny", reply))
    with pytest.raises(DatasetUnavailableError) as raised:
        fetch(card, [source], patience)
    message = str(raised.value)
    assert f"- {source.url}: " in message
    assert reason in message
    assert len(site.asked) == tries


def test_the_error_lists_every_source_and_tells_what_to_do_by_hand(site, card: Card, patience: Patience) -> None:
    sources = [Source(site.put("/a", {"status": 404})), Source(site.put("/b", b"nonsense"))]
    with pytest.raises(DatasetUnavailableError) as raised:
        fetch(card, sources, patience)
    message = str(raised.value)
    for part in ("'tiny'", "/a: ", "/b: ", card.source, "tiny.csv", "home", "data_home", "OTIMPUTE_DATA", "height,weight"):
        assert part in message


def test_the_next_source_is_used_when_one_fails(site, card: Card, table: bytes, patience: Patience) -> None:
    gone, wrong = Source(site.put("/gone", {"status": 404})), Source(site.put("/wrong", b"1,2\n"))
    good = Source(site.put("/good", table))
    card.check(fetch(card, [gone, wrong, good, gone], patience))
    assert site.asked == ["/gone", "/wrong", "/good"]


def test_a_silent_server_is_given_up(site, patience: Patience, pauses) -> None:
    url = site.put("/slow", {"body": b"late", "silence": 0.6})
    with pytest.raises(TimeoutError):
        download(url, replace(patience, silence=0.1, tries=2), quiet)
    assert pauses == [1.0]


def test_a_dripping_server_is_given_up(site, patience: Patience) -> None:
    url = site.put("/drip", {"body": b"." * 1000, "drip": 0.02})
    with pytest.raises(TimeoutError, match=r"more than 0\.1 s"):
        download(url, replace(patience, transfer=0.1, tries=1), quiet)


def test_a_server_that_is_not_there_is_given_up(site, patience: Patience, pauses) -> None:
    site.stop()
    with pytest.raises(OSError, match="refused"):
        download(f"{site.address}/tiny", patience, quiet)
    assert len(pauses) == 2


def test_more_bytes_than_the_limit_are_not_read(site, patience: Patience) -> None:
    url = site.put("/big", b"." * 500_000)
    seen: list[int] = []
    with pytest.raises(ValueError, match="more than 100000 bytes"):
        download(url, patience, lambda received, announced: seen.append(received), max_bytes=100_000)
    assert seen[-1] < 200_000
    assert len(site.asked) == 1


def test_redirections_on_the_web_are_followed(site, patience: Patience) -> None:
    site.put("/new", b"here")
    assert download(site.put("/old", {"status": 302, "location": "/new"}), patience, quiet) == b"here"


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,1"])
def test_only_the_web_is_opened(url: str, site, patience: Patience) -> None:
    with pytest.raises(OSError, match="unknown url type"):
        download(url, patience, quiet)
    with pytest.raises(OSError, match=r"unknown url type|not allowed"):
        download(site.put("/away", {"status": 302, "location": url}), patience, quiet)


def test_reports_count_the_bytes_that_came(site, patience: Patience) -> None:
    seen: list[tuple[int, int | None]] = []
    download(site.put("/x", b"." * 300_000), patience, lambda *report: seen.append(report))
    assert seen[-1] == (300_000, 300_000)
    assert [received for received, _ in seen] == sorted(received for received, _ in seen)


def test_a_progress_bar_is_drawn_on_the_error_stream_only_if_wanted(
    site, card: Card, table: bytes, patience: Patience, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    source = Source(site.put("/tiny", table))
    fetch(card, [source], patience)
    assert capsys.readouterr() == ("", "")
    fetch(card, [source], patience, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "tiny" in shown.err
