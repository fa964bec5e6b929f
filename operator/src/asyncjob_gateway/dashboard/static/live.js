// Keeps the page up to date: the gateway tells that something changed, and the page fetches itself.
// Only while it is seen: a browser has few connections, and nobody looks at a hidden page.
import { morph } from "./morph.js";
import { countSelected } from "./selection.js";
import { pageMade, showTimes } from "./times.js";

const LEAST_MILLISECONDS = 500;
const main = document.getElementById("main");
const sign = document.getElementById("live");
let source = null, fetching = false, again = false, last = 0, timer = 0;

function say(state, words) {
  if (sign.textContent !== words) sign.textContent = words;
  sign.className = `live ${state}`;
}

async function refresh() {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  last = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected) say("off", "Signed out: load the page again to sign in.");
    else if (answer.ok || answer.status === 404 || answer.status === 422) take(await answer.text());
    else say("off", `Not up to date: the gateway answers ${answer.status}.`);
  } catch {
    say("off", "Not up to date: the gateway cannot be reached. Trying again.");
  } finally {
    fetching = false;
    if (again) {
      again = false;
      soon();
    }
  }
}

function take(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  pageMade(fresh.documentElement.dataset.now);
  morph(main, fresh.getElementById("main"));
  for (const id of ["sections"]) {
    const old = document.getElementById(id), wanted = fresh.getElementById(id);
    if (old && wanted) morph(old, wanted);
  }
  const made = document.querySelector(".foot time"), remade = fresh.querySelector(".foot time");
  if (made && remade) made.dateTime = remade.dateTime;
  showTimes();
  countSelected();
  say("on", main.dataset.events ? "Live" : `Fetched anew every ${main.dataset.every} s`);
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(0, LEAST_MILLISECONDS - (Date.now() - last)));
}

function open() {
  const address = main.dataset.events;
  if (!address || source) return;
  source = new EventSource(address);
  source.addEventListener("change", soon);
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) close(); // refused: asking now and then will do
    soon();
  });
}

function close() {
  source?.close();
  source = null;
}

export function live() {
  document.addEventListener("refresh", refresh);
  if (!main.dataset.every) return;
  const seen = () => {
    if (document.hidden) close();
    else {
      open();
      soon();
    }
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && seen());
  setInterval(() => {
    if (document.hidden) return;
    open();
    soon();
  }, Number(main.dataset.every) * 1000);
  open();
}
