// Pieces of the page. Whatever models and people write becomes text, never markup.

const NUM_SHOWN = 10;

/** An element; strings among its children become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Text of others: in its own direction, and with its spaces and line ends. */
export function foreign(...children) {
  return element("span", { class: "text", dir: "auto" }, ...children);
}

export function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

/** The sentence or number that answers, and what is to say about it. */
export function headline(main, note = "") {
  const spans = [foreign(main), element("span", { class: "note" }, note)];
  return element("p", { class: "headline" }, ...spans);
}

/** A long text in which something is marked: strings and elements. */
export function passage(...pieces) {
  return element("p", { class: "passage text", dir: "auto" }, ...pieces);
}

/**
 * A list of bars; the last of many are folded away.
 *
 * rows: {name, share, isChosen}: a string or an element, a number of 0 to 1, a boolean.
 */
export function bars(rows) {
  const [first, others] = [rows.slice(0, NUM_SHOWN), rows.slice(NUM_SHOWN)];
  const drawn = element("div", {}, barList(first));
  if (others.length) {
    const summary = element("summary", {}, `${others.length} more`);
    drawn.append(element("details", {}, summary, barList(others)));
  }
  return drawn;
}

function barList(rows) {
  const items = rows.map(({ name, share, isChosen }) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share);
    const number = element("span", { class: "number" }, percent(share));
    const label = typeof name === "string" ? foreign(name) : name;
    return element("li", { class: isChosen ? "chosen" : "" }, label, bar, number);
  });
  return element("ol", { class: "bars" }, ...items);
}

/** A mark with the colour of a number; golden angles keep neighbours apart. */
export function coloured(tag, number, ...children) {
  const made = element(tag, { class: "coloured" }, ...children);
  made.style.setProperty("--hue", (250 + 137.5 * number) % 360);
  return made;
}
