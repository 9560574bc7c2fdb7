// The text as it is written: a button a token, small bars of what else was likely, alternatives.
import { $, make, sign } from "./dom.js";
import { t, percent } from "./i18n.js";

const SHOWN = 5; // Bars beside a token; the alternatives show all that came.

// A token that is no text of its own: a byte of a character, an end token.
const isMark = (token) => /^<.+>$/.test(token);

// onChoose(choice, index, token): the text shall go on from there with this token instead.
export class Output {
  constructor(onChoose, onSelect) {
    this.onChoose = onChoose;
    this.onSelect = onSelect;
    this.choices = [];
    $("output").addEventListener("keydown", (event) => this.onKey(event));
  }

  // Starts `count` texts after `prompt`; kept: tokens that stay, of the first.
  start(prompt, count, kept) {
    this.close();
    this.prompt = prompt;
    this.choices = [];
    $("output").replaceChildren();
    for (let i = 0; i < count; ++i) {
      const given = make("span", { class: "given", text: prompt });
      const line = make("p", { class: "choice", lang: "zh" }, given);
      this.choices.push({ line, tokens: [], text: "" });
      $("output").append(line);
    }
    for (const token of kept || []) this.addToken(this.choices[0], token);
    this.base = this.choices.map((choice) => choice.text);
  }

  whole(index = 0) {
    return this.choices[index] ? this.prompt + this.choices[index].text : "";
  }
  get written() {
    return this.choices.some((choice) => choice.text !== "");
  }

  // One event of a stream.
  add(part) {
    const choice = this.choices[part.index];
    if (part.logprobs) {
      part.logprobs.tokens.forEach((token, i) => {
        const top = Object.entries(part.logprobs.top_logprobs[i] || {})
          .map(([name, logprob]) => ({ token: name, p: Math.exp(logprob) }))
          .sort((a, b) => b.p - a.p);
        this.addToken(choice, {
          token,
          p: Math.exp(part.logprobs.token_logprobs[i]),
          top,
          offset: part.logprobs.text_offset[i],
        });
      });
    }
    choice.streamed = (choice.streamed || "") + part.text;
    choice.text = this.base[part.index] + choice.streamed;
  }

  addToken(choice, entry) {
    choice.tokens.push(entry);
    const index = choice.tokens.length - 1;
    const bars = entry.top
      .slice(0, SHOWN)
      .map((other) =>
        make("i", { class: other.token === entry.token ? "own" : "", "--p": other.p }),
      );
    if (!entry.top.slice(0, SHOWN).some((other) => other.token === entry.token)) {
      bars.push(make("i", { class: "own", "--p": entry.p }));
    }
    const number = this.choices.indexOf(choice);
    const button = make(
      "button",
      {
        type: "button",
        class: entry.hand ? "token hand" : "token",
        tabindex: "-1",
        "aria-expanded": "false",
        on: { click: () => this.open(number, index) },
      },
      make("span", {
        class: /^\s+$/.test(entry.token) ? "char break" : "char",
        text: sign(entry.token),
      }),
      make("span", { class: "bars", "aria-hidden": "true" }, ...bars),
    );
    entry.button = button;
    const last = choice.line.lastElementChild;
    if (/^[，。、！？；：]/.test(entry.token) && last.matches(".token")) {
      const pair = make("span", { class: "pair" });  // No line begins with such a mark.
      last.replaceWith(pair);
      pair.append(last, button);
    } else {
      choice.line.append(button);
    }
    this.label(entry);
    if (entry.token.includes("\n")) choice.line.append(make("br"));
    choice.text += entry.text || "";
  }

  label({ button, token, p }) {
    button.setAttribute("aria-label", t("tokenLabel", { token: sign(token), p: percent(p) }));
  }

  // In another language.
  relabel() {
    this.close();
    this.choices.forEach((choice) => choice.tokens.forEach((entry) => this.label(entry)));
  }

  // One of the buttons can be reached with Tab; arrows go on from there.
  roam(button = $("output").querySelector(".token")) {
    for (const other of $("output").querySelectorAll(".token[tabindex='0']")) other.tabIndex = -1;
    if (button) button.tabIndex = 0;
  }

  onKey(event) {
    const all = [...$("output").querySelectorAll(".token")];
    const here = all.indexOf(document.activeElement);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[
      event.key
    ];
    if (here < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    this.roam(all[to]);
    all[to].focus();
  }

  // The text before a token of a choice. Offsets count characters, the prompt's first.
  before(number, index) {
    return [...this.whole(number)].slice(0, this.choices[number].tokens[index].offset).join("");
  }

  open(number, index) {
    const entry = this.choices[number].tokens[index];
    this.close();
    this.opened = entry.button;
    this.roam(entry.button);
    entry.button.setAttribute("aria-expanded", "true");
    $("alternatives-title").textContent = t("alternativesTo", { token: sign(entry.token) });
    const fixed = !this.changeable();
    $("alternatives-hint").textContent = fixed ? t("alternativesFixed") : "";
    const most = entry.top[0] ? entry.top[0].p : 1;
    $("alternatives-list").replaceChildren(
      ...entry.top.map((other) =>
        make(
          "li",
          {},
          barRow({
            token: other.token,
            numbers: percent(other.p),
            bars: [["after", other.p / most]],
            chosen: other.token === entry.token,
            disabled: fixed || isMark(other.token),
            click: () => this.onChoose(number, index, other),
          }),
        ),
      ),
    );
    $("alternatives").hidden = false;
    this.onSelect(this.before(number, index));
  }

  close() {
    $("alternatives").hidden = true;
    if (this.opened) this.opened.setAttribute("aria-expanded", "false");
    this.opened = null;
  }

  // The tokens of a choice before `index`, to be kept by the next start().
  kept(number, index = this.choices[number].tokens.length) {
    const { tokens } = this.choices[number];
    const whole = [...this.whole(number)];
    return tokens.slice(0, index).map((entry, i) => {
      const text = whole.slice(entry.offset, tokens[i + 1]?.offset).join("");
      return { ...entry, text };
    });
  }
}

// A token, bars between 0 and 1, and numbers, as a button.
export function barRow({ token, numbers, bars, chosen, disabled, out, click }) {
  return make(
    "button",
    {
      type: "button",
      disabled,
      "aria-current": chosen ? "true" : null,
      class: `bar-row${chosen ? " chosen" : ""}${out ? " out" : ""}`,
      on: { click },
    },
    make("span", { class: "char", lang: "zh", text: sign(token) }),
    make(
      "span",
      { class: "track", "aria-hidden": "true" },
      ...bars.map(([name, p]) => make("i", { class: name, "--p": p })),
    ),
    make("span", { class: "number", text: numbers }),
  );
}
