// Tables that are wider than the screen scroll; keyboards reach them by this.
const reach = () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    one.tabIndex = 0;
  }
};

// Names of fields in tables may break, but only behind a dot.
const breakNames = () => {
  for (const one of document.querySelectorAll("td > code:not([data-breaks])")) {
    one.dataset.breaks = "";
    one.innerHTML = one.innerHTML.replaceAll(/\.(?=\w)/g, ".<wbr>");
  }
};

const amend = () => {
  reach();
  breakNames();
};
new MutationObserver(amend).observe(document.body, { childList: true, subtree: true });
amend();
