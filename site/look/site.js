// The version of these pages, and the way to the others that stand beside them (versions.js).
(() => {
  const base = new URL("..", document.currentScript.src);
  const version = decodeURIComponent(base.pathname.split("/").at(-2));
  const versions = window.tcpkneeVersions ?? [version];
  const place = document.querySelector(".md-header__source");
  if (!place) return;
  if (versions.length < 2) {
    place.textContent = version;
    return;
  }
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Version");
  select.append(...versions.map((one) => new Option(one, one, one === version, one === version)));
  select.addEventListener("change", () => {
    location.href = new URL(`../${select.value}/index.html`, base);
  });
  place.replaceChildren(select);
})();
