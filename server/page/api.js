// The server's REST API. What goes wrong is an Error with one sentence.

const CLASSIFY = "tensorflow/serving/classify";

async function request(path, options) {
  let response;
  let text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; does it still run?");
  }
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    // Python writes NaN and Infinity, which are not JSON.
    throw new Error("the answer is not JSON; perhaps a number in it is none (NaN)");
  }
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** The names of all models. */
export async function listModels() {
  return (await request("v1/models")).models;
}

/**
 * A model's version, and its signatures as {name, method, inputs, outputs}, the last
 * two sorted lists of names; serving_default comes first.
 */
export async function describe(model, signal) {
  const path = `v1/models/${encodeURIComponent(model)}/metadata`;
  const answer = await request(path, { signal });
  const found = Object.entries(answer.metadata.signature_def.signature_def);
  const signatures = found.map(([name, definition]) => ({
    name,
    method: definition.method_name,
    inputs: Object.keys(definition.inputs).sort(),
    outputs: Object.keys(definition.outputs).sort(),
  }));
  const place = ({ name }) => (name === "serving_default" ? "" : name);
  signatures.sort((a, b) => (place(a) < place(b) ? -1 : 1));
  return { version: answer.model_spec.version, signatures };
}

/**
 * What a model gives for rows, objects of inputs: objects of outputs, or for a
 * signature that classifies {classes, scores}.
 */
export async function ask(model, signature, rows, signal) {
  const isClassify = signature.method === CLASSIFY;
  const answer = await request(
    `v1/models/${encodeURIComponent(model)}:${isClassify ? "classify" : "predict"}`,
    {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        signature_name: signature.name,
        [isClassify ? "examples" : "instances"]: rows,
      }),
      signal,
    },
  );
  if (isClassify) {
    return answer.results.map((row) => ({
      classes: row.map(([name]) => name),
      scores: row.map(([, score]) => score),
    }));
  }
  // An only output stands without its name.
  const [only, ...others] = signature.outputs;
  if (others.length) return answer.predictions;
  return answer.predictions.map((value) => ({ [only]: value }));
}
