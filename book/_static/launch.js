/* A notebook is stored when its link is followed, not shown as text. On a page opened from disk no
   link can do that, and the notebook's text comes from the script beside it. */

addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href$=".ipynb"]');
  if (!link || link.protocol !== location.protocol || link.host !== location.host) return;
  link.download = "";
  if (location.protocol !== "file:") return;
  event.preventDefault();
  const script = document.createElement("script");
  script.src = `${link.href}.js`;
  script.addEventListener("load", () => script.remove());
  document.head.append(script);
});

globalThis.storeNotebook = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ipynb+json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
