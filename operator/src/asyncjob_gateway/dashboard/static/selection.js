// On the page of dead letters: how many are selected, and all of the page at once.
export function countSelected() {
  const boxes = [...document.querySelectorAll('#dead-letters input[name="id"]')];
  const count = boxes.filter((box) => box.checked).length;
  for (const place of document.querySelectorAll("[data-selected]")) {
    place.textContent = count ? ` (${count})` : "";
    place.parentElement.disabled = !count;
  }
  const all = document.getElementById("select-all");
  if (!all) return;
  all.checked = boxes.length > 0 && count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
}

export function selection() {
  document.addEventListener("change", (event) => {
    if (event.target.id === "select-all") {
      for (const box of document.querySelectorAll('#dead-letters input[name="id"]')) box.checked = event.target.checked;
    }
    countSelected();
  });
  addEventListener("pageshow", countSelected);
  countSelected();
}
