/** Ids that are unique on a page, however many explorers it holds. */

import { createContext } from "preact";
import { useContext, useId as useOwnId } from "preact/hooks";

/** What sets the ids of one explorer apart from those of the others. */
export const Place = createContext("");

/** Return an id that no other element of the page has. */
export function useId() {
  return `${useContext(Place)}${useOwnId()}`;
}
