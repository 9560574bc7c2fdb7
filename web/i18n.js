// What the page says, in three languages.
// Of each text: English, German, Chinese.
const LANGUAGES = ["en", "de", "zh"];
const TEXTS = {
  skip: ["To the prompt", "Zum Textanfang", "跳到开头文字"],
  language: ["Language", "Sprache", "语言"],
  theme: ["Colours", "Farben", "配色"],
  themeAuto: ["Auto", "Automatisch", "自动"],
  themeLight: ["Light", "Hell", "浅色"],
  themeDark: ["Dark", "Dunkel", "深色"],
  write: ["Write", "Schreiben", "写作"],
  prompt: ["The text goes on from", "Der Text geht weiter nach", "从这里写下去"],
  go: ["Write", "Schreiben", "写"],
  stop: ["Stop", "Halt", "停"],
  more: ["Continue", "Weiter", "接着写"],
  showBars: ["Probabilities", "Wahrscheinlichkeiten", "显示概率"],
  nothingYet: ["Nothing written yet.", "Noch nichts geschrieben.", "还没有写。"],
  settings: ["Settings", "Einstellungen", "设置"],
  measure: ["Measure", "Messen", "测量"],
  next: ["The next token", "Das nächste Token", "下一个词元"],
  nextHint: [
    "What may come here, before and after temperature, top-k, top-p and min-p. Choose one to " +
      "go on with it.",
    "Was hier kommen kann, vor und nach Temperatur, Top-k, Top-p und Min-p. Ein Klick " +
      "schreibt damit weiter.",
    "此处可能出现什么，在温度、top-k、top-p、min-p 之前和之后。点一下就用它写下去。",
  ],
  before: ["the model’s own", "vom Modell", "模型原本"],
  after: ["after the settings", "nach den Einstellungen", "设置之后"],
  beginning: ["(beginning)", "(Anfang)", "（开头）"],
  full: [
    "The context is full: nothing can come next.",
    "Der Kontext ist voll: Es kann nichts mehr kommen.",
    "上下文已满，不能再写。",
  ],
  nextCount: [
    "{candidates} tokens may be drawn. The listed ones hold {shown} of the model’s probability.",
    "{candidates} Token können gezogen werden. Die gezeigten haben {shown} der " +
      "Wahrscheinlichkeit des Modells.",
    "可能抽到 {candidates} 个词元。所列各项占模型概率的 {shown}。",
  ],
  cache: ["The KV cache", "Der KV-Cache", "KV 缓存"],
  cacheHint: [
    "Blocks that this tenant’s texts hold while they are written.",
    "Blöcke, die Texte dieses Mandanten halten, während sie entstehen.",
    "本租户的文字在写作时占用的块。",
  ],
  own: ["own", "eigen", "独有"],
  shared: ["shared (×holders)", "geteilt (×Halter)", "共享（×占用数）"],
  hit: ["found in the cache", "im Cache gefunden", "缓存命中"],
  gone: ["outside the window", "außerhalb des Fensters", "窗口之外"],
  cacheEmpty: ["No block is held now.", "Gerade wird kein Block gehalten.", "现在没有占用任何块。"],
  cacheLast: [
    "While the last text was written:",
    "Während der letzte Text entstand:",
    "上一段文字写作时：",
  ],
  kept: ["Kept for later", "Für später behalten", "留待后用"],
  keptKey: ["kept for later (↻hits)", "für später behalten (↻Treffer)", "留待后用（↻命中）"],
  keptRow: [
    "Of texts that have ended, by position: what begins alike goes on from here.",
    "Von beendeten Texten, nach Positionen: Was gleich beginnt, geht von hier aus weiter.",
    "已写完的文字，按位置排列：开头相同的文字从这里接着写。",
  ],
  policy: ["Kept (type, window)", "Gehalten (Typ, Fenster)", "保留（类型、窗口）"],
  blockSize: ["Block", "Block", "每块"],
  blocks: ["Blocks", "Blöcke", "块数"],
  bytes: ["Bytes", "Bytes", "字节"],
  saved: ["Saved by sharing", "Durch Teilen gespart", "共享节省"],
  hits: ["Hits, last text", "Treffer, letzter Text", "上次命中"],
  positions: ["{count} positions", "{count} Positionen", "{count} 个位置"],
  owner: [
    "Text {request}, choice {choice}",
    "Text {request}, Fassung {choice}",
    "文字 {request}，第 {choice} 份",
  ],
  stem: [
    "Prompt of text {request}, for all choices",
    "Anfang von Text {request}, für alle Fassungen",
    "文字 {request} 的开头，各份共用",
  ],
  blockTitle: [
    "Block {block}: positions {from} to {to}, {dtype}, holders: {holders}, hits: {hits}",
    "Block {block}: Positionen {from} bis {to}, {dtype}, Halter: {holders}, Treffer: {hits}",
    "块 {block}：位置 {from} 至 {to}，{dtype}，占用数 {holders}，命中 {hits} 次",
  ],
  timing: ["With the cache and without", "Mit Cache und ohne", "有缓存与无缓存"],
  timingHint: [
    "Milliseconds for one token after prompts of growing length, with nothing of them in the " +
      "cache and with everything.",
    "Millisekunden für ein Token nach Anfängen wachsender Länge, wenn im Cache nichts von " +
      "ihnen steht und wenn alles.",
    "开头越来越长时，写一个词元所需的毫秒数：缓存里什么都没有，或全都有。",
  ],
  cold: ["without", "ohne", "无缓存"],
  warm: ["with", "mit", "有缓存"],
  measuring: ["Measuring …", "Messung läuft …", "正在测量……"],
  timingSaid: [
    "{length} tokens: {cold} without, {warm} with {cached} of them from the cache. {same}",
    "{length} Token: {cold} ohne, {warm} mit {cached} davon aus dem Cache. {same}",
    "{length} 个词元：无缓存 {cold}，有缓存 {warm}（其中 {cached} 个取自缓存）。{same}",
  ],
  sameYes: [
    "The tokens are the same every time.",
    "Die Token sind jedes Mal dieselben.",
    "每次得到的词元都相同。",
  ],
  sameNo: [
    "The tokens differ: please report this.",
    "Die Token sind verschieden: Bitte melden.",
    "得到的词元不同：请报告此问题。",
  ],
  tokenLabel: ["{token}, {p}", "{token}, {p}", "{token}，{p}"],
  alternativesTo: ["In place of “{token}”", "Anstelle von „{token}“", "换掉“{token}”"],
  alternativesFixed: [
    "Once the text is written, one of these can be chosen.",
    "Sobald der Text geschrieben ist, lässt sich eines davon wählen.",
    "写完之后可以选其中一个。",
  ],
  statusTokens: ["{count} tokens", "{count} Token", "{count} 个词元"],
  statusFirst: ["first after {ms}", "das erste nach {ms}", "首个用时 {ms}"],
  statusSpeed: ["{rate} tokens/s", "{rate} Token/s", "每秒 {rate} 个"],
  statusCached: [
    "{cached} of {prompt} prompt tokens from the cache",
    "{cached} von {prompt} Token des Anfangs aus dem Cache",
    "开头 {prompt} 个词元中 {cached} 个取自缓存",
  ],
  statusSeed: ["seed {seed}", "Startzahl {seed}", "种子 {seed}"],
  reason_stop: ["complete", "vollständig", "已写完"],
  reason_length: ["length reached", "Länge erreicht", "已到长度上限"],
  reason_stopped: ["stopped", "angehalten", "已停止"],
  modelSaid: [
    "{name} · {parameters} parameters · context {context} · {vocabulary} tokens",
    "{name} · {parameters} Parameter · Kontext {context} · {vocabulary} Token",
    "{name} · {parameters} 个参数 · 上下文 {context} · {vocabulary} 个词元",
  ],
  group_sampling: ["How to draw", "Wie gezogen wird", "怎样抽取"],
  group_length: ["How much", "Wie viel", "写多少"],
  group_constraint: ["Forms and constraints", "Formen und Vorgaben", "体裁与约束"],
  group_access: ["Tenant and key", "Mandant und Schlüssel", "租户与密钥"],
  temperature: ["Temperature", "Temperatur", "温度"],
  temperatureHint: ["0: always the most probable", "0: immer das wahrscheinlichste", "0：总取概率最大的"],
  top_k: ["Top-k", "Top-k", "Top-k"],
  top_kHint: ["0: off", "0: aus", "0：不用"],
  top_p: ["Top-p", "Top-p", "Top-p"],
  min_p: ["Min-p", "Min-p", "Min-p"],
  repetition_penalty: ["Repetition penalty", "Strafe für Wiederholung", "重复惩罚"],
  presence_penalty: ["Presence penalty", "Strafe für Vorkommen", "出现惩罚"],
  frequency_penalty: ["Frequency penalty", "Strafe für Häufigkeit", "频率惩罚"],
  seed: ["Seed", "Startzahl (Seed)", "种子"],
  seedHint: ["Empty: a new one each time", "Leer: jedes Mal eine neue", "留空：每次换新的"],
  max_tokens: ["Most tokens", "Höchstens Token", "最多词元"],
  n: ["Choices", "Fassungen", "份数"],
  stopStrings: ["Stop strings", "Endet vor", "遇到即停"],
  kind: ["Only texts that are", "Nur Texte dieser Art", "只写这样的文字"],
  kind_none: ["anything", "beliebig", "不限"],
  kind_acrostic: ["an acrostic", "Akrostichon", "藏头诗"],
  kind_verse: ["a Tang poem", "Tang-Gedicht", "近体诗"],
  kind_regex: ["a regular expression’s", "regulärer Ausdruck", "正则表达式"],
  kind_json_schema: ["JSON by a schema", "JSON nach Schema", "JSON Schema"],
  kind_grammar: ["a grammar’s (GBNF)", "Grammatik (GBNF)", "文法（GBNF）"],
  kind_choice: ["one of some texts", "einer von mehreren Texten", "几段文字之一"],
  form: ["Form", "Form", "体裁"],
  form_wujue: ["wujue, 4 × 5", "Wujue, 4 × 5", "五绝"],
  form_qijue: ["qijue, 4 × 7", "Qijue, 4 × 7", "七绝"],
  form_wulv: ["wulü, 8 × 5", "Wulü, 8 × 5", "五律"],
  form_qilv: ["qilü, 8 × 7", "Qilü, 8 × 7", "七律"],
  heads: ["Heads of the lines", "Anfänge der Zeilen", "各句首字"],
  headsHint: ["A Chinese character for each line", "Ein chinesisches Zeichen je Zeile", "每句一个汉字"],
  chars: ["Characters in a line", "Zeichen je Zeile", "每句字数"],
  tones: ["Keep the tones", "Töne einhalten", "讲平仄"],
  rhyme: ["Keep the rhyme", "Reim einhalten", "押韵"],
  rhyme_group: ["Rhyme with", "Reimt auf", "韵脚"],
  rhyme_groupHint: [
    "A character; needs the rhyme. Empty: any",
    "Ein Zeichen; braucht den Reim. Leer: beliebig",
    "一个字；须先选押韵。留空：不限",
  ],
  regex: ["Regular expression", "Regulärer Ausdruck", "正则表达式"],
  json_schema: ["JSON Schema", "JSON-Schema", "JSON Schema"],
  grammar: ["Grammar", "Grammatik", "文法"],
  choice: ["One a line", "Einer je Zeile", "每行一段"],
  cache_salt: ["Cache salt", "Cache-Salz", "缓存盐"],
  cache_saltHint: [
    "Texts of one salt share the cache. Empty: shared with everybody",
    "Texte mit gleichem Salz teilen den Cache. Leer: mit allen geteilt",
    "盐相同的文字共享缓存。留空：与所有人共享",
  ],
  api_key: ["API key", "API-Schlüssel", "API 密钥"],
};

let locale = "en";

export function setLanguage(to) { locale = LANGUAGES.includes(to) ? to : "en"; }

// The first of a browser's languages that the page has, else English.
export function language(wanted) {
  const short = wanted.map((tag) => tag.slice(0, 2).toLowerCase());
  return short.find((tag) => LANGUAGES.includes(tag)) || "en";
}

// The text of this name, its {places} filled in.
export function t(name, values = {}) {
  const text = TEXTS[name][LANGUAGES.indexOf(locale)];
  return text.replace(/\{(\w+)\}/g, (_, place) => String(values[place]));
}
t.has = (name) => name in TEXTS;

const format = (value, options) => new Intl.NumberFormat(locale, options).format(value);
export const number = (value) => format(value);
export function percent(p) {
  const maximumFractionDigits = p === 0 || p >= 0.9995 ? 0 : p < 0.01 ? 2 : 1;
  return format(p, { style: "percent", maximumFractionDigits });
}
export const ms = (value) => `${format(value, { maximumSignificantDigits: 3 })} ms`;
export function kib(bytes) {
  const text = (n, unit) => `${format(n, { maximumFractionDigits: 1 })} ${unit}`;
  return bytes < 1048576 ? text(bytes / 1024, "KiB") : text(bytes / 1048576, "MiB");
}
