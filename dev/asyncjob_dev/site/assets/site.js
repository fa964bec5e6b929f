// Tables that are wider than the screen scroll; keyboards reach them by this.
const reach = () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    one.tabIndex = 0;
  }
};
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
reach();
