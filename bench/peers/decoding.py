"""What the peers of suite `decode` share: the cases of a job, and their measurement."""

import time

warmup_length = 8


def measure_cases(job, decode):
    """Seconds of each repetition and the ids of the last one, by case.

    decode: function of (sources, beam, maximum length) -> ids without bos and eos
    """
    cases = {}
    for case in job["cases"]:
        beam, size, length = case["beam"], case["batch"], case["maxLength"]
        sources = job["sources"][: case["sentences"]]
        batches = [sources[start : start + size] for start in range(0, len(sources), size)]
        decode(batches[0], beam, min(warmup_length, length))
        seconds = []
        while sum(seconds) < job["seconds"] or not seconds:
            start = time.perf_counter()
            ids = [row for batch in batches for row in decode(batch, beam, length)]
            seconds.append(time.perf_counter() - start)
        cases[case["name"]] = dict(seconds=seconds, ids=ids)
    return cases
