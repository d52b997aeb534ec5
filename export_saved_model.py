"""Exports a fine-tuned model as a SavedModel that takes raw text.

    python export_saved_model.py --model_dir=mrpc --export_dir=exports/mrpc

--model_dir is the output folder of run_classifier.py, run_squad.py, run_ner.py or
run_swag.py, which take --do_export too. Writes --export_dir/1 or the next number
(TensorFlow Serving loads the highest). The exporter loads what it wrote and compares it
with the model in memory, from text and from ids, before it says done.
"""

import common_flags

from absl import flags

import exporting

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string(
        "model_dir", None, "Output folder of a fine-tuning script.", required=True
    )
    flags.DEFINE_string(
        "export_dir", None, "Folder of the versions of this model.", required=True
    )


def main():
    exporting.export(FLAGS.model_dir, FLAGS.export_dir)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
