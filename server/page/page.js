// Puts the page together: the choice of a model, its boxes, its answers.

import * as api from "./api.js";
import { element } from "./drawing.js";
import * as kinds from "./kinds.js";

const byId = (id) => document.getElementById(id);
const [chooser, form, answer] = ["model", "form", "answer"].map(byId);

let kind; // what kinds.find gives for the chosen model
let boxes = {}; // name → textarea
let pending = new AbortController(); // of the latest request; it ends those before

/** Does something that may fail; only the latest such thing may end. */
async function attempt(work) {
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  byId("error").hidden = true;
  form.setAttribute("aria-busy", "true");
  try {
    await work(signal);
  } catch (error) {
    if (signal.aborted) return;
    answer.hidden = true;
    byId("error").textContent = error.message;
    byId("error").hidden = false;
    reveal(byId("error"));
  }
  if (!signal.aborted) form.removeAttribute("aria-busy");
}

async function showModels() {
  const names = await api.listModels();
  chooser.replaceChildren(...names.map((name) => element("option", {}, name)));
  await showModel(pending.signal);
}

async function showModel(signal) {
  const name = chooser.value;
  form.hidden = answer.hidden = true;
  byId("about").textContent = "";
  const { version, signatures } = await api.describe(name, signal);
  if (signal.aborted) return;
  kind = kinds.find(signatures);
  if (!kind) {
    throw new Error(
      `model ${name} takes or gives what this page cannot show; ask it by the REST API`,
    );
  }
  byId("about").textContent = `${kind.title}, version ${version}`;
  const before = boxes;
  boxes = Object.fromEntries(kind.boxes.map((box) => [box.name, textarea(box)]));
  for (const [name, box] of Object.entries(boxes)) {
    box.value = before[name]?.value ?? "";
  }
  byId("boxes").replaceChildren(...kind.boxes.map(labelled));
  form.hidden = false;
}

function textarea({ name, isLong }) {
  return element("textarea", {
    id: `box-${name}`,
    rows: isLong ? 3 : 1,
    dir: "auto",
    autocomplete: "off",
    ...(name === "text_pair" ? {} : { required: "" }),
  });
}

/** A box under its label, with the button that puts something into it if it has one. */
function labelled({ name, label, insert }) {
  const box = boxes[name];
  const title = element("label", { for: box.id }, label);
  const drawn = element("div", { class: "box" }, title, box);
  if (insert) {
    const button = element("button", { type: "button" }, `Insert ${insert}`);
    button.addEventListener("click", () => {
      box.setRangeText(insert, box.selectionStart, box.selectionEnd, "end");
      box.focus();
      setStale();
    });
    drawn.append(button);
  }
  return drawn;
}

async function showAnswer(signal) {
  const read = ([name, box]) => [name, box.value];
  const values = Object.fromEntries(Object.entries(boxes).map(read));
  const { signature, rows } = kinds.question(kind, values);
  const started = performance.now();
  const found = await api.ask(chooser.value, signature, rows, signal);
  const milliseconds = performance.now() - started;
  if (signal.aborted) return;
  const { headline, details } = kind.draw(found, values, boxes);
  answer.hidden = answer.inert = false;
  const digits = milliseconds < 10 ? 1 : 0;
  byId("latency").textContent = `${milliseconds.toFixed(digits)} ms`;
  byId("headline").replaceChildren(headline);
  byId("details").replaceChildren(...(details ? [details] : []));
  reveal(byId("headline"));
}

/** Scrolls no further than it takes to see an element. */
function reveal(element) {
  element.scrollIntoView({ block: "nearest" });
}

/** The answer is to another text than what the boxes have now. */
function setStale() {
  answer.inert = true;
}

chooser.addEventListener("change", () => attempt(showModel));
form.addEventListener("input", setStale);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(showAnswer);
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
attempt(showModels);
