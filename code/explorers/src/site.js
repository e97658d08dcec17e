/** The site: brings the explorers of a page to life, from data that the page holds. */

import { mount } from "./kit/host.jsx";
import { byName } from "./kit/fields.js";
import { PageModel } from "./kit/page.js";

/** Mount one explorer in place of its text alternative, which stays if that cannot be done. */
async function bringToLife(place, instrument) {
  const words = place.querySelector(".gf-explorer-text"), live = document.createElement("div");
  try {
    const given = JSON.parse(place.querySelector('script[type="application/json"]').textContent);
    const late = waiting(given.data);
    if (late.length) await near(place).then(() => Promise.all(late.map(load)));
    const model = new PageModel(place.id, instrument, given);
    place.append(live);
    mount(instrument, model, live, { link: (state) => model.link(state) });
    words?.remove();
    if (model.linked) place.scrollIntoView();
    addEventListener("hashchange", () => model.follow() && place.scrollIntoView());
  } catch (error) {
    live.remove();
    const sorry = document.createElement("p");
    sorry.textContent = `This explorer could not start (${error.message}); here is what it shows, in words.`;
    words?.before(sorry);
  }
}

/** Return the page's scripts of shared parts that are too heavy to load before they are needed. */
function waiting(data) {
  const scripts = [...document.querySelectorAll("script[data-part]")];
  return scripts.filter(({ dataset }) => data[dataset.part] === null);
}

/** Wait until a place is in view or a screen away; a link to it leads there. */
async function near(place) {
  const go = () => location.hash.startsWith(`#${place.id}?`) && place.scrollIntoView();
  go();
  addEventListener("hashchange", go);
  await new Promise((done) => {
    const watch = new IntersectionObserver((met) => {
      if (!met.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      done();
    }, { rootMargin: "100% 0px" });
    watch.observe(place);
  });
  removeEventListener("hashchange", go);
}

const loads = new Map(); // of the scripts of parts, each once

/** Run a script that the page names, of a type that no browser runs by itself. */
function load({ src }) {
  if (!loads.has(src)) {
    loads.set(src, new Promise((done, failed) => {
      const script = document.createElement("script");
      script.onload = done;
      script.onerror = () => failed(new Error("its model did not load: reload the page"));
      script.src = src;
      document.head.append(script);
    }));
  }
  return loads.get(src);
}

/**
 * Bring to life every explorer of the page that is one of these instruments.
 * @param {Object<string, object>} exported
 */
export function start(exported) {
  const instruments = byName(exported);
  for (const place of document.querySelectorAll(".gf-explorer")) {
    const { explorer } = place.dataset;
    if (Object.hasOwn(instruments, explorer)) bringToLife(place, instruments[explorer]);
  }
}
