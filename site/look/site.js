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

// A drawing that is uncovered in the time that it took.
for (const race of document.querySelectorAll(".race")) {
  const button = race.querySelector(".play");
  const first = button.textContent;
  const stop = () => {
    race.classList.remove("runs");
    button.textContent = first;
  };
  button.addEventListener("click", () => {
    if (race.classList.contains("runs")) return stop();
    race.classList.add("runs");
    button.textContent = "Stop";
  });
  race.querySelector(".data").addEventListener("animationend", stop);
}

// What scrolls sideways is a stop of the keyboard: tables and code, when the window is too narrow for them. The theme wraps
// tables after loading, and a part that is opened changes the height of the page.
{
  const reach = () => {
    for (const one of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
      if (one.scrollWidth > one.clientWidth) {
        one.tabIndex = 0;
        one.setAttribute("role", "group");
        one.setAttribute("aria-label", one.matches("code") ? "Code" : "Table");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) one.removeAttribute(name);
      }
    }
  };
  new ResizeObserver(reach).observe(document.body);
  new MutationObserver(reach).observe(document.querySelector("article") ?? document.body, { childList: true, subtree: true });
}
