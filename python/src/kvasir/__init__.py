"""Kvasir: small language models whose cache never changes the answer.

    import kvasir
    m = kvasir.load()
    print(m.generate("春", seed=1))
"""

import collections
import json
import math
import pathlib

from kvasir import _kvasir
from kvasir._kvasir import Error

__version__ = _kvasir.version
__all__ = ["Continuation", "Error", "Model", "NextToken", "load"]

NextToken = collections.namedtuple("NextToken", "token id prob logprob")


class Continuation(str):
    """The text that was written; a str, with what led to it.

    token_ids, logprobs   of each token, natural logarithms of the model's own probabilities
    top                   with top_logprobs: the most probable tokens at each place, as NextToken
    finish_reason         "stop", "length", "constraint" or "cancelled"
    seed                  what fixes every draw
    """

    token_ids: list[int]
    logprobs: list[float]
    top: list[list[NextToken]]
    finish_reason: str
    seed: int


def load(path=None, *, threads=0, cache=True, policy="", share_prefixes=True, block_tokens=16,
         prefill_chunk=0, max_batch=32, budget_bytes=None):
    """A model read from a GGUF file; without a path from $KVASIR_MODEL, else the bundled one.

    Of all these only `policy`, in the language of --kv, can change an answer. Raises Error, a
    ValueError, with one line that names what is wrong.
    """
    settings = _kvasir.CacheSettings()
    settings.enabled = cache
    settings.policy = policy
    settings.share_prefixes = share_prefixes
    settings.block_tokens = block_tokens
    settings.prefill_chunk = prefill_chunk
    settings.max_batch = max_batch
    settings.budget_bytes = budget_bytes
    return Model(_kvasir.Worker(_path(path), threads, settings))


def _path(path):
    """What the library is to read; "" leaves it the choice."""
    if path is not None:
        return str(path)
    import os  # Here, since nothing else needs it.
    bundled = pathlib.Path(__file__).parent / "models" / "tang-lesson.gguf"
    return "" if os.environ.get("KVASIR_MODEL") or not bundled.exists() else str(bundled)


def _constraint(regex, json_schema, grammar, choices, assert_formats, compact_json):
    given = [c for c in (regex, json_schema, grammar, choices) if c is not None]
    if len(given) > 1:
        raise Error("only one of regex, json_schema, grammar and choices is allowed")
    if regex is not None:
        return _kvasir.Constraint.regex(regex)
    if grammar is not None:
        return _kvasir.Constraint.grammar(grammar)
    if choices is not None:
        return _kvasir.Constraint.choices(list(choices))
    if json_schema is not None:
        text = json_schema if isinstance(json_schema, str) else json.dumps(json_schema)
        return _kvasir.Constraint.json_schema(text, assert_formats, compact_json)
    return None


class Model:
    """A model with its threads and its cache. Threads of Python may share one: they take turns."""

    def __init__(self, worker):
        self._worker = worker

    @property
    def info(self):
        """path, name, architecture, layers, heads, context, vocabulary, parameters, …"""
        return self._worker.info

    def __repr__(self):
        info = self.info
        return (f"<kvasir.Model {info.name!r}: {info.architecture}, {info.parameters} parameters, "
                f"context {info.context}>")

    def tokenize(self, text):
        """The text's own token ids."""
        return self._worker.tokenize(text)

    def detokenize(self, ids):
        return self._worker.detokenize(list(ids))

    def generate(self, prompt="", *, regex=None, json_schema=None, grammar=None, choices=None,
                 assert_formats=False, compact_json=False, stop=(), ban=(), count=None,
                 on_token=None, **settings):
        """Continues a prompt: a text, or a list of token ids.

        settings: max_tokens (64), temperature (0.8), top_k, top_p, min_p, repeat_penalty,
        presence_penalty, frequency_penalty, biases ({id: number}), seed, best_of, end_token,
        ignore_end, roll, top_logprobs. json_schema may be a text or what json.dumps takes.

        on_token(index, id, logprob, text) is called as tokens come; False from it ends the run.
        Returns a Continuation; with count, a list of them.
        """
        request = _kvasir.Request()
        if isinstance(prompt, str):
            request.prompt = prompt
        else:
            request.prompt_tokens = list(prompt)
        for name, value in settings.items():
            if name.startswith("_") or not hasattr(request, name):
                raise TypeError(f"generate() has no setting {name!r}")
            setattr(request, name, value)
        request.stops = [stop] if isinstance(stop, str) else list(stop)
        request.bans = [ban] if isinstance(ban, str) else list(ban)
        request.constraint = _constraint(regex, json_schema, grammar, choices, assert_formats,
                                         compact_json)
        request.count = 1 if count is None else count
        answer = self._worker.generate(request, on_token)
        made = [self._continuation(c, answer.seed) for c in answer.continuations]
        return made[0] if count is None else made

    def _continuation(self, given, seed):
        made = Continuation(given.text)
        made.token_ids = [token.id for token in given.tokens]
        made.logprobs = [token.logprob for token in given.tokens]
        made.top = [self._table(token.top) for token in given.tokens]
        made.finish_reason = given.finish
        made.seed = seed
        return made

    def _table(self, top):
        return [NextToken(self._worker.token_text(t.id), t.id, math.exp(t.logprob), t.logprob)
                for t in top]

    def next(self, prompt="", k=8):
        """The k most probable next tokens, as NextToken."""
        return self._table(self._worker.next(prompt, k))

    def logits(self, prompt, *, last=False):
        """float32 [tokens, vocabulary] of a text or of token ids; with last=True [vocabulary].

        Row t predicts the token after position t.
        """
        ids = self._worker.prompt_tokens(prompt) if isinstance(prompt, str) else list(prompt)
        rows = self._worker.logits(ids, last)
        return rows[0] if last else rows

    def evaluate(self, text, *, stride=0):
        """tokens, nll, perplexity, bits_per_char, token_nll of a text."""
        return self._worker.evaluate(text, stride)
