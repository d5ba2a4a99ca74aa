"""One decoding job in CTranslate2; it does not load PyTorch.

    python ctranslate2_decode.py --job job.json --precision float32|int8
"""

import argparse
import json
import resource
from pathlib import Path

import ctranslate2

from decoding import measure_cases


def decode_with(translator):
    def decode(sources, beam, max_length):
        results = translator.translate_batch(
            sources, beam_size=beam, max_decoding_length=max_length
        )
        return [[int(token) for token in result.hypotheses[0]] for result in results]

    return decode


def run(job, precision):
    translator = ctranslate2.Translator(
        job["ctranslate2"],
        compute_type=precision,
        inter_threads=1,
        intra_threads=job["threads"],
    )
    # Its tokens are text.
    job["sources"] = [[str(token) for token in source] for source in job["sources"]]
    cases = measure_cases(job, decode_with(translator))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    version = f"CTranslate2 {ctranslate2.__version__}, {translator.compute_type}"
    print(json.dumps(dict(cases=cases, version=version, peakRss=peak)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--precision", required=True, choices=["float32", "int8"])
    arguments = parser.parse_args()
    run(json.loads(Path(arguments.job).read_text()), arguments.precision)
