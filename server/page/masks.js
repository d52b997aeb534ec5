// Words for the masks of a text.

import * as drawing from "./drawing.js";

const { element } = drawing;

export const MASK = "[MASK]";

/** Suggestions for each mask; a click puts one into the text box, or takes it out. */
export function drawMasks([{ words, probabilities }], { text }, boxes) {
  const parts = text.split(MASK);
  if (parts.length === 1) {
    return { headline: drawing.headline(`The text has no ${MASK}.`) };
  }
  const picked = parts.slice(1).map(() => null);
  const sentence = element("p", { class: "headline text", dir: "auto" });
  const lists = words.map((suggestions, mask) => {
    const rows = suggestions.map((word, place) => {
      const button = element("button", { type: "button", dir: "auto" }, word);
      button.addEventListener("click", () => {
        picked[mask] = picked[mask] === word ? null : word;
        boxes.text.value = fill(parts, (i) => picked[i] ?? MASK).join("");
        update();
      });
      return { name: button, share: probabilities[mask][place] };
    });
    return { rows, list: drawing.bars(rows) };
  });

  function update() {
    const best = (mask) => picked[mask] ?? words[mask]?.[0] ?? MASK;
    const pieces = fill(parts, best).map((piece, place) =>
      place % 2 ? element("mark", {}, piece) : piece,
    );
    sentence.replaceChildren(...pieces);
    lists.forEach(({ rows }, mask) => {
      for (const { name: button } of rows) {
        button.setAttribute("aria-pressed", button.textContent === picked[mask]);
      }
    });
  }

  update();
  const details = element("div", { class: "masks" });
  lists.forEach(({ list }, mask) => {
    const title = element("h3", {}, `${MASK} ${mask + 1} of ${picked.length}`);
    details.append(element("div", {}, title, list));
  });
  if (words.length < picked.length) {
    const note = "The others are behind the end of what the model reads.";
    details.append(element("p", { class: "note" }, note));
  }
  return { headline: sentence, details };
}

/**
 * Parts of a text and the words between them, in turns.
 *
 * A word such as ##ing belongs to what stands before it.
 */
function fill(parts, word) {
  const pieces = [parts[0]];
  parts.slice(1).forEach((part, mask) => {
    const found = word(mask);
    const isEnd = found.length > 2 && found.startsWith("##");
    if (isEnd) pieces.push(pieces.pop().trimEnd());
    pieces.push(isEnd ? found.slice(2) : found, part);
  });
  return pieces;
}
