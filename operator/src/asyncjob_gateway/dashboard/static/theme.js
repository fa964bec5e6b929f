// Runs before anything is drawn, so that the page never flashes in the wrong colours.
"use strict";
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("asyncjob-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // no storage, no memory: the system's theme it is
}
