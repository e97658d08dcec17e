"""Links: those inside the built site resolve, those outside are well formed and get checked."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from chapters import ROOT
from check_links import asked, linkcheck, links_to_check
from glassformer.repository import address_of
from glassformer.site_address import pages_address
from site_links import broken_links, malformed, outside_links

PAGE = '<!doctype html><h1 id="top">t</h1><p id="part">p</p>'


def test_every_link_inside_the_site_leads_somewhere(site):
    address = pages_address(address_of(ROOT))
    assert broken_links(site, urlsplit(address).path or "/") == []


def test_every_link_out_of_the_site_is_well_formed(site):
    assert [f"{link}: {malformed(link)}" for link in outside_links(site) if malformed(link)] == []


def test_every_link_out_of_the_site_is_checked_weekly(site):
    assert set(outside_links(site)) <= set(links_to_check(site))


@pytest.mark.parametrize(
    "good",
    [
        '<a href="#part">a</a><a href="other.html#top">b</a><a href="book/">c</a>',
        '<img src="dot.svg" srcset="dot.svg 1x, dot.svg 2x"><a href="/other.html">rooted</a>',
        '<style>p { background: url("dot.svg") }</style><label for="part">l</label>',
        '<svg><use xlink:href="#part"/><a href="other.html">a</a></svg>',
        '<script type="application/json">{"page": "other.html#top"}</script>',
        '<a href="https://example.org/nowhere.html#x">outside</a><img src="data:,">',
    ],
)
def test_a_good_link_passes(tmp_path, good):
    assert broken_links(small(tmp_path, good)) == []


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ('<a href="#gone">a</a>', "no such anchor"),
        ('<a href="other.html#gone">a</a>', "no such anchor"),
        ('<a href="gone.html">a</a>', "no such file"),
        ('<a href="../../etc/hosts">a</a>', "no such file"),
        ('<img src="gone.png">', "no such file"),
        ('<img srcset="dot.svg 1x, gone.png 2x">', "no such file"),
        ('<script src="gone.js"></script>', "no such file"),
        ('<form action="gone.html"></form>', "no such file"),
        ('<meta http-equiv="Refresh" content="0; url=gone.html">', "no such file"),
        ('<p style="background: url(gone.png)">p</p>', "no such file"),
        ('<style>@import "gone.css";</style>', "no such file"),
        ('<svg><a xlink:href="gone.html"><text>a</text></a></svg>', "no such file"),
        ('<svg><use href="#gone"/></svg>', "no such anchor"),
        ('<label for="gone">l</label>', "no such anchor"),
        ('<p aria-labelledby="part gone">l</p>', "no such anchor"),
        ('<script type="application/json">{"page": "gone.html"}</script>', "no such file"),
        ('<script>const links = { ids: "other.html#gone" };</script>', "no such anchor"),
        ('<p id="part">again</p>', "two elements are called 'part'"),
    ],
)
def test_a_broken_link_is_found(tmp_path, bad, fault):
    found = broken_links(small(tmp_path, bad))
    assert len(found) == 1 and fault in found[0]


def test_links_from_a_hosts_root_begin_with_the_sites_path(tmp_path):
    site = small(tmp_path, '<a href="/course/other.html">a</a>')
    assert broken_links(site, "/course/") == [] and len(broken_links(site)) == 1


def test_a_style_sheet_that_asks_for_what_is_not_there_is_found(tmp_path):
    site = small(tmp_path, "")
    (site / "_static/sheet.css").write_text("p { background: url(../dot.svg) }")
    assert broken_links(site) == []
    (site / "_static/sheet.css").write_text("p { background: url(dot.svg) }")
    assert broken_links(site) == ["sheet.css: url(dot.svg): there is no such file"]


def small(folder, body):
    """Write a site of three pages, a picture and a folder of static files."""
    for name in ("book/index.html", "other.html", "index.html", "_static/empty.css", "dot.svg"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(PAGE if name.endswith("html") else "")
    (folder / "index.html").write_text(PAGE + body)
    return folder


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("https://arxiv.org/abs/1706.03762", ""),
        ("https://example.org/a?b=c#d", ""),
        ("http://example.org/", "is not https"),
        ("//example.org/", "is not https"),
        ("mailto:a@example.org", "is not https"),
        ("https://localhost/a", "names no public host"),
        ("https://127.0.0.1/a", "names no public host"),
        ("https://example.org:8000/", "names no public host"),
        ("https://user@example.org/", "names no public host"),
        ("https://example/", "names no public host"),
        ("https://example.org/a b", "holds a blank"),
        ("https://[example.org/", "is no address"),
        ("https://example.org/?a=1&utm_source=x", "tracks its readers: utm_source"),
        ("https://example.org/?fbclid=1", "tracks its readers: fbclid"),
    ],
)
def test_what_is_wrong_with_a_link_is_said(link, fault):
    assert malformed(link) == fault


def test_a_link_out_is_listed_with_its_page(tmp_path):
    site = small(tmp_path, '<a href="https://example.org/a?b=1&amp;c=2">a</a>')
    assert outside_links(site) == {"https://example.org/a?b=1&c=2": "index.html"}
    assert "https://example.org/a?b=1&c=2" in links_to_check(site)


def test_a_publisher_is_not_asked():
    assert asked("https://doi.org/10.1109/a") == "https://doi.org/api/handles/10.1109/a"
    assert asked("https://arxiv.org/abs/1706.03762") == "https://arxiv.org/abs/1706.03762"


def test_the_check_sees_each_link_and_fails_on_a_dead_one(tmp_path):
    """The host cannot exist: the check must fail and name the link, with a network or without."""
    dead = "https://glass.invalid/a?b=1&c=2"
    run = linkcheck([dead], tmp_path)
    assert run.returncode != 0 and dead in run.stdout
    assert linkcheck([], tmp_path / "none").returncode == 0
