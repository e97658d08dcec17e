"""Widgets in a real JupyterLab: Python moves the view, the view moves Python."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

COUNTER = '''
import anywidget, traitlets

class Counter(anywidget.AnyWidget):
    count = traitlets.Int(0).tag(sync=True)
    _esm = """
    export default {
      render({ model, el }) {
        const button = document.createElement("button");
        const show = () => (button.textContent = `count ${model.get("count")}`);
        button.addEventListener("click", () => {
          model.set("count", model.get("count") + 1);
          model.save_changes();
        });
        model.on("change:count", show);
        show();
        el.append(button);
      },
    };
    """

counter = Counter()
counter
'''


def test_a_trait_set_in_python_moves_the_view_and_the_view_moves_the_trait(notebook):
    area, _ = notebook.run(COUNTER)
    button = area.get_by_role("button", name="count")
    expect(button).to_have_text("count 0")
    notebook.run("counter.count = 41")
    expect(button).to_have_text("count 41")
    button.click()
    expect(button).to_have_text("count 42")
    assert notebook.run("print(counter.count)")[1] == "42\n"


def test_a_stock_widget_goes_both_ways(notebook):
    area, _ = notebook.run("import ipywidgets\nbox = ipywidgets.IntText(3, description='n')\nbox")
    entry = area.locator("input[type=number]")
    expect(entry).to_have_value("3")
    notebook.run("box.value = 7")
    expect(entry).to_have_value("7")
    entry.fill("12")
    entry.press("Enter")
    assert notebook.run("print(box.value)")[1] == "12\n"


def test_the_kernel_has_the_package_and_a_cell_that_raises_is_seen(notebook):
    source = "from glassformer.models import BabyGrootGPT\nprint(BabyGrootGPT(24, 4).max_len)"
    assert notebook.run(source)[1] == "4\n"
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        notebook.run("1 / 0")


@pytest.mark.parametrize("name", ["dark", "light"])
def test_the_theme_can_be_turned(notebook, name):
    notebook.theme(name)
    ground = notebook.page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(","))) < 3 * 128
    assert dark == (name == "dark")
