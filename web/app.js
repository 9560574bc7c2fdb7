// The page: writes texts with the server that it came from, and shows what happens.
import { $, make } from "./dom.js";
import { get, stream, setKey } from "./api.js";
import * as settings from "./settings.js";
import { Output } from "./output.js";
import { NextPanel } from "./next.js";
import { CachePanel } from "./cache.js";
import { TimingPanel } from "./timing.js";
import { t, ms, number, setLanguage, language } from "./i18n.js";

const TOP = 8; // Alternatives asked for with each token.

let model = null;
let running = null; // The AbortController of what is being written or measured.
const next = new NextPanel((place, token) => onNextChosen(place, token));
const output = new Output(onAlternative, (text) => next.show(text));
output.changeable = () => !running;
const cache = new CachePanel();
const timing = new TimingPanel();

function fail(error) {
  $("error").hidden = !error;
  $("error").textContent = error ? error.message : "";
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    /* Private windows: it is forgotten. */
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

// One thing at a time; Escape and the button stop it.
async function run(work) {
  if (running) return;
  fail(null);
  running = new AbortController();
  const { signal } = running;
  for (const id of ["go", "more", "measure"]) $(id).disabled = true;
  $("stop").disabled = false;
  try {
    await work(signal);
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
  running = null;
  const held = document.activeElement === $("stop") || document.activeElement === document.body;
  for (const id of ["go", "measure"]) $(id).disabled = false;
  $("more").disabled = !output.written;
  $("stop").disabled = true;
  if (held) $("go").focus({ preventScroll: true });
}

let facts = null;  // Of the last text.

function statusLine() {
  if (!facts) return;
  const said = [t("statusTokens", { count: facts.count })];
  if (facts.first) said.push(t("statusFirst", { ms: ms(facts.first) }));
  if (facts.count > 1 && facts.last > facts.first) {
    said.push(
      t("statusSpeed", {
        rate: number(Math.round(((facts.count - 1) / (facts.last - facts.first)) * 1000)),
      }),
    );
  }
  if (facts.usage) {
    said.push(
      t("statusCached", {
        cached: facts.usage.prompt_tokens_details.cached_tokens,
        prompt: facts.usage.prompt_tokens,
      }),
    );
  }
  if (facts.reason) said.push(t(`reason_${facts.reason}`));
  $("status").replaceChildren(said.join(" · "));
  if (facts.seed) {
    $("status").append(
      " · ",
      make("button", {
        type: "button",
        class: "again",
        id: "keep-seed",
        text: t("statusSeed", { seed: facts.seed }),
        on: { click: () => settings.setSeed(facts.seed) },
      }),
    );
  }
}

// Writes after the prompt and `given`, the text of the tokens that are kept. Under a constraint
// these count as what it has been given already. If that is refused, `before` comes back.
async function write(prompt, given = "", kept = null, before = null) {
  let body;
  try {
    body = settings.parameters();
  } catch (error) {
    fail(error);
    return;
  }
  await run(async (signal) => {
    if (!model) await findModel();
    output.start(prompt, kept ? 1 : body.n, kept);
    const { seed, ...rest } = body;
    const constrained = settings.constrained();
    const request = {
      model: model.id,
      prompt: constrained ? prompt : prompt + given,
      ...(constrained && given ? { answer_prefix: given } : {}),
      ...rest,
      stream: true,
      logprobs: TOP,
      stream_options: { include_usage: true },
    };
    if (kept) request.n = 1;
    facts = { count: 0, start: performance.now() };
    // All 64 bits of a seed count: more than a number holds here.
    const text = JSON.stringify(request).replace(
      /}$/,
      seed === undefined ? "}" : `,"seed":${BigInt(seed)}}`,
    );
    let alive = true;
    const following = cache.follow(() => alive);
    try {
      facts.seed = await stream("/v1/completions", text, signal, (event) => {
        if (event.usage) facts.usage = event.usage;
        for (const part of event.choices) {
          if (part.logprobs) facts.count += part.logprobs.tokens.length;
          facts.last = performance.now() - facts.start;
          facts.first ??= facts.last;
          facts.reason = part.finish_reason || facts.reason;
          output.add(part);
        }
        statusLine();
      });
    } catch (error) {
      if (!signal.aborted) {
        if (before && !facts.count) output.start(prompt, 1, before);
        throw error;
      }
      facts.reason = "stopped";
    } finally {
      alive = false;
      output.roam();
      await following;
    }
    statusLine();
    cache.finish(facts.usage ? facts.usage.prompt_tokens_details.cached_tokens : 0);
    $("said").textContent =
      `${output.whole().slice(prompt.length)}. ${t(`reason_${facts.reason || "stopped"}`)}`;
    next.show(output.whole());
  });
}

function begin() {
  return write($("prompt").value);
}

// From a bar beside a written token.
function onAlternative(choice, index, other) {
  const given = output.before(choice, index).slice(output.prompt.length) + other.token;
  const { top, offset } = output.choices[choice].tokens[index];
  const hand = { ...other, text: other.token, top, offset, hand: true };
  return write(output.prompt, given, [...output.kept(choice, index), hand], output.kept(choice));
}

// From the distribution: the token goes after the text that the distribution is of.
function onNextChosen(place, token) {
  if (running) return;
  $("prompt").value = place + token;
  output.start("", 0);
  begin();
}

function goOn() {
  return write(output.prompt, output.whole().slice(output.prompt.length), output.kept(0));
}

async function findModel() {
  const list = await get("/v1/models");
  [model] = list.data;
  settings.setMaxTokens(model.context_length);
  tellModel();
}

function tellModel() {
  if (!model) return;
  $("model").textContent = t("modelSaid", {
    name: model.id,
    parameters: number(model.parameters),
    context: number(model.context_length),
    vocabulary: number(model.vocab_size),
  });
}

function translate(to) {
  setLanguage(to);
  document.documentElement.lang = to;
  $("language").value = to;
  for (const element of document.querySelectorAll("[data-t]"))
    element.textContent = t(element.dataset.t);
  $("output").dataset.empty = t("nothingYet");
  settings.labelSliders();
  tellModel();
  statusLine();
  output.relabel();
  next.draw();
  cache.draw();
  timing.draw();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  const chosen = $("theme").value;
  document.documentElement.dataset.theme =
    chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
}

async function measure() {
  await run(async (signal) => {
    if (!model) await findModel();
    $("timing-status").textContent = t("measuring");
    await timing.measure(model, output.whole() || $("prompt").value, signal);
  });
  if (!timing.rows) $("timing-status").textContent = "";
}

async function connect() {
  setKey(settings.apiKey());
  try {
    await findModel();
    fail(null);
    next.refresh();
    cache.forget();
  } catch (error) {
    fail(error);
    if (error.status === 401) {
      document.querySelector("[data-group=access]").open = true;
      $("set-api_key").focus();
    }
  }
}

settings.buildSettings(() => next.refresh(), connect);
$("prompt").value = "春风";
$("theme").value = remembered("kvasir-theme") || "auto";
paint();
translate(remembered("kvasir-language") || language(navigator.languages));
next.show($("prompt").value);
connect();

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});
$("stop").addEventListener("click", () => running?.abort());
$("more").addEventListener("click", goOn);
$("measure").addEventListener("click", measure);
$("prompt").addEventListener("input", () => next.show($("prompt").value));
$("show-bars").addEventListener("change", (event) =>
  $("output").classList.toggle("plain", !event.target.checked),
);
$("language").addEventListener("change", (event) => {
  remember("kvasir-language", event.target.value);
  translate(event.target.value);
});
$("theme").addEventListener("change", (event) => {
  remember("kvasir-theme", event.target.value);
  paint();
});
dark.addEventListener("change", paint);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (running) running.abort();
    else if (output.opened) {
      const back = output.opened;
      output.close();
      back.focus();
    }
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    begin();
  }
});
