/* Cards of terms and symbols: shown by hover, by keyboard focus and by a tap, one at a time.

   Every link `.gf-term` is described by its card, which stands at the end of the chapter, in
   `.gf-cards`. Without this script the link leads to its entry. Classic script, no requests. */

"use strict";

(() => {
  if (!HTMLElement.prototype.showPopover) return; // an older browser follows the link

  const LINGER = 250; // milliseconds: to pass over a link, or to cross from it to its card
  const ROOM = 8; // pixels left free around a card
  let shown = null; // the link whose card is open
  let waiting = 0;

  const cardOf = (link) => document.getElementById(link.getAttribute("aria-describedby"));
  const part = (event, kind) => event.target instanceof Element && event.target.closest(kind);
  const later = (what) => {
    clearTimeout(waiting);
    waiting = setTimeout(what, LINGER);
  };

  const hide = () => {
    clearTimeout(waiting);
    if (!shown) return;
    const card = cardOf(shown);
    card.querySelector(".gf-card-more")?.remove();
    card.hidePopover();
    shown = null;
  };

  // Below the link, or above it where there is more room; never beyond the window's sides.
  const place = (link, card, at) => {
    const boxes = [...link.getClientRects()];
    const box = boxes.find((b) => at && at.clientY >= b.top && at.clientY <= b.bottom) ?? boxes[0];
    const { clientWidth, clientHeight } = document.documentElement;
    const left = Math.min(box.left, clientWidth - card.offsetWidth - ROOM);
    const below = box.bottom + ROOM / 2;
    const above = box.top - card.offsetHeight - ROOM / 2;
    const fits = below + card.offsetHeight <= clientHeight || above < 0;
    card.style.left = `${Math.max(ROOM, left) + scrollX}px`;
    card.style.top = `${(fits ? below : above) + scrollY}px`;
  };

  const show = (link, at) => {
    clearTimeout(waiting);
    if (link === shown) return;
    hide();
    shown = link;
    const card = cardOf(link);
    card.showPopover();
    place(link, card, at);
  };

  // A finger has no hover: the first tap shows the card, and in it the way to the entry.
  const showWithLink = (link, at) => {
    show(link, at);
    const more = document.createElement("a");
    more.className = "gf-card-more";
    more.href = link.href;
    more.textContent = "Its entry in the notation";
    cardOf(link).append(more);
    place(link, cardOf(link), at);
  };

  let pointer = "mouse";
  document.addEventListener("pointerdown", (event) => {
    pointer = event.pointerType;
    if (!part(event, ".gf-card, .gf-term")) hide();
  });
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const link = part(event, ".gf-term");
    if (part(event, ".gf-card") || (link && link === shown)) clearTimeout(waiting);
    else if (link && !link.contains(event.relatedTarget)) later(() => show(link, event));
  });
  document.addEventListener("pointerout", (event) => {
    if (event.pointerType === "touch") return;
    const left = part(event, ".gf-term, .gf-card");
    if (left && !left.contains(event.relatedTarget)) {
      later(() => shown?.matches(":focus-visible") || hide());
    }
  });
  document.addEventListener("focusin", (event) => {
    const link = part(event, ".gf-term");
    if (link && link.matches(":focus-visible")) show(link);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target === shown && !cardOf(shown).contains(event.relatedTarget)) hide();
  });
  document.addEventListener("click", (event) => {
    const link = part(event, ".gf-term");
    if (!link || pointer !== "touch" || event.detail === 0 || link === shown) return;
    event.preventDefault();
    showWithLink(link, event);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("resize", hide);
})();
