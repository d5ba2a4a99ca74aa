"""BLEU of translations, by sacrebleu with its defaults.

    python bleu.py texts.json

The file has the list `references`, and `systems`: name -> list of translations.
"""

import json
import sys
from pathlib import Path

import sacrebleu


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    metric = sacrebleu.BLEU()
    scores = {
        name: metric.corpus_score(texts, [given["references"]]).score
        for name, texts in given["systems"].items()
    }
    print(json.dumps(dict(scores=scores, signature=str(metric.get_signature()))), flush=True)
