/** A component that is drawn again only if what it is given has changed. */

import { Component } from "preact";

/** Return a component that skips drawing while its properties, lists of labels included, stay the same. */
export function memo(View) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return Object.keys({ ...this.props, ...next }).some((name) => !alike(this.props[name], next[name]));
    }

    render(props) {
      return <View {...props} />;
    }
  };
}

function alike(a, b) {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, n) => item === b[n]);
  return a === b;
}
