"""Windows: every word labelled once, where most is shown around it."""

import random

import numpy as np
import pytest

from data import conll, ner, tokenization

LABELS = ("O", "B-X", "I-X")
UNK, CLS, SEP = 1, 2, 3


class Tokenizer:
    """The word "7/3" has 3 pieces: 7, 1007 and 2007."""

    def encode(self, text):
        number, _, pieces = text.partition("/")
        return [int(number) + 1000 * k for k in range(int(pieces))]

    def convert_tokens_to_ids(self, tokens):
        return [{"[UNK]": UNK, "[CLS]": CLS, "[SEP]": SEP}[token] for token in tokens]


def make_file(rng, lengths, max_pieces=3):
    """A file of one sentence a length, in documents; no word comes twice."""
    sentences, number = [], 10
    for index, length in enumerate(lengths):
        words = []
        for _ in range(length):
            words.append(f"{number}/{rng.randint(0, max_pieces)}")
            number += 1
        tags = tuple(rng.choices(LABELS, k=length))
        sentences.append(conll.Sentence(tuple(words), tags, index // 4, (), ()))
    layout = conll.Layout("\t", 1, 2, 0, 1, False)
    return conll.File("x", layout, "BIO", tuple(sentences))


def pieces_of(word):
    return Tokenizer().encode(word) or [UNK]


def arrays_of(file, max_seq_length, document_context=False):
    return ner.files_to_arrays(
        [file], LABELS, max_seq_length, Tokenizer(), document_context
    )


def rows_of(arrays):
    """[(piece ids without [CLS] and [SEP], places in them of labelled words)]."""
    rows = []
    for ids, mask, label_mask in zip(
        arrays["input_ids"], arrays["input_mask"], arrays["label_mask"], strict=True
    ):
        length = mask.sum()
        assert list(mask) == [1] * length + [0] * (len(mask) - length)
        assert (ids[0], ids[length - 1]) == (CLS, SEP)
        assert not ids[length:].any()
        labelled = np.flatnonzero(label_mask) - 1
        assert labelled.size
        assert (labelled >= 0).all() and (labelled < length - 2).all()
        rows.append((list(ids[1 : length - 1]), list(labelled)))
    return rows


def find(needle, stream, start=0):
    """Where a list lies in another, from `start` on."""
    for place in range(start, len(stream) - len(needle) + 1):
        if stream[place : place + len(needle)] == needle:
            return place
    raise AssertionError("not a window of the text")


@pytest.mark.parametrize("document_context", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_every_word_is_labelled_once_and_in_order(seed, document_context):
    rng = random.Random(seed)
    file = make_file(rng, [rng.randint(1, 40) for _ in range(rng.randint(1, 9))])
    max_seq_length = rng.choice([3, 4, 5, 8, 20, 50])
    arrays = arrays_of(file, max_seq_length, document_context)
    chosen = arrays["label_mask"] == 1
    words = [word for s in file.sentences for word in s.words]
    tags = [tag for s in file.sentences for tag in s.tags]
    first = [pieces_of(word)[0] for word in words]
    assert arrays["input_ids"][chosen].tolist() == first
    assert [LABELS[i] for i in arrays["label_ids"][chosen]] == tags
    assert not arrays["label_ids"][~chosen].any()
    assert not arrays["segment_ids"].any()
    assert set(arrays) == {
        *("input_ids", "input_mask", "segment_ids", "label_ids", "label_mask")
    }
    assert all(a.dtype == np.int32 for a in arrays.values())
    assert all(a.shape == (len(chosen), max_seq_length) for a in arrays.values())
    again = ner.split(file.sentences, tags)
    assert again == [s.tags for s in file.sentences]


def test_the_example_of_the_paper(tmp_path):
    """Section 5.3 labels the first piece of a word and no other."""
    pieces = ["Jim", "Hen", "##son", "was", "a", "puppet", "##eer"]
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab) + "\n")
    tokenizer = tokenization.FullTokenizer(tmp_path / "vocab.txt", do_lower_case=False)
    ((ids, places),) = ner.document_windows(
        [["Jim", "Henson", "was", "a", "puppeteer"]], 16, tokenizer
    )
    assert tokenizer.convert_ids_to_tokens(ids[1:-1]) == pieces
    labelled = [tokenizer.convert_ids_to_tokens([ids[place]])[0] for place in places]
    assert labelled == ["Jim", "Hen", "was", "a", "puppet"]


def test_a_sentence_that_fits_is_one_row_without_neighbours():
    rng = random.Random(0)
    file = make_file(rng, [5, 1, 7])
    rows = rows_of(arrays_of(file, 30))
    assert [ids for ids, _ in rows] == [
        [piece for word in s.words for piece in pieces_of(word)] for s in file.sentences
    ]


def spread(window, place):
    return min(place - window[0], window[1] - 1 - place)


@pytest.mark.parametrize("seed", range(200))
def test_windows_of_a_long_text(seed):
    """Against brute force over all windows and places."""
    rng = random.Random(seed)
    room, size = rng.randint(1, 30), rng.randint(1, 200)
    start = rng.randrange(size)
    end = rng.randint(start + 1, size)
    low, high = rng.choice([(0, size), (start, end)])
    windows = ner.cut(start, end, low, high, room)
    assert all(low <= a < b <= high for a, b in windows)
    assert windows == sorted(windows)
    lengths = {b - a for a, b in windows}
    assert lengths == {min(room, high - low)}  # all that there is, or full
    if end - start <= room:
        (a, b), *others = windows
        assert not others and a <= start and end <= b
        before, after = start - a, b - end
        # As much on both sides, unless one has no more.
        assert abs(before - after) <= 1 or a == low or b == high
        return
    for (_, b), (a, _) in zip(windows, windows[1:], strict=False):
        assert b - a >= room - max(1, room // 2)  # they share a half
    owners = list(ner._owned(windows))
    for place in range(start, end):
        showing = [w for w in windows if w[0] <= place < w[1]]
        owning = [
            w for w, (a, b) in zip(windows, owners, strict=True) if a <= place < b
        ]
        assert len(owning) == 1
        assert spread(owning[0], place) == max(spread(w, place) for w in showing)
        # Nobody sees less than a quarter, except at the ends of what there is.
        context = min(place - low, high - 1 - place, room // 4 - 1)
        assert spread(owning[0], place) >= context


@pytest.mark.parametrize("seed", range(30))
def test_document_context_fills_the_window(seed):
    rng = random.Random(seed)
    file = make_file(rng, [rng.randint(1, 6) for _ in range(10)])
    room = 40
    rows = rows_of(arrays_of(file, room + 2, document_context=True))
    assert len(rows) == len(file.sentences)
    for document in range(3):
        inside = [s for s in file.sentences if s.document == document]
        pieces = [[p for w in s.words for p in pieces_of(w)] for s in inside]
        stream = sum(pieces, [])
        start = 0
        for sentence, own in zip(inside, pieces, strict=True):
            ids, labelled = rows[file.sentences.index(sentence)]
            assert len(ids) == min(room, len(stream))
            assert len(labelled) == len(sentence.words)
            first = [pieces_of(word)[0] for word in sentence.words]
            assert [ids[place] for place in labelled] == first
            place = find(ids, stream)
            if place + labelled[0] != start:  # unknown pieces repeat
                place = start - labelled[0]
                assert stream[place : place + len(ids)] == ids
            before, after = labelled[0], len(ids) - labelled[0] - len(own)
            assert abs(before - after) <= 1 or 0 in (
                place,
                len(stream) - place - len(ids),
            )
            start += len(own)


def test_documents_end_with_their_file():
    rng = random.Random(3)
    files = [make_file(rng, [3]), make_file(rng, [4])]
    arrays = ner.files_to_arrays(files, LABELS, 64, Tokenizer(), True)
    for file, (ids, _) in zip(files, rows_of(arrays), strict=True):
        (sentence,) = file.sentences
        assert ids == [p for word in sentence.words for p in pieces_of(word)]


def test_a_word_longer_than_a_window_hides_no_other():
    words = ("10/2", "11/500", "12/1")
    sentence = conll.Sentence(words, ("O", "B-X", "I-X"), 0, (), ())
    file = conll.File("x", conll.Layout("\t", 1, 2, 0, 1, False), "BIO", (sentence,))
    rows = rows_of(arrays_of(file, 34))
    assert [ids[place] for ids, places in rows for place in places] == [10, 11, 12]
    assert all(len(ids) == 32 for ids, _ in rows)
    assert len(rows) == 2  # windows in the midst of the word would label nothing


def test_untagged_files():
    file = make_file(random.Random(0), [5, 60])
    sentences = tuple(
        conll.Sentence(s.words, None, s.document, s.lines, s.rows)
        for s in file.sentences
    )
    bare = conll.File("x", file.layout, None, sentences)
    with_tags, without = arrays_of(file, 20), arrays_of(bare, 20)
    for name in ("input_ids", "input_mask", "label_mask"):
        np.testing.assert_array_equal(without[name], with_tags[name])
    assert not without["label_ids"].any()


def read(tmp_path, content, name="x.conll"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return conll.read(path)


@pytest.fixture
def tokenizer(golden):
    return tokenization.FullTokenizer(golden / "tiny_tf1/vocab.txt")


def test_words_without_pieces_are_unknown_and_survive(tmp_path, tokenizer):
    words = ["abc", "\u200b", "\ufe0f", "", "\u0301", "d"]
    file = read(tmp_path, "".join(f"{word}\tO\n" for word in words))
    assert [len(tokenizer.encode(word)) for word in words] == [3, 0, 0, 0, 0, 1]
    arrays = ner.files_to_arrays([file], LABELS, 16, tokenizer)
    ids = tokenizer.convert_ids_to_tokens(arrays["input_ids"][0])
    unknown = ["[UNK]"] * 4
    assert ids[:10] == ["[CLS]", "a", "##b", "##c", *unknown, "d", "[SEP]"]
    assert arrays["label_mask"][0].tolist() == [0, 1, 0, 0, 1, 1, 1, 1, 1, 0] + [0] * 6


def test_published_sets_lose_no_word(shared):
    """At lengths that cut many sentences; zero-width and empty words included."""
    vocab = shared / "data/vocab/bert-base-uncased/vocab.txt"
    tokenizer = tokenization.FullTokenizer(vocab)
    empty = 0
    for path in sorted((shared / "data/ner").glob("*/*")):
        file = conll.read(path)
        labels = ner.infer_labels([file])
        words = [word for s in file.sentences for word in s.words]
        tags = [tag for s in file.sentences for tag in s.tags]
        empty += sum(not tokenizer.encode(word) for word in words)
        arrays = ner.files_to_arrays([file], labels, 24, tokenizer)
        assert len(arrays["label_mask"]) > len(file.sentences)
        chosen = arrays["label_mask"] == 1
        assert [labels[i] for i in arrays["label_ids"][chosen]] == tags
        ids = arrays["input_ids"][chosen]
        firsts = [
            (tokenizer.encode(word) or [tokenizer.vocab["[UNK]"]])[0] for word in words
        ]
        assert ids.tolist() == firsts
    assert empty > 20


def test_labels_of_all_files_sorted(tmp_path):
    files = [
        read(tmp_path, "a\tI-b-c\nb\tO\n", "a"),
        read(tmp_path, "a\tB-X\n\nb\tB-A\n", "b"),
    ]
    expected = ("O", "B-A", "I-A", "B-X", "I-X", "B-b-c", "I-b-c")
    assert ner.infer_labels(files) == expected
    assert ner.infer_labels([read(tmp_path, "a\tB\nb\tI\n")]) == ("O", "B", "I")


def test_files_that_do_not_serve_are_refused(tmp_path):
    with pytest.raises(ValueError, match="x.conll: every tag is O.*--tag_column"):
        ner.infer_labels([read(tmp_path, "a O\n")])
    words = read(tmp_path, "\n\na\nb\n")
    with pytest.raises(ValueError, match="x.conll, line 3: .* no column of tags"):
        ner.check_tagged(words)
    with pytest.raises(ValueError, match="x.conll has no -DOCSTART- lines"):
        ner.check_documents(words)
    file = read(tmp_path, "-DOCSTART-\n\na B-X\nb I-X\n\nc B-Y\n")
    ner.check_documents(file)
    ner.check_tagged(file)
    ner.check_labels(file, ("O", "B-X", "I-X", "B-Y"))
    ner.check_labels(words, ())
    with pytest.raises(ValueError, match="line 6: B-Y is not in the training data"):
        ner.check_labels(file, LABELS)
    with pytest.raises(ValueError, match="max_seq_length must be at least 3, .* got 2"):
        arrays_of(file, 2)
