// Times in the reader's zone, and ages that stay true however long the page stands.
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
let offset = 0; // of the gateway's clock to ours, in milliseconds

export function pageMade(text) {
  offset = Date.parse(text) - Date.now();
}

// The same words as asyncjob_gateway.dashboard.formatting.
export function span(seconds) {
  const whole = Math.floor(seconds);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return two(whole, MINUTE, "min", 1, "s", 10);
  if (whole < DAY) return two(whole, HOUR, "h", MINUTE, "min", 10);
  return two(whole, DAY, "d", HOUR, "h", 4);
}

function two(whole, unit, name, below, nameBelow, small) {
  const count = Math.floor(whole / unit), more = Math.floor((whole % unit) / below);
  return count < small && more ? `${count} ${name} ${more} ${nameBelow}` : `${count} ${name}`;
}

function ago(at) {
  const seconds = (Date.now() + offset - at) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

// The order that sorts and that nobody misreads, in the reader's own zone.
function clock(at) {
  const time = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-");
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":")}`;
}

export function showTimes(root = document) {
  for (const time of root.querySelectorAll("time[data-form]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue; // no calendar has it: it stays as it is written
    const words = time.dataset.form === "ago" ? ago(at) : clock(at);
    if (time.textContent !== words) time.textContent = words;
    time.title = `${clock(at)} ${ZONE} (${time.dateTime})`;
  }
}

export function times() {
  pageMade(document.documentElement.dataset.now);
  showTimes();
  setInterval(() => document.hidden || showTimes(), 1000);
}
