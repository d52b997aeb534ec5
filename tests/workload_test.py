"""What an update costs is read off a model and its batches, if the model is BERT."""

import types

import pytest
import tensorflow as tf

import strategies
import workload
from data import batching
from modeling import feature_tagger, models
from tests import small_models


def find(model):
    config = small_models.config()
    rows = small_models.batch(config, 0, 6, 10)
    dataset = batching.InMemoryBatches(rows, 2, 0).starting_at(0)
    trainer = types.SimpleNamespace(
        model=model, micro_batches=1, strategy=strategies.make()
    )
    return workload.find(trainer, dataset, 99)


def test_sizes_are_those_of_model_and_batches():
    work = find(models.BertForPretraining(small_models.config()))
    assert (work.batch_size, work.seq_length, work.num_predictions) == (2, 10, 4)
    assert work.config == small_models.config()


def test_of_a_model_without_the_encoder_nothing_is_reckoned():
    model = feature_tagger.FeatureTagger(3, (1, 4), bilstm_layers=1, bilstm_size=2)
    work = find(model)
    assert work is None
    memory = tf.errors.ResourceExhaustedError(None, None, "a page about memory")
    with (
        pytest.raises(ValueError, match="not enough: take a smaller --train_batch_si"),
        workload.memory_explained(work),
    ):
        raise memory
