/* Small manners of the site. Classic script, no requests; the pages read without it too. */

// A page opened from disk may not fetch others: search then lists titles without their extracts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A search lists chapters before functions of the same name: Sphinx takes these weights for its own.
var Scorer = {
  objNameMatch: 6, objPartialMatch: 3, objPrio: { 0: 5, 1: 0, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};

// A search's extract shows what a page says in words: not the questions of the chapter before, which wait
// in it unseen, nor hidden code, figures, formulas.
addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const unseen = ".gf-recall, #jb-print-docs-body, details.hide, nav, .gf-figure, div.math";
  const { htmlToText } = Search;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(unseen).forEach((part) => part.remove());
    page.querySelectorAll(".math").forEach((formula) => {
      formula.textContent = formula.textContent.replace(/^\\[([]|\\[)\]]$/g, "");
    });
    return htmlToText(page.documentElement.outerHTML, anchor);
  };
});

// Whatever scrolls sideways must be reachable by keyboard: also after it was opened, or made narrow.
addEventListener("load", () => {
  const mark = (frame) => {
    if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
    else frame.removeAttribute("tabindex");
  };
  const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => mark(target)));
  const frames = document.querySelectorAll("div.math, .pst-scrollable-table-container, .highlight pre");
  const drawn = window.MathJax && MathJax.startup && MathJax.startup.promise;
  Promise.resolve(drawn).then(() => frames.forEach((frame) => sizes.observe(frame)));
});

// Paper is light, whatever the screen is.
addEventListener("beforeprint", () => {
  const { dataset } = document.documentElement, { theme } = dataset;
  dataset.theme = "light";
  addEventListener("afterprint", () => (dataset.theme = theme), { once: true });
});

// The theme's names for a screen reader: a button is called what stands on it, the bar is a region.
addEventListener("load", () => {
  const each = (selector, change) => document.querySelectorAll(selector).forEach(change);
  each(".search-button-field", (button) => button.removeAttribute("aria-label"));
  each(".theme-switch", (icon) => {
    icon.removeAttribute("title");
    icon.setAttribute("aria-hidden", "true");
  });
  each("#pst-primary-sidebar", (bar) => {
    bar.setAttribute("role", "region");
    bar.setAttribute("aria-label", "The book");
  });
});
