// node openai_client.mjs BASE_URL API_KEY MODEL: the official client drives a running server.
// Prints one line a check; exit status 1 at the first that fails.
import assert from "node:assert/strict";
import path from "node:path";
import process from "node:process";
import { createRequire } from "node:module";

const [baseURL, apiKey, model] = process.argv.slice(2);
const require = createRequire(path.join(process.cwd(), "package.json"));
const OpenAI = require("openai").default;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120000 });
const messages = [{ role: "user", content: "春" }];

async function refused(status, code, promise) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof OpenAI.APIError, String(error));
    assert.equal(error.status, status);
    assert.equal(error.code, code);
    return true;
  });
}

const checks = {
  async models() {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), [model]);
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async completions() {
    const answer = await client.completions.create(
      { model, prompt: ["春风", "a"], max_tokens: 7, seed: 3, n: 2 });
    assert.equal(answer.object, "text_completion");
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2, 3]);
    assert.equal(answer.usage.completion_tokens, 28);
    assert.match(answer.system_fingerprint, /^kvasir-/);
    const again = await client.completions.create(
      { model, prompt: ["春风", "a"], max_tokens: 7, seed: 3, n: 2 });
    assert.deepEqual(again.choices, answer.choices);
    assert.equal(again.id, answer.id);
    assert.ok(again.usage.prompt_tokens_details.cached_tokens >= 0);
  },
  async echo() {
    const answer = await client.completions.create(
      { model, prompt: "春风花", max_tokens: 0, echo: true, logprobs: 2 });
    assert.equal(answer.choices[0].text, "春风花");
    const { tokens, token_logprobs: scores, text_offset: offsets } = answer.choices[0].logprobs;
    assert.deepEqual(tokens, ["春", "风", "花"]);
    assert.equal(scores[0], null);
    assert.ok(scores[1] < 0 && scores[2] < 0);
    assert.deepEqual(offsets, [0, 1, 2]);
    assert.equal(answer.usage.completion_tokens, 0);
  },
  async chat() {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 5, seed: 1 });
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.equal(answer.usage.total_tokens,
      answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },
  async streaming() {
    const settings = { model, messages, max_tokens: 20, seed: 5, temperature: 1.5, n: 2 };
    const whole = await client.chat.completions.create(settings);
    const stream = await client.chat.completions.create(
      { ...settings, stream: true, stream_options: { include_usage: true } });
    const texts = ["", ""];
    const reasons = [];
    let usage = null;
    for await (const chunk of stream) {
      if (chunk.usage) usage = chunk.usage;
      for (const choice of chunk.choices) {
        texts[choice.index] += choice.delta.content ?? "";
        if (choice.finish_reason) reasons[choice.index] = choice.finish_reason;
      }
    }
    assert.deepEqual(texts, whole.choices.map((c) => c.message.content));
    assert.deepEqual(reasons, whole.choices.map((c) => c.finish_reason));
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async helper() {  // The client's own accumulator of streams.
    const stream = client.beta.chat.completions.stream({ model, messages, max_tokens: 9, seed: 2 });
    const final = await stream.finalChatCompletion();
    const whole = await client.chat.completions.create({ model, messages, max_tokens: 9, seed: 2 });
    assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
  },
  async json_schema() {
    const schema = {
      type: "object", additionalProperties: false, required: ["name", "age"],
      properties: { name: { enum: ["ab", "b"] }, age: { type: "integer", minimum: 0, maximum: 9 } },
    };
    for (let seed = 0; seed < 5; ++seed) {
      const answer = await client.chat.completions.create({
        model, messages, seed, max_tokens: 150, temperature: 1,
        response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema } },
      });
      if (answer.choices[0].finish_reason === "length") continue;  // Blanks without end.
      const value = JSON.parse(answer.choices[0].message.content);
      assert.ok(["ab", "b"].includes(value.name) && value.age >= 0 && value.age <= 9);
      assert.equal(answer.choices[0].finish_reason, "stop");
    }
  },
  async logprobs() {
    const answer = await client.chat.completions.create(
      { model, messages, max_tokens: 4, logprobs: true, top_logprobs: 3, seed: 1 });
    const content = answer.choices[0].logprobs.content;
    assert.equal(content.length, 4);
    for (const token of content) {
      assert.equal(token.top_logprobs.length, 3);
      assert.ok(token.logprob <= 0);
      assert.equal(Buffer.from(token.bytes).toString("utf8"), token.token);
      assert.ok(token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob);
    }
  },
  async errors() {
    await refused(404, "model_not_found",
      client.chat.completions.create({ model: "gpt-4", messages }));
    await refused(400, "invalid_value",
      client.chat.completions.create({ model, messages, temperature: 3 }));
    await refused(400, "unknown_parameter",
      client.chat.completions.create({ model, messages, nonsense: 1 }));
    await refused(400, "unsupported_parameter", client.chat.completions.create(
      { model, messages, tools: [{ type: "function", function: { name: "f" } }] }));
    await refused(400, "context_length_exceeded",
      client.completions.create({ model, prompt: "春".repeat(5000) }));
    const stranger = new OpenAI({ baseURL, apiKey: "0000000000000000", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  },
  async abort() {
    const stream = await client.completions.create(
      { model, prompt: "春", max_tokens: 200, n: 8, stream: true, temperature: 2 });
    let seen = 0;
    for await (const chunk of stream) {
      seen += chunk.choices.length;
      if (seen === 5) stream.controller.abort();
    }
    const controller = new AbortController();
    const pending = client.completions.create(
      { model, prompt: "春", max_tokens: 200, n: 8 }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await assert.rejects(pending.then((answer) => {
      if (answer.choices.length === 8) throw new OpenAI.APIUserAbortError();  // It was faster.
    }), OpenAI.APIUserAbortError);
    assert.equal((await client.models.list()).data.length, 1);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(`${name}: as the client expects`);
}
