/* Predictions: a form in each box that asks one, a cover over what tells its answer, what was missed,
   and the page of all of them.
   Classic script, no requests. The right answers come from the page, where the chapter put them.
   What is read from the browser's store or from a file is data: checked, and shown as text. */
"use strict";

(() => {
  const KEY = "glassformer-predictions";
  const KIND = "The Glass Transformer: predictions";
  const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)+$/;

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // What was answered, kept in this browser ------------------------------------------------------

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

  const isResult = (value) =>
    isObject(value) && typeof value.given === "string" && value.given.length <= 200 &&
    typeof value.right === "boolean";

  const isEntry = ([name, value]) =>
    NAME.test(name) && name.length <= 60 && isObject(value) &&
    isResult(value.first) && isResult(value.last);

  const trimmed = ([name, { first, last }]) => {
    const result = ({ given, right }) => ({ given, right });
    return [name, { first: result(first), last: result(last) }];
  };

  function read() {
    try {
      const answers = JSON.parse(localStorage.getItem(KEY)) ?? {};
      return new Map(isObject(answers) ? Object.entries(answers).filter(isEntry).map(trimmed) : []);
    } catch {
      return new Map(); // no store, or something else in it
    }
  }

  function write(answers) {
    try {
      localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(answers)));
      return true;
    } catch {
      return false; // the page works without; it forgets
    }
  }

  // The four kinds of answer: how each is read, and asked for again ----------------------------------

  /** Return the numbers that a text may mean: 2,944 is thousands to some, and less than three to others. */
  function toNumbers(text, unit = "") {
    let plain = text.replace(/−/g, "-").replace(/\s/g, "");
    if (unit && plain.endsWith(unit)) plain = plain.slice(0, -unit.length);
    const fraction = /^([-+]?\d+)\/(\d+)$/.exec(plain);
    if (fraction) return [fraction[1] / fraction[2]].filter(Number.isFinite);
    const readings = [plain];
    if (/^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(plain)) readings.push(plain.replace(/,/g, ""));
    if (/^[-+]?\d+,\d+$/.test(plain)) readings.push(plain.replace(",", "."));
    const isNumber = (reading) => /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(reading);
    return readings.filter(isNumber).map(Number).filter(Number.isFinite);
  }

  function toShape(text) {
    const sizes = /^\s*[[(]?\s*(\d+(?:\s*[\s,x×*]\s*\d+)*)\s*,?\s*[\])]?\s*$/.exec(text);
    return sizes ? sizes[1].split(/[^\d]+/).map(Number) : null;
  }

  const KINDS = {
    choice: {
      value: (text, { choices }) => (choices.includes(text) ? text : null),
      ask: "Choose an answer first.",
    },
    token: {
      value: (text, { among }) => (among.includes(text) ? text : null),
      ask: "Choose a token first.",
    },
    number: {
      value(text, { unit, right }) {
        const off = (number) => Math.abs(number - right);
        return toNumbers(text, unit).sort((one, other) => off(one) - off(other))[0] ?? null;
      },
      ask: "Write a number, such as 12 or 0.5.",
      hint: "a number",
    },
    shape: {
      value: toShape,
      ask: "Write a shape, one whole number for each axis, such as [2, 3].",
      hint: "a shape, such as [2, 3]",
    },
  };

  function same({ kind }, one, other, within = 0) {
    if (kind === "shape") return one.join() === other.join();
    return kind === "number" ? Math.abs(one - other) <= within : one === other;
  }

  /** Judge an answer: null if it cannot be read, else whether it is right, and what it overlooks. */
  function judge(data, given) {
    const value = KINDS[data.kind].value(given, data);
    if (value === null) return null;
    const near = (wrong) => (data.within ? 0.05 * Math.abs(wrong) : 0); // 0.05 is meant for 1/19, too
    const likely = data.likely.find(([wrong]) => same(data, value, wrong, near(wrong)));
    return { right: same(data, value, data.right, data.within), sentence: likely?.[1] ?? "" };
  }

  // What tells an answer: outputs between the question and the cell that asks it ------------------------

  /** Cover what tells the answer to a question, until it is answered or the result is asked for. */
  function cover(name, title) {
    const named = (textContent) => ({ textContent, ariaLabel: `${textContent}: ${title}` });
    for (const output of document.querySelectorAll(`.gf-tells-${name}`)) {
      const link = element("a", { href: `#${name}`, ...named("Answer first") });
      const button = element("button", { type: "button", ...named("show it") });
      button.addEventListener("click", () => {
        output.querySelectorAll(".gf-veil").forEach((veil) => uncover(veil.dataset.question));
        output.tabIndex = -1;
        output.focus({ preventScroll: true });
      });
      const veil = element("div", { className: "gf-veil" }, element("span", {}, link, ", or ", button));
      veil.dataset.question = name;
      output.prepend(veil); // the style sheet hides what follows it
    }
  }

  const uncover = (name) =>
    document.querySelectorAll(`.gf-veil[data-question="${name}"]`).forEach((veil) => veil.remove());

  // One box ------------------------------------------------------------------------------------------

  /** Return what asks for the answer: what stands in the form, and how it is read and set. */
  function field(box, data) {
    const list = box.querySelector("ul.contains-task-list");
    if (data.kind === "choice") {
      const radios = [...list.querySelectorAll("input")];
      const get = () => data.choices[radios.findIndex((radio) => radio.checked)] ?? "";
      const set = (given) => radios.forEach((radio, i) => (radio.checked = data.choices[i] === given));
      const mark = (on) => list.querySelectorAll("li").forEach((item, i) => {
        item.classList.toggle("gf-is-right", on && data.choices[i] === data.right);
        item.classList.toggle("gf-is-wrong", on && radios[i].checked && data.choices[i] !== data.right);
      });
      return { shown: [list], first: radios[0], get, set, mark };
    }
    const input = data.kind === "token" ? tokens(data) : written(data);
    const label = element("label", { className: "gf-field" },
      element("span", { textContent: "Your prediction" }), input);
    if (data.unit) label.append(element("span", { textContent: data.unit }));
    const set = (given) => (input.value = given);
    return { shown: [label], first: input, get: () => input.value.trim(), set, mark() {} };
  }

  const tokens = ({ among }) => element("select", { autocomplete: "off" },
    element("option", { value: "", textContent: "choose a token" }),
    ...among.map((token) => element("option", { value: token, textContent: token })));

  const written = ({ kind }) => element("input", {
    type: "text", autocomplete: "off", spellcheck: false, maxLength: 60, placeholder: KINDS[kind].hint,
  });

  /** Make a form of a box; `remembering` shows what was answered before. */
  function enliven(script, remembering) {
    const box = script.parentElement, data = JSON.parse(script.textContent);
    const answer = box.querySelector("details");
    const { shown, first, get, set, mark } = field(box, data);
    const legend = element("legend", { textContent: box.firstElementChild.textContent });
    const fieldset = element("fieldset", {}, legend, ...shown);
    const commit = element("button", { type: "submit", textContent: "Commit to this answer" });
    const again = element("button", { type: "button", textContent: "Answer again", hidden: true });
    const verdict = element("p", { className: "gf-verdict" });
    verdict.setAttribute("role", "status");
    const form = element("form", { className: "gf-question", noValidate: true },
      fieldset, commit, verdict, again);

    function show(given, { right, sentence }) {
      set(given);
      mark(true);
      fieldset.disabled = commit.hidden = true;
      again.hidden = false;
      box.dataset.state = right ? "right" : "wrong";
      const word = element("strong", { textContent: right ? "✓ Right." : "✗ Not quite." });
      verdict.replaceChildren(word, right ? "" : ` ${sentence}`);
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (fieldset.disabled) return;
      const given = get(), judged = judge(data, given);
      if (!judged) {
        verdict.textContent = KINDS[data.kind].ask;
        first.focus();
        return;
      }
      const answers = read(), result = { given, right: judged.right };
      answers.set(data.name, { first: answers.get(data.name)?.first ?? result, last: result });
      write(answers);
      show(given, judged);
      uncover(data.name);
      answer.open = true;
      again.focus({ preventScroll: true });
    });
    again.addEventListener("click", () => {
      set("");
      mark(false);
      delete box.dataset.state;
      verdict.replaceChildren();
      fieldset.disabled = commit.hidden = answer.open = false;
      again.hidden = true;
      first.focus();
    });

    answer.before(form);
    box.classList.add("gf-live");
    box.dataset.question = data.name;
    const before = remembering && read().get(data.name);
    const judged = before && judge(data, before.last.given);
    if (judged) show(before.last.given, judged);
    else cover(data.name, legend.textContent.replace(/^Predict: /, ""));
  }

  // What was missed in the chapter before --------------------------------------------------------------

  function recall(part) {
    const answers = read();
    for (const script of part.querySelectorAll(".predict > script")) {
      const missed = answers.get(JSON.parse(script.textContent).name)?.last.right === false;
      if (missed) part.hidden = false;
      else script.parentElement.remove();
    }
  }

  // The page of all predictions -------------------------------------------------------------------------

  function stateOf(entry) {
    if (!entry) return ["open", "not answered"];
    if (!entry.last.right) return ["wrong", entry.first.right ? "✗ missed the last time" : "✗ missed"];
    return ["right", entry.first.right ? "✓ right at the first try" : "✓ right, but not at the first try"];
  }

  function count(items, answers) {
    const entries = items.map((item) => answers.get(item.dataset.question)).filter(Boolean);
    const first = entries.filter((entry) => entry.first.right).length;
    const missed = entries.filter((entry) => !entry.last.right).length;
    return `${entries.length} of ${items.length} answered: ` +
      `${first} right at the first try, ${missed} still missed.`;
  }

  function progress(part) {
    const all = [...part.querySelectorAll("li[data-question]")];
    const summary = element("p", { className: "gf-progress-summary" });
    const note = element("p", { className: "gf-verdict" });
    note.setAttribute("role", "status");
    const counts = new Map([...part.querySelectorAll("ul")].map((list) => {
      const line = element("p", { className: "gf-progress-count" });
      list.before(line);
      return [list, line];
    }));

    function refresh() {
      const answers = read();
      summary.textContent = count(all, answers);
      counts.forEach((line, list) => (line.textContent = count([...list.children], answers)));
      for (const item of all) {
        const [state, words] = stateOf(answers.get(item.dataset.question));
        item.dataset.state = state;
        item.querySelector(".gf-progress-state").textContent = words;
      }
    }

    const button = (textContent, act) => {
      const made = element("button", { type: "button", textContent });
      made.addEventListener("click", act);
      return made;
    };
    const told = (text) => {
      note.textContent = text;
      refresh();
    };
    const file = element("input", { type: "file", accept: ".json,application/json", hidden: true });
    file.addEventListener("change", async () => {
      if (file.files.length) told(await take(file.files[0]));
      file.value = "";
    });
    const sure = "Clear all predictions kept in this browser? This cannot be undone.";
    part.prepend(summary, element("p", { className: "gf-progress-buttons" },
      button("Export to a file", () => (store(read()), told("Your predictions are in a file now."))),
      button("Import from a file", () => file.click()),
      button("Clear all", () => confirm(sure) && told(clear()))), file, note);
    refresh();
    addEventListener("storage", refresh); // answered in another tab
  }

  const NOT_KEPT = "This browser keeps nothing for this page: allow it to store data for the site.";

  const clear = () => (write(new Map()) ? "All predictions are cleared." : NOT_KEPT);

  function store(answers) {
    const text = JSON.stringify({ kind: KIND, version: 1, answers: Object.fromEntries(answers) }, null, 1);
    const href = `data:application/json;charset=utf-8,${encodeURIComponent(text)}`;
    element("a", { href, download: "glass-transformer-predictions.json" }).click();
  }

  /** Take over the predictions of a file; return a sentence that says what came of it. */
  async function take(file) {
    const wrong = "holds no predictions that this page has exported: choose another file.";
    let entries = null;
    try {
      const data = file.size < 1e6 ? JSON.parse(await file.text()) : null;
      if (isObject(data) && data.kind === KIND && data.version === 1 && isObject(data.answers))
        entries = Object.entries(data.answers);
    } catch {
      // not JSON, or not readable: the same sentence
    }
    if (!entries?.every(isEntry)) return `“${file.name}” ${wrong}`;
    const kept = write(new Map([...read(), ...entries.map(trimmed)]));
    return kept ? `Predictions taken over from “${file.name}”: ${entries.length}.` : NOT_KEPT;
  }

  document.querySelectorAll(".gf-recall").forEach(recall);
  document.querySelectorAll(".predict > script[type='application/json']").forEach((script) =>
    enliven(script, !script.closest(".gf-recall")));
  document.querySelectorAll(".gf-progress").forEach(progress);
})();
