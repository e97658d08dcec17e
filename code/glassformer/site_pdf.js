/* Makes one book of the site's pages, in an empty page of Chromium: see site_pdf.py.

   Every id gets the name of its page in front, so that two chapters may use the same; links between
   pages become links inside the book; what needs a mouse becomes what can be read. */
"use strict";

globalThis.glassformerBook = (() => {
  const REFERRING = ["for", "aria-labelledby", "aria-describedby", "aria-controls"];
  const ON_SCREEN_ONLY = [
    "script", ".headerlink", ".gf-recall", ".gf-explorer > script", "button", ".toggle-details",
    ".sd-summary-state-marker", ".gf-on-screen",
  ].join(",");

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const nameOf = (path) => path.replace(/^.*\//, "").replace(/\.html$/, "");
  const wait = (event) => new Promise((done, failed) => {
    event.onload = done;
    event.onerror = () => failed(new Error(`${event.src ?? event.href} cannot be read: run \`make book\``));
  });

  // One page of the site becomes one chapter ---------------------------------------------------------

  /** Put the page's name before each id and whatever refers to it; ids that come twice go. */
  function prefixIds(article, name) {
    const seen = new Set();
    for (const node of article.querySelectorAll("[id]")) {
      if (seen.has(node.id)) node.removeAttribute("id");
      else seen.add(node.id), (node.id = `${name}.${node.id}`);
    }
    for (const node of article.querySelectorAll("*"))
      for (const { name: attribute, value } of [...node.attributes]) {
        if (/url\(#/.test(value)) node.setAttribute(attribute, value.replace(/url\(#/g, `url(#${name}.`));
        else if (REFERRING.includes(attribute))
          node.setAttribute(attribute, value.split(/\s+/).map((id) => `${name}.${id}`).join(" "));
      }
  }

  /** Point a link at its place in the book; one to a page that the book leaves out becomes text. */
  function relink(node, attribute, base, chapters) {
    const value = node.getAttribute(attribute);
    const target = new URL(value, base);
    if (target.protocol !== base.protocol) return; // another site's: it stays as it is
    const name = chapters.get(target.pathname);
    if (name) node.setAttribute(attribute, `#${name}${target.hash.replace("#", ".")}`);
    else node.removeAttribute(attribute);
  }

  function relinkAll(article, base, chapters) {
    for (const node of article.querySelectorAll("a, use")) // in SVG, too
      for (const attribute of ["href", "xlink:href"])
        if (node.hasAttribute(attribute)) relink(node, attribute, base, chapters);
    for (const node of article.querySelectorAll("[src]"))
      node.setAttribute("src", new URL(node.getAttribute("src"), base).href);
  }

  /** Write a prediction's choices as a list with letters, or leave a line to write on. */
  function askOnPaper(box, form) {
    const list = box.querySelector(":scope > ul.contains-task-list");
    list?.querySelectorAll("input").forEach((input, place) =>
      input.replaceWith(element("span", { className: "gf-letter", textContent: "ABCDEFGH"[place] })));
    const answer = box.querySelector(":scope > details");
    if (!list && form) {
      const unit = form.unit ? ` ${form.unit}` : "";
      const line = element("p", { className: "gf-line", textContent: "Your prediction" }, element("span"), unit);
      answer?.before(line);
    }
  }

  /** Write the list of all predictions with their pages. */
  function listOnPaper(article) {
    for (const title of article.querySelectorAll(".gf-progress h2"))
      title.replaceWith(element("p", { className: "rubric" }, ...title.childNodes)); // not of the contents
    for (const link of article.querySelectorAll(".gf-progress li > a")) {
      link.nextElementSibling?.remove();
      link.after(pageOf(link.hash.slice(1)));
    }
  }

  /** Let a figure be one picture, with its alternative, to those who do not see it. */
  function flatten(figure) {
    const drawn = figure.querySelector("svg");
    drawn.setAttribute("role", "img");
    figure.replaceWith(element("div", { className: "gf-figure" }, element("div", { className: "gf-figure-frame" }, drawn)));
  }

  /** Return the article of a page as a chapter of the book. */
  function chapter({ name, page, base }, chapters) {
    const article = page.querySelector("article");
    for (const box of article.querySelectorAll(".predict")) {
      const data = box.querySelector(":scope > script");
      askOnPaper(box, data && JSON.parse(data.textContent));
    }
    article.querySelectorAll(ON_SCREEN_ONLY).forEach((node) => node.remove());
    article.querySelectorAll("details").forEach((details) => (details.open = true));
    article.querySelectorAll(".toggle, .dropdown").forEach((box) => box.classList.remove("toggle", "dropdown"));
    article.querySelectorAll("figure.gf-figure").forEach(flatten);
    article.querySelectorAll("[tabindex]").forEach((frame) => frame.removeAttribute("tabindex"));
    for (const place of article.querySelectorAll("span[id]:empty"))
      if (/^H\d$/.test(place.nextElementSibling?.tagName)) place.nextElementSibling.prepend(place);
    prefixIds(article, name);
    relinkAll(article, base, chapters);
    listOnPaper(article);
    const made = element("section", { className: "gf-chapter bd-article", id: name });
    made.style.page = `gf-${name}`;
    made.append(...article.childNodes);
    return made;
  }

  // The whole ----------------------------------------------------------------------------------------

  /** Return the site's pages in the order of its own list: { name, base, page, part }. */
  function inOrder(root, pages) {
    const parse = (path) => new DOMParser().parseFromString(pages[path], "text/html");
    const top = new URL(".", location);
    const first = { name: nameOf(root), base: new URL(root, top), page: parse(root), part: "" };
    const rows = [first];
    let part = "";
    for (const node of first.page.querySelectorAll(".bd-links .caption, .bd-links .toctree-l1 > a")) {
      const base = node.href === undefined ? null : new URL(node.getAttribute("href"), first.base);
      const path = base && base.pathname.slice(top.pathname.length);
      if (!base) part = node.textContent.trim();
      else if (path in pages && base.pathname !== first.base.pathname)
        rows.push({ name: nameOf(path), base, page: parse(path), part });
    }
    return rows;
  }

  /** Load every style sheet that a page of the site uses, once, and its own. */
  async function loadStyles(rows) {
    const hrefs = rows.flatMap(({ page, base }) =>
      [...page.querySelectorAll('link[rel~="stylesheet"]')].map((link) =>
        new URL(link.getAttribute("href"), base).href));
    const once = new Map(hrefs.map((href) => [href.split("?")[0], href])); // whatever their age
    const links = [...once.values()].map((href) => element("link", { rel: "stylesheet", href }));
    document.head.append(...links);
    await Promise.all(links.map(wait));
  }

  const heading = (node) => node.textContent.trim().replace(/\s+/g, " ");
  const entry = (level, id, text) => element("li", { className: `gf-entry gf-level-${level}` },
    element("a", { href: `#${id}` }, text, pageOf(id)));

  /** Return where the number of the page is to stand that a place comes to be on. */
  function pageOf(id) {
    const made = element("span", { className: "gf-page-number" });
    made.dataset.of = id;
    return made;
  }

  /** Return the contents: parts, chapters and their sections, with room for page numbers. */
  function contents(rows, chapters) {
    const list = element("ul");
    let part = "";
    chapters.forEach((made, place) => {
      if (rows[place].part !== part)
        list.append(element("li", { className: "gf-part", textContent: (part = rows[place].part) }));
      for (const node of made.querySelectorAll("h1, h2")) {
        node.id ||= `${made.id}.heading-${list.childElementCount}`;
        list.append(entry(node.tagName[1], node.id, heading(node)));
      }
    });
    return element("nav", { className: "gf-contents bd-article", ariaLabel: "Contents" },
      element("h1", { textContent: "Contents" }), list);
  }

  /** Write each chapter's title at the head of its pages. */
  function runningHeads(title, chapters) {
    const quoted = (text) => JSON.stringify(text === title ? "" : text);
    return chapters.map((made) => `@page gf-${made.id} { @top-left { content: ${JSON.stringify(title)} }
      @top-right { content: ${quoted(heading(made.querySelector("h1")))} } }`).join("\n");
  }

  /** Return where a link of the book leads in vain, if one does. */
  function lostLink() {
    const targets = [...document.querySelectorAll("a")].map((link) =>
      link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? "");
    return targets.find((target) =>
      target.startsWith("#") && !document.getElementById(decodeURIComponent(target.slice(1))));
  }

  function titlePage(title, author, rows, cover) {
    const question = rows[0].page.querySelector("article section > p");
    const page = element("header", { className: "gf-title-page" }, element("p", { className: "gf-title", textContent: title }));
    if (question) page.append(element("p", { className: "gf-question-asked", textContent: heading(question) }));
    page.insertAdjacentHTML("beforeend", cover);
    page.append(element("p", { className: "gf-author", textContent: author }));
    return page;
  }

  /** Make the book; return the names of its chapters. */
  async function assemble({ root, pages, title, author, cover }) {
    const rows = inOrder(root, pages);
    const names = new Map(rows.map(({ base, name }) => [base.pathname, name]));
    await loadStyles(rows);
    document.title = title;
    const front = titlePage(title, author, rows, cover);
    const chapters = rows.map((row) => chapter(row, names));
    document.head.append(element("style", { textContent: runningHeads(title, chapters) }));
    document.body.append(element("main", { className: "gf-book" }, front, contents(rows, chapters), ...chapters));
    const lost = lostLink();
    if (lost) throw new Error(`a link leads to ${lost}, which is nowhere: mend it and run \`make book\``);
    drawPatterns();
    await loadMathematics(rows);
    return chapters.map((made) => made.id);
  }

  // Hatching ------------------------------------------------------------------------------------------

  const svg = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  /** Draw what is filled with a pattern line by line: printed, a pattern would become pixels. */
  function drawPatterns() {
    document.querySelectorAll('.gf-book svg [style*="fill:url(#"]').forEach((shape, place) => {
      const id = /fill:url\(#([^)]+)\)/.exec(shape.getAttribute("style"))[1];
      const pattern = document.getElementById(id), box = shape.getBBox();
      const wide = pattern.width.baseVal.value, high = pattern.height.baseVal.value;
      const clip = svg("clipPath", { id: `hatching-${place}` }, svg("path", { d: shape.getAttribute("d") }));
      const lines = svg("g", { "clip-path": `url(#${clip.id})` });
      for (let x = Math.floor(box.x / wide) * wide; x < box.x + box.width; x += wide)
        for (let y = Math.floor(box.y / high) * high; y < box.y + box.height; y += high)
          lines.append(svg("g", { transform: `translate(${x} ${y})` },
            ...[...pattern.children].map((line) => line.cloneNode())));
      shape.replaceWith(clip, lines);
    });
  }

  // Mathematics --------------------------------------------------------------------------------------

  /** Load MathJax as the site's pages do, if one of them needs it; it draws when it is asked to. */
  async function loadMathematics(rows) {
    const needing = rows.find(({ page }) => page.querySelector('script[src*="tex-svg"]'));
    if (!needing) return;
    const settings = [...needing.page.querySelectorAll("script")]
      .map((script) => script.textContent).find((text) => /^window\.MathJax = /.test(text));
    globalThis.MathJax = JSON.parse(settings.replace(/^window\.MathJax = /, ""));
    MathJax.startup = { typeset: false };
    const src = needing.page.querySelector('script[src*="tex-svg"]').getAttribute("src");
    const script = element("script", { src: new URL(src, needing.base).href });
    document.head.append(script);
    await wait(script);
    await MathJax.startup.promise;
  }

  /** Draw the formulas of a chapter; return how many there are, and those that could not be drawn. */
  async function draw(name) {
    const formulas = [...document.getElementById(name).querySelectorAll(".math")];
    const sources = formulas.map((formula) => formula.textContent.trim());
    if (formulas.length) await MathJax.typesetPromise(formulas);
    const failed = sources.filter((_, place) => !formulas[place].querySelector("mjx-container svg") ||
      formulas[place].querySelector("[data-mml-node=merror]"));
    formulas.forEach((formula, place) => nameFormula(formula, sources[place]));
    return { count: formulas.length, failed };
  }

  /** Let a formula be read as its source, where it can only be seen. */
  function nameFormula(formula, source) {
    const drawn = formula.querySelector("mjx-container svg");
    formula.querySelector("mjx-assistive-mml")?.remove();
    drawn?.removeAttribute("aria-hidden");
    drawn?.setAttribute("role", "img");
    drawn?.setAttribute("aria-label", source.replace(/^\\[([]\s*|\s*\\[\])]$/g, ""));
  }

  // Page numbers -------------------------------------------------------------------------------------

  /** Write the numbers of the pages where they are to stand. */
  function number(pages) {
    for (const place of document.querySelectorAll(".gf-page-number"))
      place.textContent = pages[place.dataset.of] ?? "";
  }

  return { assemble, draw, number };
})();
