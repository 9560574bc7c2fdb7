// The distribution of the next token, before the settings and after them.
import { $, later } from "./dom.js";
import { post } from "./api.js";
import { filters, salt } from "./settings.js";
import { barRow } from "./output.js";
import { t, percent, number } from "./i18n.js";

const TOP = 12;

export class NextPanel {
  // onChoose(text): the text goes on with this token at the end.
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.text = "";
    this.refresh = later(120, () => this.ask());
  }

  show(text) {
    this.text = text;
    this.refresh();
  }

  async ask() {
    this.control?.abort();
    this.control = new AbortController();
    const { signal } = this.control;
    try {
      const text = this.text;
      const body = { prompt: text, top: TOP, ...filters(), ...salt() };
      this.draw(await post("/kvasir/next", body, signal), text);
    } catch (error) {
      if (error.name !== "AbortError") $("next-count").textContent = error.message;
    }
  }

  draw(answer = this.answer, place = this.place) {
    this.answer = answer;
    this.place = place;
    if (!answer) return;
    const end = [...place].slice(-16).join("");
    const shown = end.length < place.length ? `…${end}` : end || t("beginning");
    $("next-place").textContent = `${shown.replaceAll("\n", "↵")} ▸`;
    const most = Math.max(...answer.tokens.flatMap((token) => [token.prob, token.drawn]), 1e-9);
    $("next-list").replaceChildren(
      ...answer.tokens.map((token) => {
        const item = document.createElement("li");
        item.append(
          barRow({
            token: token.token,
            out: token.drawn === 0,
            numbers: `${percent(token.prob)}\n${percent(token.drawn)}`,
            bars: [
              ["before", token.prob / most],
              ["after", token.drawn / most],
            ],
            disabled: /^<.+>$/.test(token.token),
            click: () => this.onChoose(place, token.token),
          }),
        );
        return item;
      }),
    );
    $("next-count").textContent =
      answer.tokens.length === 0
        ? t("full")
        : t("nextCount", { candidates: number(answer.candidates), shown: percent(answer.shown) });
  }
}
