"""The tokenizer as TensorFlow ops: strings in, the ids of `FullTokenizer` out.

A model exported with it takes raw text.

N texts, C code points and T tokens of all texts, [N, (x)] ragged.
"""

import dataclasses
import os

import tensorflow as tf
import tensorflow_text

from data import graph_characters, tokenization


@dataclasses.dataclass(frozen=True)
class GraphTokens:
    """Texts in tokens, with where each token comes from.

    Attributes:
        codes: int32 [N, (code points)], of each text, with a space before it.
        counts: int32 [C], how many characters of `words` each of them becomes.
        words: string [N, (words)], as `BasicTokenizer.tokenize`.
        ids: int32 [N, (tokens)], as `FullTokenizer.encode`.
        firsts: int32 [T], which of the characters of all words a token begins with.
        lengths: int32 [T], how many of these it has.
        are_unknown: bool [T], it stands for a word that the vocabulary cannot spell.
        starts, ends: int32 [T], which of all code points, [C], it comes from: the first
            and the one after the last, as `token_offsets.token_spans`.
    """

    codes: tf.RaggedTensor
    counts: tf.Tensor
    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    firsts: tf.Tensor
    lengths: tf.Tensor
    are_unknown: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class GraphTokenizer(tf.Module):
    """Text to ids inside a graph, equal to `FullTokenizer.encode` on every text.

    Its only op from outside TensorFlow is TF.Text's `FastWordpieceTokenizeWithOffsets`:
    a program that loads a SavedModel of it must import tensorflow_text first.

    Args:
        vocab_file: path of the model's vocab.txt.
        do_lower_case: as of `FullTokenizer`.

    Raises:
        FileNotFoundError, ValueError: as `tokenization.load_vocab`.
    """

    def __init__(self, vocab_file: str | os.PathLike, do_lower_case: bool = True):
        super().__init__()
        vocab = tokenization.load_vocab(vocab_file)
        self.do_lower_case = do_lower_case
        self._cls_id, self._sep_id = vocab["[CLS]"], vocab["[SEP]"]
        self._unk_id = vocab["[UNK]"]
        # No text holds an empty piece. Ids are looked up, since a vocabulary with a
        # token on two lines skips one.
        pieces = [token for token in vocab if token not in ("", "##")]
        self._wordpiece = tensorflow_text.FastWordpieceTokenizer(
            pieces,
            token_out_type=tf.int32,
            no_pretokenization=True,
            max_bytes_per_word=4 * tokenization.MAX_CHARS_PER_WORD,
        )
        self._characters = graph_characters.GraphCharacters(do_lower_case)
        lengths = [len(piece.removeprefix("##")) for piece in pieces]
        with tf.device("CPU"):
            self._ids = tf.constant([vocab[piece] for piece in pieces], tf.int32)
            self._piece_lengths = tf.constant(lengths, tf.int32)

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Tokenizes each text.

        Args:
            text: string [N], UTF-8; bytes that are not UTF-8 are left out.

        Returns:
            int32 [N, (pieces)].
        """
        words = self.words(text)  # [N, (words)]
        with tf.device("CPU"):
            pieces = self._pieces(words).merge_dims(-2, -1)
            return pieces.with_flat_values(tf.gather(self._ids, pieces.flat_values))

    def words(self, text: tf.Tensor) -> tf.RaggedTensor:
        """As `BasicTokenizer.tokenize`: string [N] to string [N, (words)]."""
        with tf.device("CPU"):  # The ops on strings have no other kernels.
            return tf.strings.split(self._characters.space_words(_code_points(text)))

    def tokens(self, text: tf.Tensor) -> GraphTokens:
        """Tokenizes each text, and says where its tokens stand.

        Args:
            text: as for `__call__`.
        """
        with tf.device("CPU"):
            codes = _code_points(text)
            counts = self._characters.counts(codes.flat_values)
            words = tf.strings.split(self._characters.space_words(codes))
            by_word = self._pieces(words)  # [N, (words), (pieces)]
            pieces = by_word.merge_dims(-2, -1)
            ids = pieces.with_flat_values(tf.gather(self._ids, pieces.flat_values))
            # No word is spelt "[UNK]", as brackets are words of their own.
            are_unknown = ids.flat_values == self._unk_id
            word_lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
            lengths = tf.where(
                are_unknown,
                tf.gather(word_lengths, row_numbers(by_word.values.row_lengths())),
                tf.gather(self._piece_lengths, pieces.flat_values),
            )
            firsts = tf.cumsum(lengths, exclusive=True)
            starts, ends = self._places(codes.flat_values, counts, firsts, lengths)
        return GraphTokens(
            codes, counts, words, ids, firsts, lengths, are_unknown, starts, ends
        )

    def enclose(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Puts [CLS] before and [SEP] behind each row of int32 [N, (x)]."""
        cls, sep = (tf.fill([ids.nrows(), 1], i) for i in (self._cls_id, self._sep_id))
        return tf.concat([cls, ids, sep], axis=1)

    def pack(
        self,
        ids_a: tf.RaggedTensor,
        ids_b: tf.RaggedTensor | None,
        max_seq_length: int | tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Joins texts as the model takes them: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

        Too long a pair loses tokens from the end of the longer text, of the second if
        they are equal. An empty second text counts as none.

        Args:
            ids_a: int32 [N, (a)].
            ids_b: int32 [N, (b)] or None.
            max_seq_length: the most tokens in a row, at least 3.

        Returns:
            input_ids, input_mask, segment_ids: int32 [N, L], L the longest row, and 2
            if N is 0.

        Raises:
            ValueError: max_seq_length is an int below 3.
        """
        if isinstance(max_seq_length, int) and max_seq_length < 3:
            raise ValueError(
                "max_seq_length must be at least 3, for [CLS] and two [SEP], got "
                f"{max_seq_length}"
            )
        with tf.device("CPU"):  # As `__call__`, where the ids come from.
            num_texts = ids_a.nrows()
            if ids_b is None:
                ids_b = tf.RaggedTensor.from_row_lengths(
                    tf.zeros([0], tf.int32), tf.zeros([num_texts], tf.int64)
                )
            length_a, length_b = ids_a.row_lengths(), ids_b.row_lengths()  # [N]
            is_pair = tf.cast(length_b > 0, tf.int64)
            room = tf.cast(max_seq_length, tf.int64) - 2 - is_pair
            # What taking away one by one from the longer, or from b, comes to.
            half = (room + 1) // 2
            length_a = tf.minimum(length_a, tf.maximum(room - length_b, half))
            length_b = tf.minimum(length_b, room - length_a)
            is_pair = tf.cast(length_b > 0, tf.int64)  # If b has been cut away: no.
            sep = tf.fill([num_texts, 1], self._sep_id)
            first = self.enclose(_cut(ids_a, length_a))
            second = tf.concat([_cut(ids_b, length_b), _cut(sep, is_pair)], axis=1)
            segments = [tf.zeros_like(first), tf.ones_like(second)]
            ids = tf.concat([first, second], axis=1)
            lengths = ids.row_lengths()
            # Without any text there are still columns: the pooler looks at the first.
            longest = tf.maximum(tf.reduce_max(lengths), 2)
            shape = tf.stack([num_texts, longest])
            return {
                "input_ids": ids.to_tensor(shape=shape),
                "input_mask": tf.sequence_mask(lengths, longest, dtype=tf.int32),
                "segment_ids": tf.concat(segments, axis=1).to_tensor(shape=shape),
            }

    def _pieces(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """[N, (words)] to the numbers of their pieces, int32 [N, (words), (pieces)]."""
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        is_long = lengths > tokenization.MAX_CHARS_PER_WORD
        # More bytes than the op takes for a word: it gives [UNK].
        unknown = "?" * (4 * tokenization.MAX_CHARS_PER_WORD + 1)
        flat_words = tf.where(is_long, unknown, words.flat_values)
        return self._wordpiece.tokenize(words.with_flat_values(flat_words))

    def _places(
        self, codes: tf.Tensor, counts: tf.Tensor, firsts: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """`starts` and `ends` of `GraphTokens`, from some of the others."""
        sources = row_numbers(counts)
        starts = tf.gather(sources, firsts)
        ends = tf.gather(sources, firsts + lengths - 1) + 1
        # Accents behind a token belong to it: it ends where the next other one stands.
        is_other = ~self._characters.are_accents(codes)
        is_other = tf.pad(is_other, [[0, 1]], constant_values=True)  # [C + 1]
        others = tf.cast(tf.where(is_other)[:, 0], tf.int32)
        others_before = tf.cumsum(tf.cast(is_other, tf.int32), exclusive=True)
        return starts, tf.gather(others, tf.gather(others_before, ends))


def row_numbers(lengths: tf.Tensor) -> tf.Tensor:
    """0 as often as the first length says, then 1, and so on.

    As `tf.repeat` of a range, whose memory is the number of rows times the longest.

    Args:
        lengths: int32 or int64 [rows].
    Returns:
        int32 [sum of the lengths].
    """
    lengths = tf.cast(lengths, tf.int32)
    starts = tf.cumsum(lengths, exclusive=True)
    marks = tf.zeros([tf.reduce_sum(lengths) + 1], tf.int32)
    marks = tf.tensor_scatter_nd_add(
        marks, tf.expand_dims(starts, 1), tf.ones_like(starts)
    )
    return tf.cumsum(marks)[:-1] - 1


def _code_points(text: tf.Tensor) -> tf.RaggedTensor:
    """String [N] to int32 [N, (code points)]."""
    # The space keeps a text's marks and sigmas from those of the text before.
    text = tf.strings.join([" ", text])
    return tf.strings.unicode_decode(text, "UTF-8", errors="ignore")


def _cut(ids: tf.RaggedTensor | tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """The first `lengths` [N] ids of each row."""
    longest = tf.reduce_max(tf.pad(lengths, [[1, 0]]))
    ids = ids[:, :longest]
    if isinstance(ids, tf.RaggedTensor):
        ids = ids.to_tensor()
    return tf.RaggedTensor.from_tensor(ids, lengths=lengths)
