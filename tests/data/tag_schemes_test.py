"""BIO, IOB1 and IO: told apart, and turned into BIO without changing an entity."""

import random

import pytest

from data import tag_schemes

# The same five entities: three of type X, of which two are neighbours, and two of Y.
BIO = "B-X I-X O B-X B-X I-X B-Y O B-Y"
IOB1 = "I-X I-X O I-X B-X I-X I-Y O I-Y"


def numbered(*sentences):
    """(tags, line numbers) as if each sentence followed a blank line."""
    line, result = 1, []
    for tags in (text.split() for text in sentences):
        result.append((tags, range(line, line + len(tags))))
        line += len(tags) + 1
    return result


def random_entities(rng, length):
    """[(type, start, end)] that do not overlap; often neighbours of one type."""
    entities, place = [], 0
    while place < length:
        end = rng.randint(place + 1, length)
        if rng.random() < 0.7:
            entities.append((rng.choice("XY"), place, end))
        place = end
    return entities


def spell(entities, length, scheme):
    """Their tags; the three rules written out once more."""
    tags = ["O"] * length
    for number, (kind, start, end) in enumerate(entities):
        before = entities[number - 1] if number else ("", -1, -1)
        neighbours = before[2] == start and before[0] == kind
        with_b = scheme == "BIO" or (scheme == "IOB1" and neighbours)
        tags[start:end] = [f"I-{kind}"] * (end - start)
        tags[start] = f"{'B' if with_b else 'I'}-{kind}"
    return tags


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (BIO, "BIO"),
        (IOB1, "IOB1"),
        (IOB1.replace("B", "I"), "IO"),
        ("O O", None),
        ("B-X", "BIO"),
        ("I-X B-X", "IOB1"),
        ("I-X I-Y", "IO"),
        ("B-X B-Y", "BIO"),  # IOB1 would not have B-Y after another type
        ("B I O B", "BIO"),
        ("I O I B", "IOB1"),
    ],
)
def test_schemes_are_told_apart(tags, scheme):
    assert tag_schemes.find_scheme("x", numbered(tags)) == scheme


def test_both_spellings_become_the_same_bio():
    assert tag_schemes.to_bio(IOB1.split()) == tuple(BIO.split())
    assert tag_schemes.to_bio(BIO.split()) == tuple(BIO.split())


@pytest.mark.parametrize("seed", range(200))
def test_random_entities_survive(seed):
    rng = random.Random(seed)
    length = rng.randint(1, 15)
    entities = random_entities(rng, length)
    bio = spell(entities, length, "BIO")
    for scheme in ("BIO", "IOB1"):
        tags = spell(entities, length, scheme)
        assert list(tag_schemes.to_bio(tags)) == bio
        found = tag_schemes.find_scheme("x", [(tags, range(length))])
        # Without neighbours of one type IOB1 looks like IO.
        assert found in ({scheme, None} if "B" in str(tags) else {"IO", None})
    # IO joins neighbours of one type: what is left is what it says.
    tags = spell(entities, length, "IO")
    again = tag_schemes.to_bio(tags)
    assert [tag.replace("B", "I") for tag in again] == tags
    assert tag_schemes.find_scheme("x", [(again, range(length))]) in ("BIO", None)


def test_a_sentence_starts_anew():
    tagged = numbered("O B-X", "I-X O")
    with pytest.raises(ValueError, match="x, line 4: an entity starts with I- as in"):
        tag_schemes.find_scheme("x", tagged)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            ["B-X O", "B-Y", "O I-X"],
            "x, line 7: .* with I- .* 2 start with B-.*line 1;",
        ),
        (
            ["I-X O", "I-Y", "O B-X"],
            "x, line 7: .* with B- .* 2 start with I-.*line 1;",
        ),
        (["B-X I-Y I-Y B-X"], "x, line 2: .* with I- .* 2 start with B-.*line 1;"),
    ],
)
def test_mixtures_are_refused_or_allowed(sentences, message):
    tagged = numbered(*sentences)
    with pytest.raises(ValueError, match=message + ".*--allow_mixed_tags"):
        tag_schemes.find_scheme("x", tagged)
    assert tag_schemes.find_scheme("x", tagged, allow_mixed=True) == "mixed"


@pytest.mark.parametrize("text", ["O", "B", "I", "B-X", "I-a-b", "B-creative work"])
def test_tags(text):
    assert tag_schemes.is_tag(text)


@pytest.mark.parametrize(
    "text",
    ["", "o", "B-", "X", "PER", "B_PER", "S-X", "E-X", "L-X", "U-X", "O-X", "BX"],
)
def test_no_tags(text):
    assert not tag_schemes.is_tag(text)
