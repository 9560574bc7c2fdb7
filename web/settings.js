// The settings: fields from a table, and what they say as parameters of a request.
import { $, make } from "./dom.js";
import { t } from "./i18n.js";

const range = (id, min, max, step, value, neutral = value) => ({
  id,
  kind: "range",
  min,
  max,
  step,
  value,
  neutral,
});

const GROUPS = [
  {
    id: "sampling",
    open: true,
    fields: [
      range("temperature", 0, 2, 0.05, 0.8),
      range("top_k", 0, 200, 1, 0),
      range("top_p", 0.01, 1, 0.01, 1),
      range("min_p", 0, 1, 0.01, 0),
      range("repetition_penalty", 0.5, 2, 0.01, 1),
      range("presence_penalty", -2, 2, 0.1, 0),
      range("frequency_penalty", -2, 2, 0.1, 0),
      { id: "seed", kind: "text", inputmode: "numeric" },
    ],
  },
  {
    id: "length",
    open: true,
    fields: [
      range("max_tokens", 1, 512, 1, 48),
      range("n", 1, 4, 1, 1),
      { id: "stopStrings", kind: "area" },
    ],
  },
  {
    id: "constraint",
    open: true,
    fields: [
      {
        id: "kind",
        kind: "select",
        options: ["none", "acrostic", "verse", "regex", "json_schema", "grammar", "choice"],
      },
      { id: "form", kind: "select", options: ["wujue", "qijue", "wulv", "qilv"], on: ["verse"] },
      { id: "heads", kind: "text", on: ["acrostic", "verse"], lang: "zh" },
      { id: "chars", kind: "select", options: ["7", "5"], plain: true, on: ["acrostic"] },
      { id: "tones", kind: "check", on: ["acrostic", "verse"] },
      { id: "rhyme", kind: "check", on: ["acrostic", "verse"] },
      { id: "rhyme_group", kind: "text", on: ["acrostic", "verse"], lang: "zh" },
      { id: "regex", kind: "area", value: "\\p{Han}{5}，\\p{Han}{5}。", on: ["regex"] },
      {
        id: "json_schema",
        kind: "area",
        value: '{"type": "array", "items": {"enum": ["春", "秋"]}, "maxItems": 4}',
        on: ["json_schema"],
      },
      {
        id: "grammar",
        kind: "area",
        value: 'root ::= line "，" line "。"\nline ::= [一-鿿]{5}',
        on: ["grammar"],
      },
      { id: "choice", kind: "area", value: "春风\n秋月", on: ["choice"] },
    ],
  },
  {
    id: "access",
    fields: [
      { id: "cache_salt", kind: "text" },
      { id: "api_key", kind: "text", type: "password" },
    ],
  },
];

const byId = (id) => $(`set-${id}`);
const value = (id) => byId(id).value.trim();
const lines = (id) =>
  value(id)
    .split("\n")
    .filter((line) => line !== "");

function control(field) {
  const id = `set-${field.id}`;
  const label = make("label", { for: id, "data-t": field.id });
  const hint = t.has(`${field.id}Hint`)
    ? make("p", { class: "hint", id: `${id}-hint`, "data-t": `${field.id}Hint` })
    : null;
  const common = { id, lang: field.lang, "aria-describedby": hint ? hint.id : null };
  const box = make("div", { class: "field", id: `field-${field.id}` });
  if (field.kind === "range") {
    const { min, max, step } = field;
    const number = make("input", { ...common, type: "number", min, max, step, value: field.value });
    const slider = make("input", {
      type: "range",
      min,
      max,
      step,
      value: field.value,
      id: `${id}-range`,
      "data-label": field.id,
    });
    slider.addEventListener("input", () => {
      number.value = slider.value;
    });
    number.addEventListener("input", () => {
      slider.value = number.value;
    });
    box.append(make("div", { class: "row" }, label, number), slider);
  } else if (field.kind === "check") {
    label.className = "check";
    label.removeAttribute("data-t");
    label.append(
      make("input", { ...common, type: "checkbox" }),
      make("span", { "data-t": field.id }),
    );
    box.append(label);
  } else if (field.kind === "select") {
    box.append(
      label,
      make(
        "select",
        common,
        ...field.options.map((name) =>
          make(
            "option",
            field.plain
              ? { value: name, text: name }
              : { value: name, "data-t": `${field.id}_${name}` },
          ),
        ),
      ),
    );
  } else if (field.kind === "area") {
    const area = make("textarea", { ...common, rows: field.value ? 3 : 2, spellcheck: "false" });
    area.value = field.value || "";
    box.append(label, area);
  } else {
    box.append(
      label,
      make("input", {
        ...common,
        type: field.type || "text",
        inputmode: field.inputmode,
        autocomplete: "off",
        spellcheck: "false",
      }),
    );
  }
  if (hint) box.append(hint);
  return box;
}

function showRelevant() {
  for (const group of GROUPS) {
    for (const field of group.fields) {
      if (field.on) $(`field-${field.id}`).hidden = !field.on.includes(value("kind"));
    }
  }
}

// onSampling is called when the distribution changes, onAccess when whose cache it is does.
export function buildSettings(onSampling, onAccess) {
  for (const group of GROUPS) {
    const box = make(
      "details",
      { open: group.open === true && innerWidth > 700, "data-group": group.id },
      make("summary", { "data-t": `group_${group.id}` }),
      ...group.fields.map(control),
    );
    if (group.id === "sampling") box.addEventListener("input", onSampling);
    if (group.id === "access") box.addEventListener("change", onAccess);
    $("settings").append(box);
  }
  // The page is a tenant of its own.
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  byId("cache_salt").value =
    "page-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  byId("kind").addEventListener("change", showRelevant);
  showRelevant();
}

// Labels of sliders, which stand beside a number of the same name.
export function labelSliders() {
  for (const slider of document.querySelectorAll("[data-label]")) {
    slider.setAttribute("aria-label", t(slider.dataset.label));
  }
}

export const constrained = () => value("kind") !== "none";
export const apiKey = () => value("api_key");
export const setSeed = (seed) => {
  byId("seed").value = seed;
};
export const setMaxTokens = (most) => {
  byId("max_tokens-range").max = Math.min(512, most);
};

export function salt() {
  return value("cache_salt") ? { cache_salt: value("cache_salt") } : {};
}

function numbers(ids) {
  const out = {};
  for (const group of GROUPS) {
    for (const field of group.fields) {
      if (!ids(field)) continue;
      if (value(field.id) === "") continue;
      out[field.id] = Number(value(field.id));
    }
  }
  return out;
}

// What /kvasir/next takes.
export function filters() {
  const names = ["temperature", "top_k", "top_p", "min_p"];
  return numbers((field) => names.includes(field.id));
}

function verse(kind) {
  const out = { form: kind === "acrostic" ? "acrostic" : value("form") };
  if (value("heads")) out.heads = value("heads");
  if (kind === "acrostic") out.chars = Number(value("chars"));
  if (byId("tones").checked) out.tones = true;
  if (byId("rhyme").checked) out.rhyme = true;
  if (value("rhyme_group")) out.rhyme_group = value("rhyme_group");
  return out;
}

function constraint() {
  const kind = value("kind");
  switch (kind) {
    case "none":
      return {};
    case "acrostic":
    case "verse":
      return { verse: verse(kind) };
    case "choice":
      return { choice: lines("choice") };
    case "json_schema": {
      let schema;
      try {
        schema = JSON.parse(value("json_schema"));
      } catch (e) {
        throw new Error(`${t("json_schema")}: ${e.message}`);
      }
      return { response_format: { type: "json_schema", json_schema: { name: "page", schema } } };
    }
    default:
      return { [kind]: value(kind) };
  }
}

// The parameters of a completion, but the model and the prompt; `seed`, if there is one, as text.
export function parameters() {
  const out = { ...numbers((field) => field.kind === "range"), ...constraint(), ...salt() };
  if (lines("stopStrings").length)
    out.stop = lines("stopStrings").map((s) => s.replaceAll("\\n", "\n"));
  if (value("seed") !== "") {
    if (!/^-?\d{1,20}$/.test(value("seed"))) throw new Error(`${t("seed")}: ${value("seed")}`);
    out.seed = value("seed");
  }
  return out;
}
