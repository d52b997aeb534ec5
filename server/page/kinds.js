// The kinds of models: what each takes and gives, what to ask for, how to draw answers.

import * as drawing from "./drawing.js";
import { drawMasks, MASK } from "./masks.js";
import { drawTags } from "./tags.js";

const { element } = drawing;

const TEXT = { name: "text", label: "Text", isLong: true };
const SECOND = { name: "text_pair", label: "Second text, if the task has one" };

/**
 * Of each kind:
 * takes, gives: the inputs of its signature, all of them, and some of its outputs.
 * boxes: what a person fills in; all but text_pair is required.
 * rows: of the values of the boxes, what to send; else one row of them.
 * draw: of the answers, the values and the boxes, {headline, details}: an element each.
 */
const KINDS = [
  {
    title: "question answering",
    takes: ["context", "question"],
    gives: ["answer", "start", "end", "probability"],
    boxes: [
      { name: "question", label: "Question" },
      { name: "context", label: "Text with the answer", isLong: true },
    ],
    draw: drawAnswer,
  },
  {
    title: "tags of words",
    takes: ["text"],
    gives: ["words", "tags", "scores"],
    boxes: [TEXT],
    draw: drawTags,
  },
  {
    title: "missing words",
    takes: ["text"],
    gives: ["words", "probabilities"],
    boxes: [{ ...TEXT, label: `Text with ${MASK} for missing words`, insert: MASK }],
    draw: drawMasks,
  },
  {
    title: "multiple choice",
    takes: ["choices", "context"],
    gives: ["choice", "probabilities"],
    boxes: [
      { name: "context", label: "Text", isLong: true },
      { name: "choices", label: "Choices, one a line", isLong: true },
    ],
    rows: ({ context, choices }) => [{ context, choices: lines(choices) }],
    draw: drawChoice,
  },
  {
    title: "several labels or none",
    takes: ["text"],
    gives: ["labels", "probabilities"],
    boxes: [TEXT, SECOND],
    draw: drawLabels,
  },
  {
    // Rather than label and probabilities, which come without the names of the others.
    title: "one label",
    takes: ["inputs"],
    gives: ["classes", "scores"],
    boxes: [TEXT, SECOND],
    draw: ([{ classes, scores }]) => drawClass(classes, scores),
  },
  {
    title: "one label",
    takes: ["text"],
    gives: ["label", "probabilities"],
    boxes: [TEXT, SECOND],
    draw: drawNamelessClass,
  },
  {
    title: "a number",
    takes: ["text"],
    gives: ["value"],
    boxes: [TEXT, SECOND],
    draw: ([{ value }]) => ({ headline: drawing.headline(String(+value.toFixed(4))) }),
  },
  {
    title: "similarity of texts",
    takes: ["text"],
    gives: ["vectors"],
    boxes: [TEXT, { name: "other", label: "Text to compare it with", isLong: true }],
    rows: ({ text, other }) => [{ text }, { text: other }],
    draw: drawSimilarity,
  },
];

/**
 * What to do with a model: its kind, with the signature to ask, and `pair`, the one for
 * a second text. Undefined if this page knows nothing of the kind.
 */
export function find(signatures) {
  for (const kind of KINDS) {
    const signature = signatures.find((one) => fits(one, kind.takes, kind.gives));
    if (!signature) continue;
    const pair = signatures.find((one) => fits(one, ["text", "text_pair"], []));
    const boxes = kind.boxes.filter((box) => box !== SECOND || pair);
    return { ...kind, signature, pair, boxes };
  }
  return undefined;
}

function fits(signature, takes, gives) {
  const isTaken = String(signature.inputs) === String(takes);
  return isTaken && gives.every((name) => signature.outputs.includes(name));
}

/** The signature to ask for values, and the rows to send. */
export function question(kind, values) {
  if (kind.rows) return { signature: kind.signature, rows: kind.rows(values) };
  const { text_pair: second, ...others } = values;
  if (!second) return { signature: kind.signature, rows: [others] };
  const isPair = String(kind.signature.inputs) === "text";
  return { signature: isPair ? kind.pair : kind.signature, rows: [values] };
}

function lines(text) {
  return text.split("\n").filter((line) => line.trim());
}

function drawAnswer([row], { context }) {
  if (row.start < 0) {
    const note = `probability ${drawing.percent(row.probability)}`;
    return { headline: drawing.headline("The text has no answer.", note) };
  }
  // The server counts code points, JavaScript's strings halves of surrogate pairs.
  const points = Array.from(context);
  const part = (...ends) => points.slice(...ends).join("");
  return {
    headline: drawing.headline(row.answer, drawing.percent(row.probability)),
    details: drawing.passage(
      part(0, row.start),
      element("mark", {}, part(row.start, row.end)),
      part(row.end),
    ),
  };
}

function drawClass(names, shares) {
  const rows = names.map((name, place) => ({ name, share: shares[place] }));
  rows.sort((a, b) => b.share - a.share);
  rows[0].isChosen = true;
  return {
    headline: drawing.headline(rows[0].name, drawing.percent(rows[0].share)),
    details: drawing.bars(rows),
  };
}

/** Only the best label has a name; others are numbers. */
function drawNamelessClass([{ label, probabilities }]) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  const names = probabilities.map((_, place) => `number ${place}`);
  names[best] = String(label);
  return drawClass(names, probabilities);
}

function drawLabels([{ labels, probabilities }]) {
  const rows = labels.map((name, place) => {
    const share = probabilities[place];
    return { name, share, isChosen: share >= 0.5 };
  });
  rows.sort((a, b) => b.share - a.share);
  const chosen = rows.filter((row) => row.isChosen).map((row) => row.name);
  return {
    headline: drawing.headline(chosen.join(", ") || "No label reaches 50%."),
    details: drawing.bars(rows),
  };
}

function drawChoice([{ choice, probabilities }], { choices }) {
  const best = Math.max(...probabilities);
  const rows = lines(choices).map((name, place) => {
    const share = probabilities[place];
    return { name, share, isChosen: share === best };
  });
  return {
    headline: drawing.headline(choice, drawing.percent(best)),
    details: drawing.bars(rows),
  };
}

function drawSimilarity([{ vectors: first }, { vectors: second }]) {
  const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
  const norms = Math.sqrt(dot(first, first) * dot(second, second));
  const cosine = dot(first, second) / norms;
  if (Number.isNaN(cosine)) {
    return { headline: drawing.headline("A vector is 0, so there is no similarity.") };
  }
  const note = `cosine of the angle between two vectors of ${first.length} numbers`;
  const share = Math.max(0, cosine);
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", share);
  return { headline: drawing.headline(cosine.toFixed(3), note), details: bar };
}
