// What pages can do beyond what they do without scripts: stay up to date, keys, theme, selection.
import { keys } from "./keys.js";
import { live } from "./live.js";
import { selection } from "./selection.js";
import { theme } from "./theming.js";
import { times } from "./times.js";

// A reload is not to say again what was done.
const here = new URL(location.href);
if (here.searchParams.has("did")) {
  here.searchParams.delete("did");
  here.searchParams.delete("soon");
  history.replaceState(null, "", here);
}

// One press, one job: a second press while the first is under way does nothing.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// A job that is about to be created is looked for again; without scripts, the page does it itself.
const awaited = document.getElementById("again");
if (awaited) setTimeout(() => location.replace(awaited.href), 1000);

theme();
times();
selection();
keys();
live();
