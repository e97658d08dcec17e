"""The zip of the site, unpacked by a reader and opened from disk."""

from __future__ import annotations

import zipfile

from playwright.sync_api import expect

from glassformer.site_zip import FOLDER, zip_site


def test_the_unpacked_site_reads_without_a_network(site, visit, tmp_path):
    zip_site(site, tmp_path / "site.zip")
    with zipfile.ZipFile(tmp_path / "site.zip") as archive:
        archive.extractall(tmp_path)
    page = visit(f"{(tmp_path / FOLDER).as_uri()}/index.html")
    page.wait_for_url(lambda url: "/book/" in url)
    page.get_by_role("link", name="Data").first.click()
    page.wait_for_load_state()
    page.locator(".predict").first.get_by_role("button", name="Commit to this answer").click()
    expect(page.locator(".predict").first.get_by_role("status")).not_to_be_empty()
