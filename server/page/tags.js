// Words with tags, such as named entities.

import * as drawing from "./drawing.js";

const { element } = drawing;

// What numbers of colours kinds have; the same in every answer.
const numbers = new Map();

export function drawTags([{ words, tags, scores }], { text }) {
  const { pieces, rest } = join(words, tags, scores, text);
  const counts = new Map();
  const drawn = pieces.flatMap(({ gap, text: shown, kind, score }) => {
    if (!kind) return [gap, shown];
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const name = element("span", { class: "kind" }, kind);
    const marked = drawing.coloured("mark", number(kind), shown, name);
    marked.title = `${kind}, ${drawing.percent(score)}`;
    return [gap, marked];
  });
  return { headline: legend(counts), details: drawing.passage(...drawn, rest) };
}

/**
 * Words and what is between them; those of one entity become one piece.
 *
 * Returns {pieces, rest}: {gap, text, kind, score} each, where gap comes before the
 * text and the score is the lowest of its words; and what stands behind the last word.
 */
function join(words, tags, scores, text) {
  const pieces = [];
  let end = 0;
  words.forEach((word, place) => {
    const start = text.indexOf(word, end);
    // A model may give words in another spelling than the text's.
    const gap = start < 0 ? " " : text.slice(end, start);
    if (start >= 0) end = start + word.length;
    const { kind, isInside } = parse(tags[place]);
    const last = pieces.at(-1);
    if (isInside && last?.kind === kind) {
      last.text += gap + word;
      last.score = Math.min(last.score, scores[place]);
    } else {
      pieces.push({ gap, text: word, kind, score: scores[place] });
    }
  });
  return { pieces, rest: text.slice(end) };
}

/** Of B-PER, I-PER or a tag without such a letter; O is no kind. */
function parse(tag) {
  const [, letter, kind] = /^([BI])-(.+)$/s.exec(tag) ?? [, "", tag];
  return { kind: kind === "O" ? "" : kind, isInside: letter === "I" };
}

function number(kind) {
  if (!numbers.has(kind)) numbers.set(kind, numbers.size);
  return numbers.get(kind);
}

function legend(counts) {
  if (!counts.size) return drawing.headline("Nothing is tagged in this text.");
  const items = [...counts].map(([kind, count]) =>
    drawing.coloured("li", number(kind), drawing.foreign(kind), ` ${count}`),
  );
  const attributes = { class: "legend", "aria-label": "Tags and how many" };
  return element("ul", attributes, ...items);
}
