"""Files of windows, in the layout of the original's train.tf_record, eval.tf_record.

The windows of a large data set are on disk, as they are too many for memory.
"""

import dataclasses
import itertools
from collections.abc import Iterable

import tensorflow as tf

from data import batching, records, squad_windows


@dataclasses.dataclass(frozen=True)
class WindowFile:
    """A record file with the windows of questions, one a record.

    Attributes:
        path: the file; there is none if there are no windows.
        num_windows: their number.
        max_seq_length: L, what they are padded to.
        is_training: with the positions of answers.
    """

    path: str
    num_windows: int
    max_seq_length: int
    is_training: bool

    @classmethod
    def write(
        cls,
        path: str,
        windows: Iterable[squad_windows.Window],
        max_seq_length: int,
        is_training: bool,
    ) -> "WindowFile":
        """Writes the file, whole or not at all, if there is a window."""
        windows = iter(windows)
        num_windows = 0
        for first in itertools.islice(windows, 1):
            num_windows = records.write_stream(
                path,
                squad_windows.batched_arrays(
                    itertools.chain([first], windows), max_seq_length
                ),
                records.squad_spec(max_seq_length, is_training),
            )
        return cls(path, num_windows, max_seq_length, is_training)

    @property
    def spec(self) -> records.Spec:
        """The layout."""
        return records.squad_spec(self.max_seq_length, self.is_training)

    def training_batches(
        self, batch_size: int, seed: int, transform: batching.Transform | None = None
    ) -> batching.FileBatches:
        """Endless shuffled batches.

        Raises:
            ValueError: there is no window.
        """
        if not self.num_windows:
            raise ValueError("there is no text to train on: all contexts are empty")
        return batching.FileBatches([self.path], self.spec, batch_size, seed, transform)

    def evaluation_batches(
        self, batch_size: int, transform: batching.Transform | None = None
    ) -> tf.data.Dataset:
        """All windows in order; the dataset knows the number of its batches."""
        if not self.num_windows:
            nothing = squad_windows.to_arrays([], self.max_seq_length)
            return batching.in_memory_evaluation_batches(nothing, batch_size)
        batches = batching.evaluation_batches(
            [self.path], self.spec, batch_size, transform
        )
        num_batches = -(-self.num_windows // batch_size)
        return batches.apply(tf.data.experimental.assert_cardinality(num_batches))
