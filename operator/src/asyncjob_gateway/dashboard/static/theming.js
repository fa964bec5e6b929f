// The switch between the system's theme, light and dark; remembered in this browser.
const ORDER = ["system", "light", "dark"];
const WORDS = { system: "Auto theme", light: "Light theme", dark: "Dark theme" };

export function theme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const show = () => { button.textContent = WORDS[root.dataset.theme ?? "system"]; };
  button.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "system") + 1) % ORDER.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("asyncjob-theme", next);
    } catch {
      // it holds for this page, then
    }
    show();
  });
  show();
}
