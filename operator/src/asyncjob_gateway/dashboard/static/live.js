// Keeps the page up to date: the gateway tells that something changed, and the page fetches itself.
// Only while it is seen: a browser has few connections, and nobody looks at a hidden page.
import { morph } from "./morph.js";
import { countSelected } from "./selection.js";
import { pageMade, showTimes } from "./times.js";

const LEAST_MILLISECONDS = 500;
const PATIENCE_MILLISECONDS = 10_000;
const AGAIN_MILLISECONDS = 2000;
const MOST_MILLISECONDS = 30_000;
const SHOWN = [403, 404, 422]; // pages that stand in the place of the one that was there
const main = document.getElementById("main");
const sign = document.getElementById("live");
let source = null, fetching = false, again = false, ended = 0, took = 0, failures = 0, timer = 0;

function say(state, words) {
  if (sign.textContent !== words) sign.textContent = words;
  sign.className = `live ${state}`;
}

async function refresh() {
  if (fetching) {
    again = true;
    return;
  }
  clearTimeout(timer);
  fetching = true;
  const began = Date.now();
  const failed = await ask();
  fetching = false;
  ended = Date.now();
  took = ended - began;
  failures = failed ? failures + 1 : 0;
  if (failed) {
    again = false;
    later(Math.min(MOST_MILLISECONDS, AGAIN_MILLISECONDS * 2 ** (failures - 1)));
  } else if (again) {
    again = false;
    soon();
  }
}

// Returns whether it has to be asked again.
async function ask() {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MILLISECONDS);
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    if (answer.redirected) say("off", "Not signed in any more: load the page again.");
    else if (answer.ok || SHOWN.includes(answer.status)) take(await answer.text());
    else say("off", `Not up to date: the gateway answers ${answer.status}. Trying again.`);
    return answer.status === 429 || answer.status >= 500;
  } catch {
    say("off", "Not up to date: the gateway cannot be reached. Trying again.");
    return true;
  }
}

function take(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const content = fresh.getElementById("main");
  if (!content) { // something else answers in the gateway's place
    say("off", "Not up to date: load the page again.");
    return;
  }
  pageMade(fresh.documentElement.dataset.now);
  document.title = fresh.title;
  morph(main, content);
  const old = document.getElementById("sections"), wanted = fresh.getElementById("sections");
  if (old && wanted) morph(old, wanted);
  const made = document.querySelector(".foot time"), remade = fresh.querySelector(".foot time");
  if (made && remade) made.dateTime = remade.dateTime;
  showTimes();
  countSelected();
  sayHow();
}

function sayHow() {
  const { every } = main.dataset;
  if (!every) say("", "");
  else say("on", source?.readyState === EventSource.OPEN ? "Live" : `Fetched again every ${every} s`);
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(refresh, milliseconds);
}

// However many changes there are: most of the time, browser and gateway have something else to do.
function soon() {
  if (fetching) again = true;
  else if (!failures) later(Math.max(0, Math.max(LEAST_MILLISECONDS, 2 * took) - (Date.now() - ended)));
}

function open() {
  const address = main.dataset.events;
  if (!address || source) return;
  source = new EventSource(address);
  source.addEventListener("change", () => {
    failures = 0; // it is there again
    soon();
  });
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
  if (!main.dataset.every) return;
  const seen = () => {
    if (document.hidden) close();
    else {
      open();
      soon();
    }
  };
  document.addEventListener("refresh", refresh);
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && seen());
  setInterval(() => {
    if (document.hidden) return;
    open();
    soon();
  }, Number(main.dataset.every) * 1000);
  open();
  if (!source) sayHow();
}
