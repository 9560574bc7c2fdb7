// What the cache saves: prompts of growing length, with nothing of them in the cache (a salt that
// nobody has used) and again with everything. Of some tries the fastest; all give the same token.
import { $, make } from "./dom.js";
import { post } from "./api.js";
import { t, ms } from "./i18n.js";

const REPEATS = 5;
const STEPS = 8;

export class TimingPanel {
  // Of one request: milliseconds, the token, and how many positions came from the cache.
  async once(model, prompt, salt, signal) {
    const body = { model: model.id, prompt, max_tokens: 1, temperature: 0, cache_salt: salt };
    const start = performance.now();
    const answer = await post("/v1/completions", body, signal);
    return {
      ms: performance.now() - start,
      text: answer.choices[0].text,
      cached: answer.usage.prompt_tokens_details.cached_tokens,
    };
  }

  async measure(model, text, signal) {
    const tokens = (await post("/tokenize", { text: text || "春风" }, signal)).tokens;
    if (tokens.length === 0) return;
    const longest = Math.min(model.context_length - 1, 2048);
    const fresh = Array.from(crypto.getRandomValues(new Uint32Array(2))).join("-");
    this.rows = [];
    await this.once(model, tokens.slice(0, 1), `time-${fresh}`, signal); // The connection is warm.
    for (let step = 1; step <= STEPS; ++step) {
      const length = Math.floor((longest * step) / STEPS);
      const prompt = Array.from({ length }, (_, i) => tokens[i % tokens.length]);
      const cold = [],
        warm = [];
      for (let i = 0; i < REPEATS; ++i) {
        const salt = `time-${fresh}-${length}-${i}`;
        cold.push(await this.once(model, prompt, salt, signal));
        warm.push(await this.once(model, prompt, salt, signal));
      }
      this.rows.push({
        length,
        cold: Math.min(...cold.map((c) => c.ms)),
        warm: Math.min(...warm.map((c) => c.ms)),
        cached: warm[0].cached,
        same: [...cold, ...warm].every((c) => c.text === cold[0].text),
      });
      this.draw();
    }
  }

  draw() {
    if (!this.rows || this.rows.length === 0) return;
    const width = Math.max(300, $("timing-chart").clientWidth);
    const [height, left, bottom] = [190, 48, 26];
    const longest = this.rows[this.rows.length - 1].length;
    const most = Math.max(...this.rows.flatMap((row) => [row.cold, row.warm]));
    const x = (length) => left + ((width - left - 16) * length) / longest;
    const y = (value) => height - bottom - ((height - bottom - 8) * value) / most;
    const parts = [0, 0.5, 1].flatMap((share) => [
      make("line", {
        class: "axis",
        x1: left,
        x2: width - 16,
        y1: y(most * share),
        y2: y(most * share),
      }),
      make("text", {
        x: left - 5,
        y: y(most * share) + 4,
        "text-anchor": "end",
        text: ms(most * share),
      }),
    ]);
    for (const row of this.rows) {
      parts.push(
        make("text", {
          x: x(row.length),
          y: height - 8,
          "text-anchor": "middle",
          text: row.length,
        }),
      );
    }
    for (const kind of ["cold", "warm"]) {
      const points = this.rows.map((row) => [x(row.length), y(row[kind])]);
      parts.push(
        make("polyline", {
          class: `${kind}-line`,
          points: points.map((p) => p.join(",")).join(" "),
        }),
      );
      parts.push(
        ...points.map(([cx, cy]) => make("circle", { class: `${kind}-dot`, cx, cy, r: 3.5 })),
      );
    }
    const last = this.rows[this.rows.length - 1];
    const said = t("timingSaid", {
      length: last.length,
      cold: ms(last.cold),
      warm: ms(last.warm),
      cached: last.cached,
      same: t(this.rows.every((row) => row.same) ? "sameYes" : "sameNo"),
    });
    $("timing-chart").replaceChildren(
      make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, ...parts),
    );
    $("timing-status").textContent = said;
  }
}
