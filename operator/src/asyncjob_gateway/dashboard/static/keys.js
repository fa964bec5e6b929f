// Shortcuts of single keys. They can be switched off, and never act while something is typed.
const GO_MILLISECONDS = 1200;
let goUntil = 0;

function areOn() {
  try {
    return localStorage.getItem("asyncjob-keys") !== "off";
  } catch {
    return true;
  }
}

function typing(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

function move(step) {
  const rows = [...document.querySelectorAll("tr[data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next].querySelector("a.name").focus();
}

const ACTIONS = {
  "/": () => {
    const search = document.getElementById("search");
    if (search) search.select();
    else document.querySelector('#sections a[data-key="j"]')?.click();
  },
  "?": () => document.getElementById("help").showModal(),
  j: () => move(1),
  k: () => move(-1),
  n: () => document.querySelector('a[rel="next"]')?.click(),
  r: () => document.dispatchEvent(new Event("refresh")),
  x: () => document.activeElement.closest("tr")?.querySelector('input[name="id"]')?.click(),
  b: () => document.querySelector("#dead-letters .bar button:enabled")?.focus(),
  g: () => { goUntil = Date.now() + GO_MILLISECONDS; },
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || !areOn()) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const going = Date.now() < goUntil && document.querySelector(`#sections a[data-key="${CSS.escape(event.key)}"]`);
  if (!going && !Object.hasOwn(ACTIONS, event.key)) return;
  event.preventDefault();
  goUntil = 0;
  if (going) going.click();
  else ACTIONS[event.key]();
}

export function keys() {
  document.addEventListener("keydown", pressed);
  document.getElementById("help-open").addEventListener("click", ACTIONS["?"]);
  const on = document.getElementById("keys-on");
  on.checked = areOn();
  on.addEventListener("change", () => {
    try {
      localStorage.setItem("asyncjob-keys", on.checked ? "on" : "off");
    } catch {
      // they stay as they are
    }
  });
}
