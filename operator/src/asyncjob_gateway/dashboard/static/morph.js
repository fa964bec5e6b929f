// Makes a part of the page like a newer one, and keeps what the reader has done to it: focus,
// ticks, open details, text under the cursor. What is marked data-keep stays as it is.
// Attributes are asked for by name: an input called "id" hides its form's own.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  return node.getAttribute("data-key") || node.getAttribute("id") || "";
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

// What was said once, such as that an action was done, is on no newer page; it is passed over.
function passing(node) {
  while (node?.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-stay")) node = node.nextSibling;
  return node;
}

function children(old, fresh) {
  const keyed = Map.groupBy([...old.childNodes].filter(keyOf), keyOf); // two may have the same
  let place = passing(old.firstChild);
  for (const wanted of [...fresh.childNodes]) {
    const known = keyOf(wanted) ? keyed.get(keyOf(wanted))?.shift() : place;
    if (known && alike(known, wanted)) {
      if (known === place) place = passing(place.nextSibling);
      else old.insertBefore(known, place);
      morph(known, wanted);
    } else {
      old.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) {
    const next = passing(place.nextSibling);
    place.remove();
    place = next;
  }
}

export function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute("data-keep")) return;
  if (old.nodeName === "TIME" && old.dateTime === fresh.dateTime && old.dataset.form === fresh.dataset.form) return;
  attributes(old, fresh);
  children(old, fresh);
}
