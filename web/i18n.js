// What the page says, in three languages.
const TEXTS = {
  en: {
    skip: "To the prompt", language: "Language", theme: "Colours", themeAuto: "Auto", themeLight: "Light", themeDark: "Dark",
    write: "Write", prompt: "The text goes on from", go: "Write", stop: "Stop", more: "Continue", showBars: "Probabilities",
    nothingYet: "Nothing written yet.", settings: "Settings", refresh: "Look again", measure: "Measure",
    next: "The next token", nextHint: "What may come at this place: to the model, and after temperature, top-k, top-p and min-p. A click goes on with it.",
    before: "the model’s own", after: "after the settings", beginning: "(beginning)", full: "The context is full: nothing can come next.",
    nextCount: "{candidates} tokens may be drawn. The listed ones hold {shown} of the model’s probability.",
    cache: "The KV cache", cacheHint: "Blocks of keys and values that this page’s texts hold while they are written. Other tenants’ are not shown.",
    own: "own", shared: "shared (×holders)", hit: "found in the cache", gone: "outside the window",
    cacheEmpty: "No block is held now: blocks show while a text is written.", cacheLast: "As it was while the last text was written:",
    policy: "Kept (type, window)", blockSize: "Block", blockBytes: "Bytes of a block", blocks: "Blocks", bytes: "Bytes", saved: "Saved by sharing", hits: "Hits, last text",
    positions: "{count} positions", owner: "Text {request}, choice {choice}", stem: "Prompt of text {request}, for all choices",
    blockTitle: "Block {block}: positions {from} to {to}, holders: {holders}",
    timing: "With the cache and without", timingHint: "The same prompts, with nothing to be found in the cache and with everything there. Milliseconds for one token, by the prompt’s length.",
    cold: "without", warm: "with", measuring: "Measuring …",
    timingSaid: "{length} tokens: {cold} without, {warm} with {cached} of them from the cache. {same}",
    sameYes: "The tokens are the same every time.", sameNo: "The tokens differ: please report this.",
    footer: "This page asks only the server that it came from.",
    tokenLabel: "{token}, {p}", alternativesTo: "In place of “{token}”", alternativesHint: "The model’s own probabilities. Choose one, and the text goes on from there.",
    alternativesFixed: "The model’s own probabilities. Under a constraint the text cannot be changed in the middle.",
    statusTokens: "{count} tokens", statusFirst: "first after {ms}", statusSpeed: "{rate} tokens/s", statusCached: "{cached} of {prompt} prompt tokens from the cache",
    statusSeed: "seed {seed}", keepSeed: "Use this seed again", reason_stop: "complete", reason_length: "length reached", reason_stopped: "stopped",
    modelSaid: "{name} · {parameters} parameters · context {context} · {vocabulary} tokens",
    group_sampling: "How to draw", group_length: "How much", group_constraint: "Forms and constraints", group_access: "Tenant and key",
    temperature: "Temperature", temperatureHint: "0: always the most probable", top_k: "Top-k", top_kHint: "0: off", top_p: "Top-p", min_p: "Min-p",
    repetition_penalty: "Repetition penalty", presence_penalty: "Presence penalty", frequency_penalty: "Frequency penalty",
    seed: "Seed", seedHint: "Empty: a new one each time", max_tokens: "Most tokens", n: "Choices", stopStrings: "Stop strings",
    kind: "Only texts that are", kind_none: "anything", kind_acrostic: "an acrostic", kind_verse: "a Tang poem", kind_regex: "a regular expression’s",
    kind_json_schema: "JSON by a schema", kind_grammar: "a grammar’s (GBNF)", kind_choice: "one of some texts",
    form: "Form", form_wujue: "wujue, 4 × 5", form_qijue: "qijue, 4 × 7", form_wulv: "wulü, 8 × 5", form_qilv: "qilü, 8 × 7",
    heads: "Heads of the lines", headsHint: "A Chinese character for each line", chars: "Characters in a line", tones: "Keep the tones", rhyme: "Keep the rhyme",
    rhyme_group: "Rhyme with", rhyme_groupHint: "A character; needs the rhyme. Empty: any", regex: "Regular expression", json_schema: "JSON Schema",
    grammar: "Grammar", choice: "One a line", cache_salt: "Cache salt", cache_saltHint: "Texts of one salt share the cache. Empty: shared with everybody",
    api_key: "API key", api_keyHint: "Only if the server asks for one; it is kept nowhere",
  },
  de: {
    skip: "Zum Textanfang", language: "Sprache", theme: "Farben", themeAuto: "Automatisch", themeLight: "Hell", themeDark: "Dunkel",
    write: "Schreiben", prompt: "Der Text geht weiter nach", go: "Schreiben", stop: "Halt", more: "Weiter", showBars: "Wahrscheinlichkeiten",
    nothingYet: "Noch nichts geschrieben.", settings: "Einstellungen", refresh: "Neu ansehen", measure: "Messen",
    next: "Das nächste Token", nextHint: "Was an dieser Stelle kommen kann: für das Modell, und nach Temperatur, Top-k, Top-p und Min-p. Ein Klick schreibt damit weiter.",
    before: "vom Modell", after: "nach den Einstellungen", beginning: "(Anfang)", full: "Der Kontext ist voll: Es kann nichts mehr kommen.",
    nextCount: "{candidates} Token können gezogen werden. Die gezeigten haben {shown} der Wahrscheinlichkeit des Modells.",
    cache: "Der KV-Cache", cacheHint: "Blöcke von Schlüsseln und Werten, die Texte dieser Seite halten, während sie entstehen. Die anderer Mandanten werden nicht gezeigt.",
    own: "eigen", shared: "geteilt (×Halter)", hit: "im Cache gefunden", gone: "außerhalb des Fensters",
    cacheEmpty: "Gerade wird kein Block gehalten: Blöcke erscheinen, während ein Text entsteht.", cacheLast: "So war es, während der letzte Text entstand:",
    policy: "Gehalten (Typ, Fenster)", blockSize: "Block", blockBytes: "Bytes je Block", blocks: "Blöcke", bytes: "Bytes", saved: "Durch Teilen gespart", hits: "Treffer, letzter Text",
    positions: "{count} Positionen", owner: "Text {request}, Fassung {choice}", stem: "Anfang von Text {request}, für alle Fassungen",
    blockTitle: "Block {block}: Positionen {from} bis {to}, Halter: {holders}",
    timing: "Mit Cache und ohne", timingHint: "Dieselben Anfänge, einmal ist im Cache nichts zu finden, einmal alles. Millisekunden für ein Token, nach Länge des Anfangs.",
    cold: "ohne", warm: "mit", measuring: "Messung läuft …",
    timingSaid: "{length} Token: {cold} ohne, {warm} mit {cached} davon aus dem Cache. {same}",
    sameYes: "Die Token sind jedes Mal dieselben.", sameNo: "Die Token sind verschieden: Bitte melden.",
    footer: "Diese Seite fragt nur den Server, von dem sie kommt.",
    tokenLabel: "{token}, {p}", alternativesTo: "Anstelle von „{token}“", alternativesHint: "Wahrscheinlichkeiten des Modells. Wähle eines, und der Text geht von dort aus weiter.",
    alternativesFixed: "Wahrscheinlichkeiten des Modells. Unter einer Vorgabe lässt sich der Text nicht mittendrin ändern.",
    statusTokens: "{count} Token", statusFirst: "das erste nach {ms}", statusSpeed: "{rate} Token/s", statusCached: "{cached} von {prompt} Token des Anfangs aus dem Cache",
    statusSeed: "Startzahl {seed}", keepSeed: "Diese Startzahl wieder verwenden", reason_stop: "vollständig", reason_length: "Länge erreicht", reason_stopped: "angehalten",
    modelSaid: "{name} · {parameters} Parameter · Kontext {context} · {vocabulary} Token",
    group_sampling: "Wie gezogen wird", group_length: "Wie viel", group_constraint: "Formen und Vorgaben", group_access: "Mandant und Schlüssel",
    temperature: "Temperatur", temperatureHint: "0: immer das wahrscheinlichste", top_k: "Top-k", top_kHint: "0: aus", top_p: "Top-p", min_p: "Min-p",
    repetition_penalty: "Strafe für Wiederholung", presence_penalty: "Strafe für Vorkommen", frequency_penalty: "Strafe für Häufigkeit",
    seed: "Startzahl (Seed)", seedHint: "Leer: jedes Mal eine neue", max_tokens: "Höchstens Token", n: "Fassungen", stopStrings: "Endet vor",
    kind: "Nur Texte dieser Art", kind_none: "beliebig", kind_acrostic: "Akrostichon", kind_verse: "Tang-Gedicht", kind_regex: "regulärer Ausdruck",
    kind_json_schema: "JSON nach Schema", kind_grammar: "Grammatik (GBNF)", kind_choice: "einer von mehreren Texten",
    form: "Form", form_wujue: "Wujue, 4 × 5", form_qijue: "Qijue, 4 × 7", form_wulv: "Wulü, 8 × 5", form_qilv: "Qilü, 8 × 7",
    heads: "Anfänge der Zeilen", headsHint: "Ein chinesisches Zeichen je Zeile", chars: "Zeichen je Zeile", tones: "Töne einhalten", rhyme: "Reim einhalten",
    rhyme_group: "Reimt auf", rhyme_groupHint: "Ein Zeichen; braucht den Reim. Leer: beliebig", regex: "Regulärer Ausdruck", json_schema: "JSON-Schema",
    grammar: "Grammatik", choice: "Einer je Zeile", cache_salt: "Cache-Salz", cache_saltHint: "Texte mit gleichem Salz teilen den Cache. Leer: mit allen geteilt",
    api_key: "API-Schlüssel", api_keyHint: "Nur wenn der Server einen verlangt; er wird nirgends gespeichert",
  },
  zh: {
    skip: "跳到开头文字", language: "语言", theme: "配色", themeAuto: "自动", themeLight: "浅色", themeDark: "深色",
    write: "写作", prompt: "从这里写下去", go: "写", stop: "停", more: "接着写", showBars: "显示概率",
    nothingYet: "还没有写。", settings: "设置", refresh: "再看一次", measure: "测量",
    next: "下一个词元", nextHint: "此处可能出现什么：模型原本的概率，以及经过温度、top-k、top-p、min-p 之后的概率。点一下就用它写下去。",
    before: "模型原本", after: "设置之后", beginning: "（开头）", full: "上下文已满，不能再写。",
    nextCount: "可能抽到 {candidates} 个词元。所列各项占模型概率的 {shown}。",
    cache: "KV 缓存", cacheHint: "本页文字在写作时占用的键值块。其他租户的不显示。",
    own: "独有", shared: "共享（×占用数）", hit: "缓存命中", gone: "窗口之外",
    cacheEmpty: "现在没有占用任何块：写作时才会出现。", cacheLast: "上一段文字写作时的样子：",
    policy: "保留（类型、窗口）", blockSize: "每块", blockBytes: "每块字节", blocks: "块数", bytes: "字节", saved: "共享节省", hits: "上次命中",
    positions: "{count} 个位置", owner: "文字 {request}，第 {choice} 份", stem: "文字 {request} 的开头，各份共用",
    blockTitle: "块 {block}：位置 {from} 至 {to}，占用数 {holders}",
    timing: "有缓存与无缓存", timingHint: "同样的开头：一次缓存里什么都没有，一次全都有。写一个词元所需的毫秒数，按开头长度排列。",
    cold: "无缓存", warm: "有缓存", measuring: "正在测量……",
    timingSaid: "{length} 个词元：无缓存 {cold}，有缓存 {warm}（其中 {cached} 个取自缓存）。{same}",
    sameYes: "每次得到的词元都相同。", sameNo: "得到的词元不同：请报告此问题。",
    footer: "本页只向提供它的服务器发送请求。",
    tokenLabel: "{token}，{p}", alternativesTo: "换掉“{token}”", alternativesHint: "模型原本的概率。选一个，文字就从那里接着写。",
    alternativesFixed: "模型原本的概率。有格式约束时，不能在中间改字。",
    statusTokens: "{count} 个词元", statusFirst: "首个用时 {ms}", statusSpeed: "每秒 {rate} 个", statusCached: "开头 {prompt} 个词元中 {cached} 个取自缓存",
    statusSeed: "种子 {seed}", keepSeed: "再用这个种子", reason_stop: "已写完", reason_length: "已到长度上限", reason_stopped: "已停止",
    modelSaid: "{name} · {parameters} 个参数 · 上下文 {context} · {vocabulary} 个词元",
    group_sampling: "怎样抽取", group_length: "写多少", group_constraint: "体裁与约束", group_access: "租户与密钥",
    temperature: "温度", temperatureHint: "0：总取概率最大的", top_k: "Top-k", top_kHint: "0：不用", top_p: "Top-p", min_p: "Min-p",
    repetition_penalty: "重复惩罚", presence_penalty: "出现惩罚", frequency_penalty: "频率惩罚",
    seed: "种子", seedHint: "留空：每次换新的", max_tokens: "最多词元", n: "份数", stopStrings: "遇到即停",
    kind: "只写这样的文字", kind_none: "不限", kind_acrostic: "藏头诗", kind_verse: "近体诗", kind_regex: "正则表达式",
    kind_json_schema: "JSON Schema", kind_grammar: "文法（GBNF）", kind_choice: "几段文字之一",
    form: "体裁", form_wujue: "五绝", form_qijue: "七绝", form_wulv: "五律", form_qilv: "七律",
    heads: "各句首字", headsHint: "每句一个汉字", chars: "每句字数", tones: "讲平仄", rhyme: "押韵",
    rhyme_group: "韵脚", rhyme_groupHint: "一个字；须先选押韵。留空：不限", regex: "正则表达式", json_schema: "JSON Schema",
    grammar: "文法", choice: "每行一段", cache_salt: "缓存盐", cache_saltHint: "盐相同的文字共享缓存。留空：与所有人共享",
    api_key: "API 密钥", api_keyHint: "服务器要求时才填；不会保存",
  },
};

let texts = TEXTS.en;
let locale = "en";

export function setLanguage(to) { locale = TEXTS[to] ? to : "en"; texts = TEXTS[locale]; }

// The first of a browser's languages that the page has, else English.
export function language(wanted) {
  return wanted.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => TEXTS[tag]) || "en";
}

// The text of this name, its {places} filled in.
export function t(name, values = {}) {
  return texts[name].replace(/\{(\w+)\}/g, (_, place) => String(values[place]));
}
t.has = (name) => name in texts;

const format = (value, options) => new Intl.NumberFormat(locale, options).format(value);
export const number = (value) => format(value);
export function percent(p) {
  return format(p, { style: "percent", maximumFractionDigits: p === 0 || p >= 0.9995 ? 0 : p < 0.01 ? 2 : 1 });
}
export const ms = (value) => `${format(value, { maximumSignificantDigits: 3 })} ms`;
export const kib = (bytes) => (bytes < 1048576 ? `${format(bytes / 1024, { maximumFractionDigits: 1 })} KiB`
  : `${format(bytes / 1048576, { maximumFractionDigits: 2 })} MiB`);
