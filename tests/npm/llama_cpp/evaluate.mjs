// node evaluate.mjs JOBS.json: what llama.cpp makes of model files. JOBS: a list of {model, text,
// greedy}: tokens of the text, for each position the log-probabilities of all tokens, and `greedy`
// tokens drawn from its end at temperature 0. JSON on stdout, in the same order.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.cwd();
const require = createRequire(path.join(folder, "package.json"));
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(require.resolve("node-llama-cpp")));

const llama = await getLlama({
  gpu: false, build: "never", skipDownload: true, maxThreads: 1, logLevel: LlamaLogLevel.error,
});
const asked = { generateNext: { probabilities: true, token: true, options: { temperature: 0 } } };

async function evaluate({ model: file, text, greedy }) {
  const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: model.trainContextSize, sequences: 1, flashAttention: false, threads: 1,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
  });
  const sequence = context.getSequence();
  const first = model.tokens.bos !== null && model.tokens.shouldPrependBosToken;
  const ids = [...(first ? [model.tokens.bos] : []), ...model.tokenize(text, false)];
  const results = await sequence.controlledEvaluate(ids.map((id) => [id, asked]));
  const rows = results.map(({ next }) => {
    const row = [];
    for (const [id, probability] of next.probabilities) row[id] = Math.log(probability);
    return row;
  });
  const drawn = [];
  for (let next = results.at(-1).next.token; drawn.length < greedy;) {
    drawn.push(next);
    next = (await sequence.controlledEvaluate([[next, asked]])).at(-1).next.token;
  }
  await context.dispose();
  await model.dispose();
  return { ids, rows, drawn };
}

const results = [];
for (const job of JSON.parse(fs.readFileSync(process.argv[2], "utf8"))) {
  results.push(await evaluate(job));
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
