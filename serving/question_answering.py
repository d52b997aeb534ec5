"""Question answering from raw text: model, tokenizer, windows and answers in a graph.

B questions, W windows of all of them, L positions of a window.
"""

import tensorflow as tf

from data import graph_squad_answers, graph_squad_text, graph_squad_windows
from serving import parity, saved_model


class QuestionAnswering(saved_model.TextServer):
    """Answers questions from texts of any length, as question_answering.Predictor.

    serving_default: question and context, string [batch]; bytes that are not UTF-8 are
        left out. Gives, [batch]: answer, the very characters of the context, "" for no
        answer; start and end, which code points of the context these are, -1 for no
        answer; text, the answer as in predictions.json; score, probability and
        null_score, which is 0 for a context without tokens.
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length]. Gives
        start_logits and end_logits, [batch, seq_length].

    Args:
        predictor: question_answering.Predictor.
        vocab_file: str, the vocabulary of its tokenizer, becomes an asset.
    """

    SIGNATURES = ("serving_default", "ids")

    def __init__(self, predictor, vocab_file):
        super().__init__(
            predictor.model,
            vocab_file,
            predictor.tokenizer.basic_tokenizer.do_lower_case,
            predictor.sizes.max_seq_length,
        )
        self._predictor = predictor

    @tf.function(
        input_signature=saved_model.texts_signature("question", "context"),
        autograph=False,  # It has nothing to do here, and takes its time.
    )
    def serving_default(self, question, context):
        sizes, options = self._predictor.sizes, self._predictor.options
        with tf.device("CPU"):  # Strings, and what is made from them.
            query_ids = self.tokenizer(question)[:, : sizes.max_query_length]
            tokens = self.tokenizer.tokens(context)
            windows = graph_squad_windows.place_windows(
                tf.cast(tokens.ids.row_lengths(), tf.int32),
                tf.cast(query_ids.row_lengths(), tf.int32),
                sizes,
            )
            sequences = graph_squad_windows.Sequences(
                self.tokenizer.enclose(query_ids), tokens.ids, windows
            )
        spans, nulls = self._score(sequences, windows)
        with tf.device("CPU"):
            texts = graph_squad_text.GraphTexts(tokens)
            first_tokens = tf.cast(tokens.ids.row_starts(), tf.int32)
            answers = graph_squad_answers.choose(
                spans, nulls, windows, texts, first_tokens, options
            )
            return self._outputs(answers, tokens, texts)

    def run(self, batch):
        outputs = self.model(batch, training=False)
        return {name: outputs[name] for name in ("start_logits", "end_logits")}

    def _score(self, sequences, windows):
        """Runs the model over all windows, a few at a time.

        Returns:
            float64: the spans [S, 5] of `graph_squad_answers.window_spans`, and start
            and end logits of [CLS], [W, 2].
        """
        step, options = self._predictor.batch_size, self._predictor.options
        num_windows = tf.size(windows.rows)

        def is_unfinished(first, *_):
            return first < num_windows

        def score(first, spans, nulls):
            with tf.device("CPU"):
                batch = sequences.batch(first, first + step)
            outputs = self.forward(batch)
            logits = outputs["start_logits"], outputs["end_logits"]
            with tf.device("CPU"):
                found = graph_squad_answers.window_spans(
                    first, logits, batch, windows, options
                )
                null = tf.stack([values[:, 0] for values in logits], axis=1)
                null = tf.cast(null, tf.float64)  # [w, 2]
                number = first // step
                return (
                    first + step,
                    spans.write(number, found),
                    nulls.write(number, null),
                )

        spans, nulls = (
            tf.TensorArray(
                tf.float64,
                size=-(-num_windows // step),
                element_shape=[None, width],
                infer_shape=False,
            )
            for width in (5, 2)
        )
        _, spans, nulls = tf.while_loop(
            is_unfinished, score, (0, spans, nulls), parallel_iterations=1
        )
        return spans.concat(), nulls.concat()

    def _outputs(self, answers, tokens, texts):
        """What the signature gives for the answers."""
        is_answer = answers["first"] >= 0
        places = tf.where(is_answer)  # [A, 1]
        starts, ends = texts.characters(
            *(tf.gather_nd(answers[name], places) for name in ("first", "last"))
        )
        # Every context has a space before it that is not its own.
        shift = tf.gather_nd(tf.cast(tokens.codes.row_starts(), tf.int32), places) + 1
        nothing = tf.fill(tf.shape(is_answer), -1)
        fill = tf.tensor_scatter_nd_update
        return {
            "answer": fill(
                tf.fill(tf.shape(is_answer), ""),
                places,
                texts.exact_texts(starts, ends),
            ),
            "start": fill(nothing, places, starts - shift),
            "end": fill(nothing, places, ends - shift),
            "text": answers["text"],
            **{
                name: tf.cast(answers[name], tf.float32)
                for name in ("score", "probability", "null_score")
            },
        }

    def differences(self, signatures):
        """Yields how far an export's answers are from those of our Python code.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        pairs = [(question, text) for question in parity.TEXTS for text in parity.TEXTS]
        questions, contexts = zip(*pairs, strict=True)
        expected = self._predictor.predict(questions, contexts)
        actual = signatures["serving_default"](
            question=tf.constant(questions), context=tf.constant(contexts)
        )
        actual = {name: values.numpy() for name, values in actual.items()}
        for row, answer in enumerate(expected):
            place = tuple(
                -1 if answer[name] is None else answer[name]
                for name in ("start", "end")
            )
            is_same = (
                actual["answer"][row].decode() == answer["text"]
                and (actual["start"][row], actual["end"][row]) == place
            )
            # Infinite: where scores tie in bfloat16, another answer is as good.
            yield 0.0 if is_same else float("inf")
            for name in ("score", "probability", "null_score"):
                yield parity.difference(actual[name][row], answer[name] or 0.0)
        yield from self._differences_of_ids(signatures)
