// The cache, block by block: what /kvasir/cache tells of this page's tenant.
import { $, make } from "./dom.js";
import { get, post } from "./api.js";
import { salt } from "./settings.js";
import { t, number, kib } from "./i18n.js";

const wholeNumber = (text, name) =>
  Number((text.match(new RegExp(`${name}=(\\d+)`)) || [])[1] || 0);

export class CachePanel {
  constructor() {
    this.picture = null; // The last answer that held a block.
    this.hits = 0; // Positions that the last text found in the cache.
    this.kept = null; // The last answer, of which only the kept blocks are drawn.
  }

  // Where no text is being written the server holds no blocks for one: the fullest picture of the
  // last text stays.
  async refresh() {
    const mine = salt();
    try {
      const answer = mine.cache_salt
        ? await post("/kvasir/cache", mine)
        : await get("/kvasir/cache");
      this.live = answer.blocks > 0;
      this.kept = answer;
      if (!this.picture || (this.fresh && this.live) || answer.blocks > this.picture.blocks) {
        this.picture = answer;
        this.fresh = false;
      }
      this.draw();
    } catch (error) {
      $("cache-facts").replaceChildren(make("dd", { text: error.message }));
    }
  }

  forget() {
    this.picture = null;
    this.kept = null;
    this.hits = 0;
    this.refresh();
  }

  // Looks again and again while `running` is true.
  async follow(running) {
    this.hits = 0;
    this.fresh = true;
    for (let i = 0; running(); ++i) {
      await this.refresh();
      await new Promise((done) => {
        setTimeout(done, i < 40 ? 0 : 200);
      });
    }
  }

  finish(hits) {
    this.hits = hits;
    this.refresh();
  }

  draw() {
    const { picture } = this;
    if (!picture) return;
    const facts = [
      ["policy", picture.policy],
      ["blockSize", t("positions", { count: picture.block_tokens })],
      ["blocks", number(picture.blocks)],
      ["bytes", kib(picture.bytes)],
      ["saved", kib(picture.saved_bytes)],
      ["kept", `${number(this.kept.kept_blocks)} · ${kib(this.kept.kept_bytes)}`],
      ["hits", t("positions", { count: number(this.hits) })],
    ];
    $("cache-facts").replaceChildren(
      ...facts.map(([name, value]) =>
        make("div", {}, make("dt", { text: t(name) }), make("dd", { text: value })),
      ),
    );
    const rows = picture.sequences.map((sequence) => this.row(sequence));
    if (rows.length === 0) rows.push(make("p", { class: "hint", text: t("cacheEmpty") }));
    else if (!this.live) rows.unshift(make("p", { class: "hint", text: t("cacheLast") }));
    if (this.kept.kept.length > 0) rows.push(this.keptRow(this.kept.kept));
    $("cache-blocks").replaceChildren(...rows);
  }

  row(sequence) {
    const { policy, block_tokens: size } = this.picture;
    // One rule for all layers: what lies between the sinks and the window is seen no more.
    const window = policy.includes(";") ? 0 : wholeNumber(policy, "window");
    const sinks = wholeNumber(policy, "sinks");
    const owner = t(sequence.stem ? "stem" : "owner", {
      request: sequence.request,
      choice: sequence.choice + 1,
    });
    const blocks = sequence.blocks.map((block) => {
      const { begin } = block;
      const gone = window > 0 && begin >= sinks && begin + size <= sequence.tokens - window;
      const kinds = ["block"];
      if (gone) kinds.push("gone");
      else if (block.holders > 1) kinds.push("shared");
      if (begin < this.hits) kinds.push("hit");
      const says = [this.title(block)];
      if (gone) says.push(t("gone"));
      if (kinds.includes("hit")) says.push(t("hit"));
      return make(
        "li",
        { class: kinds.join(" "), title: says.join(" · ") },
        make("span", { class: "fill", "--p": gone ? 0 : block.tokens / size }),
        make("span", {
          class: "id",
          "aria-hidden": "true",
          text: block.holders > 1 ? `${block.block}×${block.holders}` : block.block,
        }),
        make("span", { class: "hidden", text: says.join(", ") }),
      );
    });
    return make(
      "div",
      { class: "sequence" },
      make("p", { text: `${owner}: ${t("positions", { count: sequence.tokens })}` }),
      make("ul", { class: "blocks" }, ...blocks),
    );
  }

  title(block) {
    return t("blockTitle", {
      block: block.block,
      from: block.begin,
      to: block.begin + block.tokens,
      dtype: block.dtype,
      holders: block.holders,
      hits: block.hits,
    });
  }

  // Blocks of no text that is being written: where the next one that begins alike goes on from.
  keptRow(kept) {
    const most = 200;
    const blocks = kept.slice(0, most).map((block) =>
      make(
        "li",
        { class: block.hits > 0 ? "block kept hit" : "block kept", title: this.title(block) },
        make("span", { class: "fill", "--p": 1 }),
        make("span", {
          class: "id",
          "aria-hidden": "true",
          text: block.hits > 0 ? `${block.block}↻${block.hits}` : block.block,
        }),
        make("span", { class: "hidden", text: this.title(block) }),
      ),
    );
    return make(
      "div",
      { class: "sequence" },
      make("p", { text: t("keptRow") }),
      make("ul", { class: "blocks" }, ...blocks),
    );
  }
}
