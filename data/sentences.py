"""Cuts prose into sentences, by rules (for --split_sentences).

A sentence ends at `.`, `!`, `?` or `…` right after a word, with closing quotes and
brackets after it, where white space and then no small letter follows; and right after
`。`, `！` and `？`. A full stop does not end one after an initial (`J. Smith`) or after
an abbreviation that names follow (`Mr.`, `Dr.`, `St.`); after others it may, and that
mistake is accepted: next-sentence prediction needs no better cut.
"""

import re

# Titles and the like: what follows is a name, with a capital, in the same sentence.
_BEFORE_NAMES = """
    Mr Mrs Ms Messrs Mlle Mme Dr Prof Rev Hon Capt Col Gen Lieut Lt Maj Sergt Sgt St Sir
    Jr Sr vs No Nos Vol vol pp p fig Fig cf e.g i.e Hr Fr Frl Nr bzw z.B d.h Abb Bd
""".split()  # noqa: SIM905 - a list of words is best read as words
_OPENING = r"""["'‘“„«»(\[¿¡—-]"""
_CLOSING = r"""["'’”“»«)\]]"""
# Begins with a set of characters, which the search for a match is quick for. A run of
# marks counts from its first one only: to try it from each of them would take time that
# grows with the square of its length.
_ENDS = re.compile(
    r"[.!?…。！？](?:"
    rf"(?<=[.!?…])(?<![.!?…\s].)[.!?…]*{_CLOSING}*\s+(?={_OPENING}*([^\W_]))"
    rf"|(?<=[。！？])[。！？]*[”’」』）]*(?={_OPENING}*([^\W_])|))"
)
_ABBREVIATION = re.compile(
    rf"(?:^|\s|{_OPENING})(?:{'|'.join(map(re.escape, _BEFORE_NAMES))}|[^\W\d_])$"
)
_LONGEST_ABBREVIATION = 1 + max(map(len, _BEFORE_NAMES))


def split(text: str) -> list[str]:
    """The sentences of a paragraph, stripped; together they are the paragraph."""
    sentences, start = [], 0
    for match in _ENDS.finditer(text):
        marks, end = match.group(), match.end()
        if (match.group(1) or match.group(2) or "").islower():
            continue
        if marks[0] == "." and marks[1:].isspace():
            place = match.start()
            before = text[max(start, place - _LONGEST_ABBREVIATION) : place]
            if _ABBREVIATION.search(before):
                continue
        sentences.append(text[start:end].strip())
        start = end
    rest = text[start:].strip()
    return sentences + [rest] if rest else sentences
