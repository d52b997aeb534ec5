"""How the variants of tables 5 and 8 are pre-trained; all else is equal."""

import dataclasses

MIXES = ("80/10/10", "100/0/0", "80/0/20", "80/20/0", "0/20/80", "0/0/100")


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to pre-train; all else is equal.

    Attributes:
        name: of its folder.
        records: how the text is cut and masked: name of the folder.
        record_flags: of create_pretraining_data.py.
        flags: of run_pretraining.py.
        config_end: of the name of the config.
    """

    name: str
    records: str = "usual"
    record_flags: str = ""
    flags: str = ""
    config_end: str = ""


_NO_NSP = "--nonext_sentence_loss"
_LTR = Way("LTR", flags=_NO_NSP, config_end="_ltr")
# By variant of table 5 and, by its mix, of table 8.
WAYS = {
    "MLM + NSP": Way("MLM_+_NSP"),
    "No NSP": Way("No_NSP", flags=_NO_NSP),
    "No NSP, single spans": Way(
        "No_NSP,_single_spans", "single", "--nosegment_pairs", _NO_NSP
    ),
    "LTR": _LTR,
    "LTR + BiLSTM": _LTR,  # which comes on top when it is fine-tuned
    "80/10/10": Way("MLM_+_NSP"),
    **{
        mix: Way(
            mix.replace("/", "-"),
            mix.replace("/", "-"),
            f"--masking_mix={mix.replace('/', ',')}",
        )
        for mix in MIXES[1:]
    },
}
