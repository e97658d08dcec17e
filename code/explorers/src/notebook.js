/** Entry for notebooks: the front end of the anywidget classes in `glassformer.explorers`. */

import { mount } from "./kit/host.jsx";
import { instruments } from "./instruments/index.js";

export default {
  render({ model, el }) {
    return mount(instruments[model.get("explorer")], model, el);
  },
};
