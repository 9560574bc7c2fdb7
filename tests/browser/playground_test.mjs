// node playground_test.mjs BASE_URL FOLDER CHROMIUM: the page of a running server in a headless
// browser. Screenshots go to FOLDER. Prints one line a check; exit status 1 at the first failure.
import assert from "node:assert/strict";
import path from "node:path";
import process from "node:process";
import { createRequire } from "node:module";

const [url, folder, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.cwd(), "package.json"))("playwright-core");
const origin = new URL(url).origin;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];  // Console errors, exceptions, requests to elsewhere: of all pages together.

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) faults.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => faults.push(`exception: ${e.message}`));
  page.on("request", (r) => { if (new URL(r.url()).origin !== origin) faults.push(`asked ${r.url()}`); });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("#model").textContent.length > 5)
    .catch(() => assert.fail(`the page does not come up: ${faults}`));
  await page.waitForSelector("#next-list li");
  return page;
}

const shot = (page, name) => page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
const written = (page) => page.$$eval(".token .char", (all) => all.map((e) => e.textContent).join(""));
const ended = (page) => page.waitForFunction(() => document.querySelector("#stop").disabled);
const set = (page, name, value) => page.fill(`#set-${name}`, String(value));

async function write(page) {
  await page.click("#go");
  await page.waitForSelector(".token");
  await ended(page);
}

const checks = {
  async "writes, the same with the same seed"() {
    const page = await open();
    await set(page, "seed", "18446744073709551615");  // No double holds it.
    await set(page, "max_tokens", 40);
    await write(page);
    const first = await written(page);
    assert.ok([...first].length >= 20, first);
    assert.match(await page.textContent("#status"), /18446744073709551615/);
    assert.equal(await page.locator(".token .bars .own").count(), await page.locator(".token").count());
    await write(page);
    assert.equal(await written(page), first);
    await page.click("#more");
    await ended(page);
    assert.ok((await written(page)).startsWith(first) && (await written(page)).length > first.length);
    await page.context().close();
  },
  async "stops, by the button and by Escape"() {
    for (const stop of [(p) => p.click("#stop"), (p) => p.keyboard.press("Escape")]) {
      const page = await open();
      // The answer is held up, so that there is time to stop it, however fast the machine is.
      await page.route("**/v1/completions", () => {});
      await page.click("#go");
      await page.waitForFunction(() => !document.querySelector("#stop").disabled);
      await stop(page);
      await ended(page);
      await page.waitForFunction(() => document.querySelector("#status").textContent.includes("stopped"));
      assert.ok(await page.isHidden("#error"));
      await page.unroute("**/v1/completions");
      await write(page);  // It goes on working.
      await page.context().close();
    }
  },
  async "settings act on the distribution and on the text"() {
    const page = await open();
    const count = async () => Number((await page.textContent("#next-count")).match(/[\d,]+/)[0].replace(",", ""));
    assert.ok(await count() > 100);
    await set(page, "top_k", 3);
    await page.waitForFunction(() => /^3 /.test(document.querySelector("#next-count").textContent));
    assert.equal(await page.locator("#next-list .bar-row.out").count(), 9);
    await set(page, "top_k", 0);
    await set(page, "temperature", 0);
    await page.waitForFunction(() => /^1 /.test(document.querySelector("#next-count").textContent));
    await set(page, "max_tokens", 12);
    await write(page);
    const greedy = await written(page);
    await set(page, "seed", 5);
    await write(page);
    assert.equal(await written(page), greedy);
    await set(page, "stopStrings", [...greedy][6]);
    await write(page);
    assert.ok((await page.textContent("#status")).includes("complete"));
    await set(page, "seed", "x");
    await page.click("#go");
    assert.match(await page.textContent("#error"), /Seed: x/);
    await page.context().close();
  },
  async "fixed forms and constraints"() {
    const page = await open();
    await page.selectOption("#set-kind", "acrostic");
    await set(page, "heads", "春眠不觉");
    await write(page);
    const lines = (await written(page)).split(/[，。↵]+/).filter(Boolean);
    assert.equal(lines.map((line) => line[0]).join(""), "春眠不觉");
    // Another character in the first line: the form holds on.
    const before = [...await written(page)];
    await page.locator(".token").nth(3).click();
    const others = page.locator("#alternatives-list button:not(.chosen):not(:disabled)");
    const han = others.filter({ hasText: /\p{Script=Han}/u }).first();
    const chosen = (await han.locator(".char").textContent()).trim();
    await han.click();
    await page.waitForFunction(() => document.querySelector(".token.hand"));
    await ended(page);
    const after = await written(page);
    assert.equal([...after].slice(0, 4).join(""), before.slice(0, 3).join("") + chosen);
    assert.equal(after.split(/[，。↵]+/).filter(Boolean).map((line) => line[0]).join(""), "春眠不觉");
    await page.selectOption("#set-kind", "verse");
    await set(page, "heads", "");
    await page.selectOption("#set-form", "wujue");
    await page.check("#set-tones");
    await page.check("#set-rhyme");
    await write(page);
    assert.match((await written(page)).replaceAll("↵", ""), /^(.{5}，.{5}。){2}$/);
    await page.selectOption("#set-kind", "choice");
    await write(page);
    assert.ok(["春风", "秋月"].includes(await written(page)));
    await page.selectOption("#set-kind", "regex");
    await write(page);
    assert.match(await written(page), /^.{5}，.{5}。$/);
    await page.selectOption("#set-kind", "grammar");
    await write(page);
    assert.match(await written(page), /^.{5}，.{5}。$/);
    await page.selectOption("#set-kind", "json_schema");
    await set(page, "json_schema", "{");
    await page.click("#go");
    assert.match(await page.textContent("#error"), /^JSON Schema: /);
    await page.context().close();
  },
  async "an alternative is chosen, and the text goes on from there"() {
    const page = await open();
    await set(page, "seed", 3);
    await write(page);
    const first = [...await written(page)];
    await page.locator(".token").nth(6).click();
    const other = page.locator("#alternatives-list button:not(.chosen):not(:disabled)").first();
    const token = await other.locator(".char").textContent();
    await shot(page, "alternatives");
    await other.click();
    await page.waitForFunction((n) => document.querySelectorAll(".token").length > n, 8);
    await ended(page);
    const second = [...await written(page)];
    assert.equal(second.slice(0, 6).join(""), first.slice(0, 6).join(""));
    assert.equal(second[6], [...token][0]);
    assert.equal(await page.locator(".token.hand .char").textContent(), token);
    const end = second.slice(-3).join("");
    await page.waitForFunction((text) => document.querySelector("#next-place").textContent.includes(`${text} ▸`), end);
    const row = page.locator("#next-list button:not(:disabled)").nth(1);
    const next = await row.locator(".char").textContent();
    await row.click();
    await ended(page);
    assert.ok((await page.inputValue("#prompt")).endsWith(next));
    await page.context().close();
  },
  async "markup in a prompt and in an answer is text"() {
    const page = await open();
    const markup = "<img src=x onerror=document.title=1><b>春";
    await page.fill("#prompt", markup);
    await page.selectOption("#set-kind", "choice");
    await set(page, "choice", "<i>春风</i>");
    await write(page);
    assert.ok((await page.textContent("#output")).startsWith(markup));
    assert.equal(await written(page), "<i>春风</i>");
    assert.equal(await page.locator("#output img, #output b").count(), 0);
    assert.equal(await page.title(), "Kvasir");
    await page.context().close();
  },
  async "the cache is drawn, hits and sharing too"() {
    const page = await open();
    await page.fill("#prompt", "春风".repeat(20));
    await set(page, "max_tokens", 80);
    await set(page, "n", 3);
    // Blocks are held while a text is written: on a busy machine the page may look too late.
    for (let i = 0; i < 10 && await page.locator(".block.shared").count() === 0; ++i) await write(page);
    assert.equal(await page.locator(".choice").count(), 3);
    await page.waitForSelector("#cache-blocks .block.shared");
    await write(page);
    assert.match(await page.textContent("#status"), /[1-9]\d* of 40 prompt tokens from the cache/);
    await page.waitForSelector("#cache-blocks .block.hit");
    assert.match(await page.textContent("#cache-facts"), /dtype=f32/);
    await page.waitForSelector("#cache-blocks .block.kept.hit");  // The prompt's, left for the next.
    assert.match(await page.locator(".block.kept.hit").first().getAttribute("title"), /f32, .*hits: [1-9]/);
    await page.locator("section.cache").screenshot({ path: path.join(folder, "cache.png") });
    await page.click("[data-group=access] summary");
    await set(page, "cache_salt", "another");
    await page.locator("#set-cache_salt").blur();
    await page.waitForFunction(() => !document.querySelector("#cache-blocks .block"));
    await page.context().close();
  },
  async "measures with the cache and without"() {
    const page = await open();
    await page.click("#measure");
    await ended(page);
    assert.match(await page.textContent("#timing-status"), /same every time/);
    assert.equal(await page.locator("#timing-chart circle").count(), 16);
    await page.locator("section.timing").screenshot({ path: path.join(folder, "timing.png") });
    await page.context().close();
  },
  async "by the keyboard alone"() {
    const page = await open();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.focus("#prompt");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("秋月");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(".token");
    await ended(page);
    const reached = async (selector) => {
      for (let i = 0; i < 12; ++i) {
        if (await page.evaluate((s) => document.activeElement.matches(s), selector)) return;
        await page.keyboard.press("Tab");
      }
      assert.fail(`Tab does not reach ${selector}`);
    };
    await reached(".token");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".token")].findIndex((e) => e.ariaExpanded === "true")), 2);
    await page.keyboard.press("Escape");
    assert.ok(await page.isHidden("#alternatives"));
    assert.ok(await page.evaluate(() => document.activeElement.matches(".token")));
    const unnamed = await page.$$eval("button, input, select, textarea", (all) => all.filter((e) =>
      !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map((e) => e.outerHTML));
    assert.deepEqual(unnamed, []);
    await page.context().close();
  },
  async "three languages, two themes, a phone"() {
    const page = await open();
    await set(page, "seed", 7);
    await page.fill("#prompt", "春风又绿江南岸，明月何时照我还。".repeat(2));
    await set(page, "n", 2);
    await set(page, "max_tokens", 64);
    await write(page);
    await write(page);
    await page.click("#measure");
    await ended(page);
    await shot(page, "light");
    await page.selectOption("#theme", "dark");
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
    await shot(page, "dark");
    await page.selectOption("#theme", "light");
    for (const [language, word] of [["de", "Schreiben"], ["zh", "写作"]]) {
      await page.selectOption("#language", language);
      assert.equal(await page.textContent("#write-title"), word);
      assert.equal(await page.getAttribute("html", "lang"), language);
      await shot(page, language);
    }
    await page.reload();
    assert.equal(await page.inputValue("#language"), "zh");  // Remembered.
    await page.context().close();
    const small = { viewport: { width: 375, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
    for (const [locale, name, scheme] of [["de-AT", "phone-de", "dark"], ["en-US", "phone", "light"], ["zh-CN", "phone-zh", "light"]]) {
      const phone = await open({ ...small, locale, colorScheme: scheme });
      assert.equal(await phone.getAttribute("html", "lang"), locale.slice(0, 2));
      await phone.tap("#go");
      await phone.waitForSelector(".token");
      await ended(phone);
      const wide = await phone.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 375, `${name} is ${wide} pixels wide`);
      assert.equal(await phone.getAttribute("html", "data-theme"), scheme);
      await shot(phone, name);
      await phone.context().close();
    }
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  assert.deepEqual(faults, []);
  console.log(`${name}: as it should be`);
}
await browser.close();
