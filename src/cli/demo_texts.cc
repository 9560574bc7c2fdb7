#include "cli/demo_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_output.h"

namespace kvasir::cli {
namespace {

constexpr DemoTexts kEnglish = {
    .title = "Kvasir: writing Tang poems, and what a KV cache changes",
    .model =
        "The model: a character-level GPT-2 of {} layers × {} channels, {} heads, context {}, "
        "vocabulary {}, {} parameters.",
    .seed = "Every draw below comes from the seed {}; the same seed gives the same text.",
    .no_corpus =
        "To see also how long a run of each sample stands in the corpus, and to count live: unpack "
        "the npm package chinese-poetry 2.0.1, then\n"
        "  kvasir corpus tang package -o DIR\n  kvasir demo --corpus DIR/tang.txt",
    .corpus = "The corpus: {}, {} poems, {} characters.",

    .next_title = "The model only gives probabilities",
    .next_look =
        "After a text each of the {} tokens gets a score, and softmax turns scores into "
        "probabilities. These are the 8 most probable next characters, in percent. Look "
        "for: how thinly probability is spread, and how plausible all of them are.",
    .next_famous = "The famous poem goes on with {}. Here it is number {} with {} %: {}.",
    .next_among = "among the first 8",
    .next_not_among = "not among the first 8",
    .next_memory = "So the model has not memorised the poems.",
    .next_edition = "(In the Complete Tang Poems the second one reads 床前看月光 … 举头望山月.)",
    .next_count_known =
        "春风 stands {} times in the corpus, {} times followed by 。: {} %. The "
        "model says {} %. (Counted by kvasir corpus tang.)",
    .next_count_live =
        "春风 stands {} times in this corpus, {} times followed by 。: {} %. The "
        "model says {} %.",
    .next_frequencies = "How often what follows what: that is what it has learned.",

    .temperature_title = "Three temperatures, one seed",
    .temperature_look =
        "Generating is: get the probabilities, draw a character, append it, repeat. The "
        "temperature T divides the scores before softmax. Look for: 0.3 is fluent, common, alike; "
        "1.0 is varied, with some rare characters; 1.5 breaks the form.",
    .temperature_tail = "T = {}: beyond the 100 most probable characters lie {} % of all draws.",
    .temperature_why =
        "Thousands of improbable characters together get a large share, and one odd "
        "choice leads to the next. (Shares at the start of a poem.)",
    .run = "longest run that stands in the corpus: {} characters, {}",

    .filter_title = "Top-k and top-p at T = 1.5",
    .filter_look =
        "Top-k draws from the k best only, top-p from the smallest set whose probability reaches "
        "p. Look for: the form is back, rare characters are gone, and there is more variety than "
        "at 0.3.",
    .filter_sizes = "{}: drawn from {} to {} candidates.",

    .opening_title = "Going on from a given opening",
    .opening_look =
        "T = 0.8. Even 人工智能 (artificial intelligence), never seen as a word, can "
        "be continued: each of its characters is in the vocabulary.",

    .form_title = "Acrostics and fixed forms: constrained decoding",
    .form_look =
        "What is forbidden gets −∞ before choosing. The program sets the first character of a line "
        "and the marks ， and 。; inside a line the model may write neither marks nor line breaks. "
        "Look for: the given characters, read downwards. The same principle lets a server "
        "guarantee valid JSON.",
    .form_acrostic = "{}, {} characters a line",
    .form_qijue = "a qijue: characters 8, 16, 24 and 32 are marks, and no others",
    .form_check = "{} of {} qijue drawn at T = {} keep their form.",

    .cache_title = "The KV cache: the same bits, less work, more memory",
    .cache_look =
        "Without a cache, character 50 computes all 49 before it once more, though the causal mask "
        "means that nothing about them has changed. With it, their keys and values are kept and "
        "each step computes one position. Look for: equal logits, bit for bit, and a gain that "
        "grows with the length.",
    .cache_threads = "Threads: {}. (--threads N for more; only the times change.)",
    .cache_head_length = "characters",
    .cache_head_positions = "positions with / without",
    .cache_head_time = "ms with / without",
    .cache_head_ratio = "gain",
    .cache_head_bits = "logits",
    .cache_equal = "same bits",
    .cache_different = "DIFFERENT",
    .cache_sums = "For {} characters, {} positions were processed with the cache and {} without.",
    .cache_why =
        "Why the results agree: causal mask → a position depends on itself and those before it → "
        "its key and value never change → keeping them is exact. In floating point this holds only "
        "if sums are always taken in the same order: that is Kvasir's contract.",
    .cache_memory =
        "The price is memory: 2 (k and v) × {} layers × {} channels × 4 bytes = {} "
        "bytes a token, {} tokens: {} bytes.",
    .cache_held = "Held here after {} characters, in blocks of {} positions: {} bytes.",
    .cache_large =
        "Large models need hundreds of kilobytes a token and more (GPT-3 175B in f16: 2 × 96 "
        "layers × 12,288 × 2 bytes = 4.5 MiB), with many users more than their weights. Hence "
        "grouped-query attention (heads share k and v), multi-head latent attention (both kept as "
        "one smaller vector), caches managed in pages, and providers' cheap cached input: the k "
        "and v of a common beginning, fetched instead of computed.",
    .cache_long = "And with a context of {}: random weights of the same shape, {} characters.",
    .end = "Go on: kvasir next TEXT · kvasir generate -p TEXT --trace · kvasir verify",
};

constexpr DemoTexts kGerman = {
    .title = "Kvasir: Tang-Gedichte schreiben, und was ein KV-Cache daran ändert",
    .model =
        "Das Modell: ein GPT-2 auf Zeichenebene mit {} Schichten × {} Kanälen, {} Köpfen, "
        "Kontext {}, Vokabular {}, {} Parametern.",
    .seed = "Jede Ziehung unten stammt aus dem Startwert {}; gleicher Startwert, gleicher Text.",
    .no_corpus =
        "Wie lange Stücke jeder Probe im Korpus stehen, und live gezählte Häufigkeiten, zeigt die "
        "Demo mit dem Korpus: npm-Paket chinese-poetry 2.0.1 auspacken, dann\n"
        "  kvasir corpus tang package -o DIR\n  kvasir demo --lang de --corpus DIR/tang.txt",
    .corpus = "Das Korpus: {}, {} Gedichte, {} Zeichen.",

    .next_title = "Das Modell liefert nur Wahrscheinlichkeiten",
    .next_look =
        "Nach einem Text bekommt jedes der {} Token eine Punktzahl; Softmax macht daraus "
        "Wahrscheinlichkeiten. Hier die 8 wahrscheinlichsten nächsten Zeichen, in "
        "Prozent. Zu sehen: wie dünn die Wahrscheinlichkeit verteilt ist, und dass alle "
        "diese Zeichen passen würden.",
    .next_famous =
        "Das berühmte Gedicht geht mit {} weiter. Hier steht es auf Platz {} mit {} %: "
        "{}.",
    .next_among = "unter den ersten 8",
    .next_not_among = "nicht unter den ersten 8",
    .next_memory = "Das Modell hat die Gedichte also nicht auswendig gelernt.",
    .next_edition =
        "(In den Gesammelten Tang-Gedichten lautet das zweite 床前看月光 … 举头望山月.)",
    .next_count_known =
        "春风 steht {}-mal im Korpus, {}-mal gefolgt von 。: {} %. Das Modell sagt "
        "{} %. (Gezählt mit kvasir corpus tang.)",
    .next_count_live =
        "春风 steht {}-mal in diesem Korpus, {}-mal gefolgt von 。: {} %. Das Modell "
        "sagt {} %.",
    .next_frequencies = "Wie oft was auf was folgt: das hat es gelernt.",

    .temperature_title = "Drei Temperaturen, ein Startwert",
    .temperature_look =
        "Erzeugen heißt: Wahrscheinlichkeiten holen, ein Zeichen ziehen, anhängen, von vorn. Die "
        "Temperatur T teilt die Punktzahlen vor dem Softmax. Zu sehen: 0,3 ist flüssig, gewöhnlich "
        "und einförmig; 1,0 abwechslungsreich, mit einzelnen seltenen Zeichen; bei 1,5 zerfällt "
        "die Form.",
    .temperature_tail = "T = {}: auf Zeichen jenseits der 100 wahrscheinlichsten entfallen {} %.",
    .temperature_why =
        "Tausende unwahrscheinlicher Zeichen haben zusammen einen großen Anteil, und "
        "eine seltsame Wahl zieht die nächste nach sich. (Anteile am Anfang eines "
        "Gedichts.)",
    .run = "längstes Stück, das im Korpus steht: {} Zeichen, {}",

    .filter_title = "Top-k und Top-p bei T = 1,5",
    .filter_look =
        "Top-k zieht nur aus den k besten Zeichen, Top-p aus der kleinsten Menge, deren "
        "Wahrscheinlichkeit p erreicht. Zu sehen: die Form ist wieder da, seltene Zeichen sind "
        "fort, und es ist mehr Abwechslung als bei 0,3.",
    .filter_sizes = "{}: gezogen aus {} bis {} Kandidaten.",

    .opening_title = "Einen gegebenen Anfang fortsetzen",
    .opening_look =
        "T = 0,8. Sogar 人工智能 (künstliche Intelligenz), als Wort nie gesehen, lässt "
        "sich fortsetzen: jedes seiner Zeichen steht im Vokabular.",

    .form_title = "Akrostichen und feste Formen: gelenktes Erzeugen",
    .form_look =
        "Verbotenes bekommt vor der Wahl −∞. Das Programm setzt das erste Zeichen jeder Zeile und "
        "die Satzzeichen ， und 。; innerhalb einer Zeile darf das Modell weder Satzzeichen noch "
        "Zeilenumbrüche schreiben. Zu sehen: die vorgegebenen Zeichen, von oben nach unten "
        "gelesen. Nach demselben Prinzip garantiert ein Server gültiges JSON.",
    .form_acrostic = "{}, {} Zeichen je Zeile",
    .form_qijue = "ein Qijue: die Zeichen 8, 16, 24 und 32 sind Satzzeichen, sonst keines",
    .form_check = "{} von {} bei T = {} gezogenen Qijue halten ihre Form ein.",

    .cache_title = "Der KV-Cache: dieselben Bits, weniger Arbeit, mehr Speicher",
    .cache_look =
        "Ohne Cache rechnet Zeichen 50 alle 49 davor noch einmal, obwohl sich an ihnen wegen der "
        "kausalen Maske nichts geändert hat. Mit Cache bleiben ihre Schlüssel und Werte erhalten, "
        "und jeder Schritt rechnet eine Position. Zu sehen: Bit für Bit gleiche Logits, und ein "
        "Gewinn, der mit der Länge wächst.",
    .cache_threads = "Threads: {}. (Mehr mit --threads N; nur die Zeiten ändern sich.)",
    .cache_head_length = "Zeichen",
    .cache_head_positions = "Positionen mit / ohne",
    .cache_head_time = "ms mit / ohne",
    .cache_head_ratio = "Gewinn",
    .cache_head_bits = "Logits",
    .cache_equal = "bitgleich",
    .cache_different = "VERSCHIEDEN",
    .cache_sums = "Für {} Zeichen wurden mit Cache {} Positionen gerechnet, ohne ihn {}.",
    .cache_why =
        "Warum die Ergebnisse gleich sind: kausale Maske → jede Position hängt nur von sich und "
        "den früheren ab → ihr Schlüssel und Wert ändern sich nie → sie aufzuheben ist exakt. In "
        "Gleitkommazahlen gilt das nur, wenn immer in derselben Reihenfolge addiert wird: das ist "
        "Kvasirs Vertrag.",
    .cache_memory =
        "Der Preis ist Speicher: 2 (k und v) × {} Schichten × {} Kanäle × 4 Bytes = {} "
        "Bytes je Token, {} Token: {} Bytes.",
    .cache_held = "Hier belegt nach {} Zeichen, in Blöcken von {} Positionen: {} Bytes.",
    .cache_large =
        "Große Modelle brauchen Hunderte Kilobytes je Token und mehr (GPT-3 175B in f16: 2 × 96 "
        "Schichten × 12.288 × 2 Bytes = 4,5 MiB), bei vielen Nutzern mehr als ihre Gewichte. Daher "
        "Grouped-Query Attention (Köpfe teilen sich k und v), Multi-Head Latent Attention (beide "
        "als ein kleinerer Vektor), in Seiten verwaltete Caches und billige gecachte Eingaben der "
        "Anbieter: k und v eines gemeinsamen Anfangs werden geholt statt gerechnet.",
    .cache_long = "Und mit Kontext {}: Zufallsgewichte derselben Form, {} Zeichen.",
    .end = "Weiter: kvasir next TEXT · kvasir generate -p TEXT --trace · kvasir verify",
};

constexpr DemoTexts kChinese = {
    .title = "Kvasir：写唐诗，看 KV 缓存改变了什么",
    .model = "模型：字符级 GPT-2，{} 层 × {} 维，{} 个头，上下文 {}，词表 {}，参数 {} 个。",
    .seed = "以下每次抽取都来自种子 {}；种子相同，文字就相同。",
    .no_corpus =
        "想看每个样本与语料重合的最长片段，并现场计数：先解开 npm 包 chinese-poetry "
        "2.0.1，再运行\n"
        "  kvasir corpus tang package -o DIR\n  kvasir demo --lang zh --corpus DIR/tang.txt",
    .corpus = "语料：{}，{} 首诗，{} 个字符。",

    .next_title = "模型只给出概率",
    .next_look =
        "给定一段文字，{} 个词元各得一个分数，softmax 把分数变成概率。下面是最可能的 8 "
        "个后续字符（百分比）。请看：概率分得多么分散，而这些字又都说得通。",
    .next_famous = "名句的下一个字是 {}，在这里排第 {}，概率 {} %：{}。",
    .next_among = "在前 8 名之内",
    .next_not_among = "不在前 8 名之内",
    .next_memory = "可见模型并没有背下这些诗。",
    .next_edition = "（《全唐诗》中第二首作 床前看月光 … 举头望山月。）",
    .next_count_known =
        "语料中 春风 出现 {} 次，其中 {} 次后面是 。，占 {} %；模型给出的概率是 {} "
        "%。（由 kvasir corpus tang 计数。）",
    .next_count_live =
        "这份语料中 春风 出现 {} 次，其中 {} 次后面是 。，占 {} %；模型给出的概率是 "
        "{} %。",
    .next_frequencies = "什么后面常跟什么，这就是它学到的东西。",

    .temperature_title = "三种温度，同一颗种子",
    .temperature_look =
        "生成就是：取概率，抽一个字，接到后面，再重复。分数先除以温度 T，再做 softmax。请看：0.3 "
        "流畅、"
        "常见、雷同；1.0 多样，偶有生僻字；1.5 连格式也散了。",
    .temperature_tail = "T = {}：最可能的 100 个字之外，合计占 {} %。",
    .temperature_why =
        "成千上万个不太可能的字加起来占了很大的份额，而一个怪字又会引出下一个怪字。"
        "（按一首诗开头处的概率计算。）",
    .run = "与语料重合的最长片段：{} 个字，{}",

    .filter_title = "T = 1.5 时的 top-k 与 top-p",
    .filter_look =
        "top-k 只从最可能的 k 个字里抽；top-p 只从概率之和达到 p "
        "的最小集合里抽。请看：格式回来了，生僻字不见了，变化又比 0.3 时多。",
    .filter_sizes = "{}：候选字从 {} 个到 {} 个。",

    .opening_title = "给定开头往下写",
    .opening_look = "T = 0.8。连从未作为词出现过的 人工智能 也能续写，因为每个字都在词表里。",

    .form_title = "藏头诗与固定格式：受约束的解码",
    .form_look =
        "被禁止的选项在选择之前得到 −∞。每句的第一个字和 ， 。 "
        "由程序放好；一句之内，模型不能写标点，也不能换行。请看：把各句首字竖着读。"
        "服务器保证输出合法的 JSON，用的是同一个原理。",
    .form_acrostic = "{}，每句 {} 字",
    .form_qijue = "一首七绝：第 8、16、24、32 个字符是标点，别处都不是",
    .form_check = "合格 {} 首，共抽取七绝 {} 首（T = {}）。",

    .cache_title = "KV 缓存：结果逐位相同，计算更少，内存更多",
    .cache_look =
        "没有缓存时，写第 50 个字要把前面 49 "
        "个字重算一遍，尽管有因果掩码，它们什么也没有变。有了缓存，它们的 k 和 v "
        "都留着，每一步只算一个位置。请看：logits 逐位相同，而且越长省得越多。",
    .cache_threads = "线程数：{}。（--threads N 可以加多；变的只有时间。）",
    .cache_head_length = "字数",
    .cache_head_positions = "位置数 有 / 无",
    .cache_head_time = "毫秒 有 / 无",
    .cache_head_ratio = "倍数",
    .cache_head_bits = "logits",
    .cache_equal = "逐位相同",
    .cache_different = "不同！",
    .cache_sums = "写 {} 个字，有缓存时共算 {} 个位置，没有时共算 {} 个。",
    .cache_why =
        "为什么结果相同：因果掩码 → 每个位置只取决于自己和之前的位置 → 它的 k 和 v 永不改变 "
        "→ 存下来就是精确的。对浮点数来说，还要求加法的次序始终不变：这正是 Kvasir 的约定。",
    .cache_memory =
        "代价是内存：2（k 和 v）× {} 层 × {} 维 × 4 字节 = 每个词元 {} 字节；{} 个词元共 "
        "{} 字节。",
    .cache_held = "这里写完 {} 个字之后，以每块 {} 个位置计，实占 {} 字节。",
    .cache_large =
        "大模型每个词元要几百 KB 甚至更多（GPT-3 175B，f16：2 × 96 层 × 12,288 × 2 字节 = 4.5 "
        "MiB），用户一多，就超过权重本身。于是有了分组查询注意力（多个头共用 k 和 "
        "v）、多头潜在注意力（把两者存成一个较小的向量）、分页管理的缓存，以及服务商便宜的“缓存输入"
        "”："
        "相同开头的 k 和 v 直接取用，不再重算。",
    .cache_long = "再看上下文 {}：同样形状的随机权重，写 {} 个字。",
    .end = "接下来：kvasir next 文字 · kvasir generate -p 文字 --trace · kvasir verify",
};

}  // namespace

base::Result<DemoLanguage> ParseDemoLanguage(std::string_view code) {
  if (code == "en") return DemoLanguage::kEnglish;
  if (code == "de") return DemoLanguage::kGerman;
  if (code == "zh") return DemoLanguage::kChinese;
  return base::MakeError(base::ErrorCode::kUsage, "--lang is '{}': it must be en, de or zh",
                         OneLine(code));
}

const DemoTexts& DemoTextsOf(DemoLanguage language) {
  switch (language) {
    case DemoLanguage::kGerman:
      return kGerman;
    case DemoLanguage::kChinese:
      return kChinese;
    case DemoLanguage::kEnglish:
      break;
  }
  return kEnglish;
}

std::string DemoInteger(DemoLanguage language, std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  const char separator = language == DemoLanguage::kGerman ? '.' : ',';
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, separator);
  return digits;
}

std::string DemoDecimal(DemoLanguage language, double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (language == DemoLanguage::kGerman) std::replace(text.begin(), text.end(), '.', ',');
  return text;
}

}  // namespace kvasir::cli
