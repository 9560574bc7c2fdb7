// node expected.mjs PACKAGE TEXTS.json: what @huggingface/tokenizers makes of the texts with the
// vocabulary of a package; a JSON list of lists of ids on stdout.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { createRequire } from "node:module";

const [name, texts] = process.argv.slice(2);
const folder = process.cwd();
const require = createRequire(path.join(folder, "package.json"));
const { Tokenizer } = require("@huggingface/tokenizers");
const read = (file) =>
  JSON.parse(fs.readFileSync(path.join(folder, "node_modules", name, "models", file), "utf8"));
const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
const ids = JSON.parse(fs.readFileSync(texts, "utf8")).map(
  (text) => tokenizer.encode(text, { add_special_tokens: false }).ids);
process.stdout.write(JSON.stringify(ids));
