"""A small language in which the text to the right decides, by construction.

It is the corpus of the ablations in miniature (Devlin et al. 2018, section 5). So that
a model of 64 units shows in minutes what the paper's show in days, the language has
what the tasks of the ablations need, and little else:

- The sentences of a document share a topic: next sentence prediction can be learned.
- A determiner agrees in number with the noun to its right.
- The type of a named entity hangs on the verb to its right alone. Names, and all that
  may stand before the verb, come from lists that all types share, and are drawn before
  the type is. So no model that reads left to right can tell the type at the name.
- A type has many verbs, of which tagged text shows only some; what follows a verb tells
  which verbs are alike. So it helps to have read much text without tags.

That reading both ways tags better than left to right is thus no finding of this corpus:
it was put there. By how much, and what a BiLSTM mends, was not.
"""

import os
import random
from collections.abc import Iterable, Iterator

from data import filesystem

# Topic: nouns (with -s in the plural), verbs, adjectives.
TOPICS = {
    "sea": (
        "boat sail wave anchor gull dock",
        "towed moored steered flooded",
        "salty tidal rusty",
    ),
    "music": (
        "violin drum chord flute choir song",
        "tuned played rehearsed conducted",
        "loud tuneful rhythmic",
    ),
    "kitchen": (
        "oven spoon plate onion kettle soup",
        "stirred fried baked peeled",
        "spicy crispy buttery",
    ),
    "garden": (
        "rose spade hedge seed worm tulip",
        "watered planted pruned weeded",
        "leafy fragrant muddy",
    ),
    "sport": (
        "player goal coach referee team medal",
        "tackled defeated chased trained",
        "athletic sweaty unbeaten",
    ),
    "school": (
        "pupil lesson pen exam desk teacher",
        "taught graded memorised recited",
        "studious clever absent",
    ),
    "space": (
        "comet rocket planet orbit crater telescope",
        "launched circled observed mapped",
        "lunar distant starry",
    ),
    "farm": (
        "cow barn tractor plough goat fence",
        "milked fed herded harvested",
        "woolly hungry fertile",
    ),
    "hospital": (
        "nurse doctor ward pill patient scalpel",
        "healed treated bandaged examined",
        "feverish sterile painful",
    ),
    "law": (
        "judge lawyer court trial verdict clerk",
        "sued sentenced accused acquitted",
        "guilty legal solemn",
    ),
    "desert": (
        "camel dune caravan lizard tent scorpion",
        "crossed parched buried scorched",
        "dusty dry barren",
    ),
    "railway": (
        "train track station ticket engine wagon",
        "coupled derailed signalled shunted",
        "punctual electric noisy",
    ),
}
# Type of an entity: its verbs, and what may follow these.
TYPES = {
    "PER": (
        """smiled laughed slept whispered wept shrugged dreamed nodded yawned sneezed
        blushed frowned knelt winked limped coughed hummed sighed danced prayed""",
        "alone happily barefoot aloud tearfully politely nervously himself",
    ),
    "ORG": (
        """announced merged hired acquired invested expanded restructured licensed
        recalled outsourced audited insured lobbied traded bankrolled franchised
        subsidised diversified sponsored leased""",
        "shares profits dividends quarterly worldwide publicly assets bonds",
    ),
    "LOC": (
        """borders lies stretches overlooks straddles sprawls adjoins flanks abuts spans
        dominates surrounds encloses slopes extends faces rises meets neighbours
        hosts""",
        "northward inland uphill lengthwise seaward valleys eastward downhill",
    ),
    "WORK": (
        """premiered narrates depicts rhymes stars retells satirises portrays evokes
        parodies adapts recounts illustrates celebrates dramatises concludes opens
        mirrors imagines chronicles""",
        "onscreen poetically vividly theatrically chapters verses plots scenes",
    ),
}
NAMES = """
    abeno arden bexley corin dalton elmira fenwick garda halden iona jarrow kelso lorne
    marlow norwood orla perrin quill rowan selby tamsin ulric verity wilmot yarrow
    zennor ashby brenna cullen darcy eskdale farley greta hollis ingram juniper kendal
    linden morven nairn oakley piers ruskin sable thorne ursa vale whitby
"""
OPENERS = "today yesterday meanwhile later once suddenly soon again"
ADVERBS = "quietly slowly also often rarely finally never still"
PREPOSITIONS = "near behind beside above under among past opposite"
CONNECTIVES = "while because when"
DETERMINERS = ("this that every one", "these those many few")  # singular, plural
END = "."
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

SEEN = 0.5  # share of the verbs of a type, and of what follows, in tagging/train.txt


Sentence = list[tuple[str, str]]  # words, the end mark too, with their tags in BIO


def vocabulary() -> list[str]:
    """The special tokens and every word, one token each, in a fixed order."""
    lists = [NAMES, OPENERS, ADVERBS, PREPOSITIONS, CONNECTIVES, *DETERMINERS, END]
    for nouns, verbs, adjectives in TOPICS.values():
        lists += [nouns, " ".join(f"{noun}s" for noun in nouns.split())]
        lists += [verbs, adjectives]
    for verbs, followers in TYPES.values():
        lists += [verbs, followers]
    return [*SPECIAL_TOKENS, *(word for words in lists for word in words.split())]


def make_document(rng: random.Random, topic: str) -> list[Sentence]:
    """6 to 10 sentences on a topic."""
    return [make_sentence(rng, topic) for _ in range(rng.randint(6, 10))]


def make_sentence(rng: random.Random, topic: str, share: float = 1.0) -> Sentence:
    """A sentence of 6 to 12 words on a topic; two in three have an entity.

    Args:
        share: the part in use of the verbs of each type and of what follows them.
    """
    kind = rng.choice(("plain", "clause first", "entity first"))
    if kind == "plain":
        words = _clause(rng, topic) + _noun_phrase(rng, topic)
        return _untagged([*words, *_draw(rng, ADVERBS, 0, 1), END])
    if kind == "clause first":
        left = [*_clause(rng, topic), *_draw(rng, CONNECTIVES)]
        return _untagged(left) + _entity(rng, share) + _untagged([END])
    left = _untagged(_draw(rng, OPENERS, 0, 1)) + _entity(rng, share)
    right = [*_draw(rng, PREPOSITIONS), *_noun_phrase(rng, topic), END]
    return left + _untagged(right)


def _entity(rng: random.Random, share: float) -> Sentence:
    """A name of one or two words, perhaps adverbs, a verb, perhaps what follows it."""
    name = _draw(rng, NAMES, 1, 2)
    adverbs = _draw(rng, ADVERBS, 0, 2)
    # Only now, so that nothing to the left can depend on it.
    entity_type = rng.choice(list(TYPES))
    verbs, followers = TYPES[entity_type]
    verb, after = _draw(rng, verbs, 1, 1, share), _draw(rng, followers, 0, 1, share)
    tags = [f"B-{entity_type}", f"I-{entity_type}"][: len(name)]
    return [*zip(name, tags, strict=True), *_untagged([*adverbs, *verb, *after])]


def _clause(rng: random.Random, topic: str) -> list[str]:
    """A noun phrase and a verb of the topic."""
    _, verbs, _ = TOPICS[topic]
    return [*_noun_phrase(rng, topic), *_draw(rng, verbs)]


def _noun_phrase(rng: random.Random, topic: str) -> list[str]:
    """A determiner, perhaps an adjective, and a noun with which the first agrees."""
    nouns, _, adjectives = TOPICS[topic]
    number = rng.randrange(2)
    (noun,) = _draw(rng, nouns)
    adjective = _draw(rng, adjectives, 0, 1)
    return [*_draw(rng, DETERMINERS[number]), *adjective, noun + "s" * number]


def _draw(
    rng: random.Random, words: str, least: int = 1, most: int = 1, share: float = 1.0
) -> list[str]:
    """`least` to `most` different words, of the first `share` of some."""
    known = words.split()
    known = known[: round(share * len(known))]
    return rng.sample(known, rng.randint(least, most))


def _untagged(words: Iterable[str]) -> Sentence:
    return [(word, "O") for word in words]


def write(folder: str, seed: int, num_documents: int = 4000) -> None:
    """Writes the language as files for the scripts; equal arguments give equal bytes.

    For pre-training, vocab.txt, corpus.txt and held_out.txt (a tenth as long). Three
    tasks: tagging/{train,dev}.txt in CoNLL columns, where the training set has half of
    the verbs of every type, and the dev set all; topics/{train,dev}.tsv, the topic of a
    sentence; pairs/{train,dev}.tsv, whether two sentences follow one another in a
    document, or are on different topics.
    """
    makers = {
        "vocab.txt": lambda _: vocabulary(),
        "corpus.txt": lambda rng: _corpus(rng, num_documents),
        "held_out.txt": lambda rng: _corpus(rng, num_documents // 10),
        "tagging/train.txt": lambda rng: _tagging(rng, 300, SEEN),
        "tagging/dev.txt": lambda rng: _tagging(rng, 600, 1.0),
        "topics/train.tsv": lambda rng: _topics(rng, 240),
        "topics/dev.tsv": lambda rng: _topics(rng, 600),
        "pairs/train.tsv": lambda rng: _pairs(rng, 64),
        "pairs/dev.tsv": lambda rng: _pairs(rng, 600),
    }
    for name, make_lines in makers.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # A stream of random numbers each: no file depends on the size of another.
        lines = make_lines(random.Random(f"{seed} {name}"))
        filesystem.write_text(path, "".join(f"{line}\n" for line in lines))


def _text(sentence: Sentence) -> str:
    return " ".join(word for word, _ in sentence)


def _corpus(rng: random.Random, num_documents: int) -> Iterator[str]:
    """A sentence a line, an empty line behind each document."""
    for _ in range(num_documents):
        yield from map(_text, make_document(rng, rng.choice(list(TOPICS))))
        yield ""


def _tagging(rng: random.Random, num_sentences: int, share: float) -> Iterator[str]:
    """A word and its tag a line, an empty line behind each sentence."""
    for _ in range(num_sentences):
        sentence = make_sentence(rng, rng.choice(list(TOPICS)), share)
        yield from map("\t".join, sentence)
        yield ""


def _topics(rng: random.Random, num_sentences: int) -> Iterator[str]:
    """Sentences and their topics, of each topic as many."""
    yield "text\tlabel"
    for i in range(num_sentences):
        topic = list(TOPICS)[i % len(TOPICS)]
        yield f"{_text(make_sentence(rng, topic))}\t{topic}"


def _pairs(rng: random.Random, num_pairs: int) -> Iterator[str]:
    """Pairs of sentences, every second one consecutive."""
    yield "text\ttext_pair\tlabel"
    for i in range(num_pairs):
        topic, other = rng.sample(list(TOPICS), 2)
        document = make_document(rng, topic)
        start = rng.randrange(len(document) - 1)
        first, second = document[start : start + 2]
        label = ("next", "other")[i % 2]
        if label == "other":
            second = rng.choice(make_document(rng, other))
        yield f"{_text(first)}\t{_text(second)}\t{label}"
