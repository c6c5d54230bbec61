"""Makes two vocabularies, and what Hugging Face's tokenizers makes of 2,000 strings by each.

python3 golden.py, with tokenizers 0.23.3, transformers 5.24.0 and Python 3.11. It writes uncased/vocab.txt, with
tokenizer.json's defaults, cased/tokenizer.json, with accents, added tokens and spaces around them, and
golden.jsonl.gz: a text a line, and of either tokeniser the tokens as "id from to", where from is counted from the
end of the token before.
"""

import gzip
import json
import os
import random
import shutil
import unicodedata

import tokenizers
import transformers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

assert (tokenizers.__version__, transformers.__version__) == ("0.23.3", "5.24.0")
here = os.path.dirname(os.path.abspath(__file__))
rng = random.Random(7)

SENTENCES = """The film's hero-worship isn't unaffable, it's wonderful!  10.5% of $1,000.00 (re-watched).
Böhle trug im Müllersaal ein süßes Kleid; naïve façade, coöperate, Ångström, Øresund, Łódź, ﬁne ﬂow
Ελληνικά γράμματα: Ὀδυσσεύς, ΟΔΥΣΣΕΥΣ και ΣΊΣΥΦΟΣ· τέλος;
Привет, мир! Ёлки-палки, ЙОД и ещё їжак Ґанок
مَرْحَبًا بالعالم، كيف الحال؟ ١٢٣ لَا إِلٰهَ
שָׁלוֹם עוֹלָם, מה שלומך? ״ציטוט״ בְּרֵאשִׁית
नमस्ते दुनिया, क़िला ज़रूर हिन्दी में पढ़ो। श्रीमती
สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง น้ำใจ
你好，世界！今天天气很好。龍䶮𠀀𪚥 漢字と仮名　カタカナ ひらがな がぎぐ ﾊﾝｶｸ ｶﾞ
안녕하세요 세계! 한국어 텍스트 값싼 닭고기 ᄒᆞᆫ글
👨‍👩‍👧‍👦 family 🏳️‍🌈 flag 👍🏽 thumbs ☕️ 1️⃣ 🇩🇪 𝒜𝓁𝓅𝒽𝒶 𐐀𐐨 𝄞
Tiếng Việt có dấu: ắ ằ ẳ ẵ ặ, được rồi
தமிழ் மொழி கொடி பௌர்ணமி தெலுగు కన్నడ ಕನ್ನಡ മലയാളം ਪੰਜਾਬੀ বাংলা ဗမာ ខ្មែរ ລາວ བོད་སྐད འབྲུག
İstanbul ILGAZ ışık i̇ Iİıi ẞ ß ŉ ǰ ΐ Ǆ ǅ ǆ K Å Ω
""".strip().split("\n")

ODD = ("\u00a0\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2028\u2029\u2060\ufeff\u00ad\u0000\u0001\u001f\u007f\u0085"
       "\t\n\r\x0b\x0c\u3000\u1680\u2009\u180e\ufffd\ufffe\ue000\U000f0000\U0010ffff\u0378\u0301\u0300\u0323\u0334"
       "\u0f71\u0f72\u0f73\u0f81\u0344\u0340\u3099\u309a\u05bf\u093c\u0e38\u1e9e\u212a\u2126\u00b7\u037e\u1fef\u2000"
       "\u0307\u20dd\u0489\ufe0f\U0001f3fd\u0600\u110bd"[:-1] + "\U000110bd\U00011938\U0001d15e\u0958\u2adc\ufb1d\uac01")
ASCII = "".join(map(chr, range(33, 48))) + ":;<=>?@[\\]^_`{|}~$+<=>^`|~"
SPECIAL = ["[MASK]", "[CLS]", "[SEP]", "[UNK]", "[PAD]", " [MASK] ", "[mask]", "[MASK", "[[MASK]]", "<new>", "Ωδ", "ωδ",
           "  <new>\u00a0", "##ing", "[MASK][MASK]"]


def assigned():
    """A random code point: half of them assigned."""
    while True:
        c = chr(rng.randrange(0x30000) if rng.random() < 0.9 else rng.randrange(0x110000))
        if not 0xD800 <= ord(c) < 0xE000 and (unicodedata.category(c) != "Cn" or rng.random() < 0.1):
            return c


def word():
    kind = rng.random()
    if kind < 0.55:
        return rng.choice(rng.choice(SENTENCES).split(" "))
    if kind < 0.65:
        return "".join(assigned() for _ in range(rng.randint(1, 3)))
    if kind < 0.72:
        w = list(rng.choice(rng.choice(SENTENCES).split(" ")))
        w.insert(rng.randint(0, len(w)), rng.choice(ODD))
        return "".join(w)
    if kind < 0.78:
        return "".join(rng.choice(ODD) for _ in range(rng.randint(1, 4)))
    if kind < 0.85:
        return rng.choice(SPECIAL)
    if kind < 0.9:
        return unicodedata.normalize(rng.choice(["NFC", "NFD"]), rng.choice(rng.choice(SENTENCES).split(" ")))
    if kind < 0.95:
        return rng.choice("aeo") + "".join(chr(rng.choice([rng.randint(0x300, 0x36F), rng.randint(0x591, 0x5BD)]))
                                           for _ in range(rng.randint(1, 5)))
    if kind < 0.98:
        return "".join(rng.choice(ASCII) for _ in range(rng.randint(1, 4)))
    return rng.choice(["a", "é", "я", "字"]) * rng.randint(97, 103)


strings = ["", " ", "\n", "\u0301", "\u200b", "[MASK]", "a" * 100, "a" * 101, "é" * 100, "e\u0301" * 60, "字" * 30]
strings += SENTENCES + list(ODD) + SPECIAL + [s.upper() for s in SENTENCES]
while len(strings) < 2000:
    strings.append(rng.choice(["", " ", "  "]).join(word() for _ in range(rng.randint(1, 4))))
strings = [s.encode("utf-8", "ignore").decode() for s in strings]


def trained(normaliser, size):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normaliser, pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(SENTENCES * 3 + strings, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=260, special_tokens=special, show_progress=False))
    return t


for folder in ("uncased", "cased"):
    shutil.rmtree(os.path.join(here, folder), ignore_errors=True)
    os.makedirs(os.path.join(here, folder))

trained(normalizers.BertNormalizer(), 700).model.save(os.path.join(here, "uncased"))
uncased = transformers.BertTokenizer.from_pretrained(os.path.join(here, "uncased"))._tokenizer

cased = trained(normalizers.BertNormalizer(strip_accents=False, lowercase=False), 900)
cased.add_tokens([AddedToken("<new>", lstrip=True, rstrip=True, normalized=False), AddedToken("Ωδ", normalized=True)])
cased.add_special_tokens([AddedToken("[MASK]", special=True, lstrip=True)])
cased.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2), trim_offsets=True, add_prefix_space=False)
with open(os.path.join(here, "cased", "tokenizer.json"), "w") as f:
    f.write(cased.to_str())


def tokens(t, text):
    e = t.encode(text)
    out, end = [], 0
    for i, (start, stop) in zip(e.ids, e.offsets):
        out.append("%d %d %d" % (i, start - end, stop - start))
        end = stop
    return " ".join(out)


lines = [json.dumps({"text": s, "uncased": tokens(uncased, s), "cased": tokens(cased, s)}, ensure_ascii=False)
         for s in strings]
with gzip.GzipFile(os.path.join(here, "golden.jsonl.gz"), "wb", 9, mtime=0) as f:
    f.write(("\n".join(lines) + "\n").encode())
print(len(lines), os.path.getsize(os.path.join(here, "golden.jsonl.gz")))
