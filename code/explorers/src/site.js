/** The site: brings the explorers of a page to life, from data that the page holds. */

import { mount } from "./kit/host.jsx";
import { byName } from "./kit/fields.js";
import { PageModel } from "./kit/page.js";

/** Mount one explorer in place of its text alternative, which stays if that cannot be done. */
function bringToLife(place, instrument) {
  const words = place.querySelector(".gf-explorer-text"), live = document.createElement("div");
  try {
    const given = JSON.parse(place.querySelector('script[type="application/json"]').textContent);
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
