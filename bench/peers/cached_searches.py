"""Greedy and beam search with a CachedDecoder."""

import math

import torch


@torch.inference_mode()
def greedy(decoder, sources, max_length):
    decoder.start(sources, 1, max_length)
    outputs = [[] for _ in sources]
    live = list(range(len(sources)))
    tokens = torch.full((len(sources),), decoder.bos)
    for _ in range(max_length):
        tokens = decoder.next(tokens).argmax(-1)
        going = []
        for row, token in enumerate(tokens.tolist()):
            if token != decoder.eos:
                outputs[live[row]].append(token)
                going.append(row)
        if not going:
            break
        if len(going) < len(live):
            live = [live[row] for row in going]
            rows = torch.tensor(going)
            tokens = tokens[rows]
            decoder.select_rows(rows)
            decoder.select_sentences(rows)
    return outputs


@torch.inference_mode()
def beam_search(decoder, sources, beam, max_length):
    """Scores are sums of log-probabilities divided by the length with the end token; a sentence is done when
    it has as many finished hypotheses as the beam is wide."""
    decoder.start(sources, beam, max_length)
    finished = [[] for _ in sources]
    live = list(range(len(sources)))
    # At first all hypotheses of a sentence are equal, so only one of them may continue.
    scores = torch.full((len(sources), beam), -math.inf)
    scores[:, 0] = 0
    tokens = torch.full((len(sources) * beam,), decoder.bos)
    prefixes = torch.empty((len(sources), beam, 0), dtype=torch.int64)
    for length in range(1, max_length + 1):
        sums = scores[:, :, None] + decoder.next(tokens).log_softmax(-1).unflatten(0, (-1, beam))
        vocabulary = sums.size(-1)
        values, indices = sums.flatten(1).topk(2 * beam)
        parents, chosen = indices // vocabulary, indices % vocabulary
        ends = chosen == decoder.eos
        last = length == max_length
        going = []
        if last or ends.any():
            found = zip(values.tolist(), parents.tolist(), chosen.tolist())
            for row, (sentence_values, sentence_parents, sentence_chosen) in enumerate(found):
                results = finished[live[row]]
                for rank in range(2 * beam):
                    ended = sentence_chosen[rank] == decoder.eos
                    if rank < beam and (ended or last):
                        ids = prefixes[row, sentence_parents[rank]].tolist()
                        ids += [] if ended else [sentence_chosen[rank]]
                        results.append((sentence_values[rank] / length, ids))
                if len(results) < beam:
                    going.append(row)
        else:
            going = list(range(len(live)))
        if last or not going:
            break
        # The best that have not ended; at most half of the candidates have.
        scores, order = values.masked_fill(ends, -math.inf).topk(beam)
        parents, chosen = parents.gather(1, order), chosen.gather(1, order)
        sentences = torch.arange(len(live))
        if len(going) < len(live):
            sentences = torch.tensor(going)
            live = [live[row] for row in going]
            scores, parents, chosen = scores[sentences], parents[sentences], chosen[sentences]
            decoder.select_sentences(sentences)
        prefixes = torch.cat(
            (prefixes[sentences[:, None], parents], chosen[:, :, None]), dim=2
        )
        decoder.select_rows((sentences[:, None] * beam + parents).flatten())
        tokens = chosen.flatten()
    return [max(results)[1] for results in finished]
