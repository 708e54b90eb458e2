"""The Experiments page in a browser: predict, see, reload, start the runs, stop them."""

from playwright.sync_api import expect

from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle

SLOW = 120_000  # ms; training is niced, so a busy machine makes it wait


def test_a_prediction_uncovers_the_result_and_the_runs_start_and_stop(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, server.url + "/experiments?study=held-out")
    expect(page.get_by_role("button", name="Run it here")).to_be_disabled()
    page.get_by_text("It turns and rises").click()
    page.get_by_role("button", name="This is my prediction").click()
    expect(page.get_by_text("What came: as predicted")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.locator(".st-key-experiments_shipped_held-out .js-plotly-plot")).to_be_visible()
    assert not axe(page)
    page.reload()
    expect(page.get_by_text("What came: as predicted")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("button", name="Run it here").click()
    expect(page.get_by_text("20 stories: running")).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible(timeout=SLOW)
    settle(page)
    no_exception(page)
