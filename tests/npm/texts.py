"""Mixed-language texts for comparing tokenizers: the same for the same seed."""

import random

PHRASES = [
    "Hello, y'all! How are you", "The quick brown fox jumps over the lazy dog.",
    "I'm, you're, WE'LL",
    "it's don't I'd've THEY'RE", "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.",
    "Voix ambiguë d'un cœur qui au zéphyr préfère les jattes de kiwis", "¿Qué tal, señor? ¡Adiós!",
    "Příliš žluťoučký kůň úpěl ďábelské ódy", "Pchnąć w tę łódź jeża lub ośm skrzyń fig",
    "Съешь же ещё этих мягких французских булок", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "דג סקרן שט בים מאוכזב", "نص حكيم له سر قاطع وذو شأن عظيم", "यह एक परीक्षण वाक्य है।",
    "আমি বাংলায় গান গাই", "நான் தமிழ் பேசுகிறேன்", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "春风又绿江南岸，明月何时照我还？", "我想在apple工作1314151天～", "いろはにほへと ちりぬるを",
    "カタカナとひらがな、漢字。",
    "키스의 고유조건은 입술끼리 만나야 하고", "ძველი თბილისი", "Հայերեն",
    "Tiếng Việt có dấu",
    "cafe\u0301 nai\u0308ve a\u0323\u0302",
    "\u1112\u1161\u11AB\u1100\u1173\u11AF",
    "for (int i = 0; i < 10; ++i) {\n\tx[i] += 3.14159e-10;\n}",
    "def f(x):\n    return x**2  # square",
    "SELECT * FROM t WHERE a='b' AND c IS NOT NULL;", "<div class=\"a\">&nbsp;</div>\r\n",
    "https://example.org/a?b=c&d=%20#e", "{\"key\": [1, 22, 333, 4444, 55555]}", "$1,234,567.89 + 50%",
    "\U0001F409\U0001F600 \U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA",
    "№ ½ ² Ⅷ ٣٤٥ १२३ 〇 ① ½", "--==>> *** ___ ... !!! ??? ;;;", "“quotes” ‘single’ «guillemets» —–…",
    "\u00A0no-break\u2003em\u3000wide\u200Bzero",
]
SPACES = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n ", "\u3000", "",
          "\n\n\n  ", "        "]
RANGES = [(0x20, 0x7E), (0xA1, 0x17E), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA),
          (0x620, 0x64A), (0x905, 0x939), (0x93E, 0x94D), (0xE01, 0xE2E), (0x1100, 0x1112),
          (0x1161, 0x1175), (0x300, 0x36F), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2190, 0x21FF),
          (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3),
          (0x1F300, 0x1F64F), (0x20000, 0x2A6D6)]
# What JavaScript's regular expressions take otherwise than those that the vocabularies were made
# with: U+0085 is White_Space and U+FEFF is not; 'ſ is 's in any case.
LEFT_OUT = {0x85, 0xFEFF, 0x17F}


def random_characters(draw):
    first, last = draw.choice(RANGES)
    points = (draw.randint(first, last) for _ in range(draw.randint(1, 8)))
    return "".join(chr(point) for point in points if point not in LEFT_OUT)


def part(draw):
    kind = draw.random()
    phrase = draw.choice(PHRASES)
    if kind < 0.35:
        return phrase
    if kind < 0.55:  # A slice of one, which may begin with a mark.
        begin = draw.randrange(len(phrase))
        return phrase[begin:begin + draw.randint(1, 12)]
    if kind < 0.75:
        return random_characters(draw)
    if kind < 0.85:
        return str(draw.randrange(10 ** draw.randint(1, 12)))
    if kind < 0.95:
        return draw.choice([
            "'", '"', "(", ")", "-", "_", ".", ",", "/", "\\", "'s", "'T", "'ll", "#"])
    return draw.choice("aeiou .-=1春\u0301") * draw.randint(1, 40)


def make(seed, count):
    draw = random.Random(seed)
    texts = ["", " ", "\n", "a", "'", " '"] + PHRASES
    while len(texts) < count:
        pieces = []
        for _ in range(draw.randint(1, 10)):
            pieces += [part(draw), draw.choice(SPACES)]
        texts.append("".join(pieces))
    return texts[:count]
