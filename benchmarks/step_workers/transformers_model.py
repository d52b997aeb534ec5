"""BERT of Hugging Face's transformers on PyTorch, the way its guides train it."""

from benchmarks.step_workers import protocol


def prepare(setting):
    """A step is one of an ordinary loop; bfloat16 is torch's autocast."""
    import torch
    import transformers

    config = transformers.BertConfig(**setting.bert_config(), num_labels=2)
    torch.manual_seed(0)
    if setting.num_predictions:
        model = transformers.BertForPreTraining(config)
    else:
        model = transformers.BertForSequenceClassification(config)
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=protocol.LEARNING_RATE,
        weight_decay=protocol.WEIGHT_DECAY,
    )
    inputs = to_inputs(protocol.random_batch(setting))
    inputs = {name: torch.from_numpy(array).long() for name, array in inputs.items()}
    is_half = setting.precision == "bfloat16"

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), protocol.CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def to_inputs(batch):
    """The batch with the model's names; masked LM labels stand at every position."""
    import numpy as np

    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
        "labels": batch["label_ids"],
    }
    if "masked_lm_ids" in batch:
        labels = np.full_like(batch["input_ids"], -100)  # what the loss leaves out
        places = batch["masked_lm_positions"]
        np.put_along_axis(labels, places, batch["masked_lm_ids"], axis=1)
        inputs["labels"] = labels
        inputs["next_sentence_label"] = batch["label_ids"]
    return inputs


if __name__ == "__main__":
    protocol.serve(prepare, ["torch", "transformers", "transformers.models.bert"])
