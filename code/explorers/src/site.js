/** Entry for the site: brings every explorer of a page to life, from data that the page holds. */

import { mount } from "./kit/host.jsx";
import { PageModel } from "./kit/page.js";
import { instruments } from "./instruments/index.js";

/** Mount one explorer in place of its text alternative, which stays if that cannot be done. */
function bringToLife(place) {
  const words = place.querySelector(".gf-explorer-text");
  try {
    const given = JSON.parse(place.querySelector('script[type="application/json"]').textContent);
    const instrument = instruments[given.explorer];
    const live = document.createElement("div");
    const model = new PageModel(place.id, instrument, given);
    place.append(live);
    mount(instrument, model, live, { link: (state) => model.link(state) });
    words?.remove();
    if (model.linked) place.scrollIntoView();
  } catch (error) {
    const sorry = document.createElement("p");
    sorry.textContent = `This explorer could not start (${error.message}); here is what it shows, in words.`;
    words?.before(sorry);
  }
}

document.querySelectorAll(".gf-explorer").forEach(bringToLife);
