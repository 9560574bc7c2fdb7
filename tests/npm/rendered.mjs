// node rendered.mjs TEMPLATE TALKS: what @huggingface/jinja makes of conversations (one a line) with
// a chat template; a JSON string or null a line on stdout.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { createRequire } from "node:module";

const [file, talks] = process.argv.slice(2);
const require = createRequire(path.join(process.cwd(), "package.json"));
const { Template } = require("@huggingface/jinja");
const template = new Template(fs.readFileSync(file, "utf8"));
for (const line of fs.readFileSync(talks, "utf8").split("\n").slice(0, -1)) {
  const messages = JSON.parse(line).map(([role, content]) => ({ role, content }));
  let text = null;
  try {
    text = template.render(
      { messages, add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>" });
  } catch {
    text = null;  // The template refuses them.
  }
  console.log(JSON.stringify(text));
}
