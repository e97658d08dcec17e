"""The configuration: exact arithmetic, clear refusals, and a config.json that survives."""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from glassformer import config as config_module
from glassformer.config import TransformerConfig
from glassformer.models import KVCache, Transformer
from one_sentence import refused

GOOD = dict(vocab_size=8, dim=32, n_layers=2, n_heads=4, n_kv_heads=2, max_seq_len=16)
NAMES = {f.name for f in fields(TransformerConfig)} - {"extra"}


@st.composite
def configs(draw, largest_vocab=10_000, largest_head=128, heads=16, layers=100, window=10_000):
    """Any valid configuration up to the given sizes."""
    n_heads = draw(st.integers(1, heads))
    divisors = [n for n in range(1, n_heads + 1) if n_heads % n == 0]
    return TransformerConfig(
        vocab_size=draw(st.integers(1, largest_vocab)),
        dim=n_heads * 2 * draw(st.integers(1, largest_head // 2)),
        n_layers=draw(st.integers(1, layers)),
        n_heads=n_heads,
        n_kv_heads=draw(st.sampled_from([None, *divisors])),
        max_seq_len=draw(st.integers(1, window)),
        ffn_dim_multiplier=draw(st.floats(0.01, 8)),
        norm_eps=draw(st.floats(1e-12, 1e-2)),
        rope_theta=draw(st.floats(1, 1e6)),
        tie_word_embeddings=draw(st.booleans()),
    )


small_configs = configs(largest_vocab=40, largest_head=8, heads=4, layers=3, window=24)


# Arithmetic


def counted(c: TransformerConfig) -> int:
    """Count the parameters as a reader would on paper: each matrix by its two sides."""
    kv_dim = c.dim // c.n_heads * (c.n_heads if c.n_kv_heads is None else c.n_kv_heads)
    hidden = 64
    while hidden < math.floor(c.ffn_dim_multiplier * c.dim * 2 / 3):
        hidden += 64
    matrices = [(c.dim, c.dim), (kv_dim, c.dim), (kv_dim, c.dim), (c.dim, c.dim)]
    matrices += [(hidden, c.dim), (hidden, c.dim), (c.dim, hidden)]
    block = sum(rows * columns for rows, columns in matrices) + c.dim + c.dim
    table = c.vocab_size * c.dim
    head = 0 if c.tie_word_embeddings else table
    return table + sum(block for _ in range(c.n_layers)) + c.dim + head


@settings(max_examples=2_000)
@given(configs())
def test_num_params_equals_an_independent_count(config):
    assert config.num_params() == counted(config)


@settings(max_examples=300)
@given(small_configs)
def test_num_params_equals_the_built_models_count(config):
    model = Transformer(config)
    assert config.num_params() == model.num_params() == sum(p.numel() for p in model.parameters())


def test_a_wrong_count_would_be_seen():
    config = TransformerConfig(**GOOD)
    assert counted(config) == 31_392 != counted(replace(config, n_kv_heads=4))
    assert counted(config) != counted(replace(config, tie_word_embeddings=True))


@given(small_configs, st.integers(1, 3), st.sampled_from([torch.float32, torch.float16]))
def test_kv_cache_bytes_equals_what_a_cache_occupies(config, batch_size, dtype):
    cache = KVCache(config, batch_size, dtype)
    assert cache.nbytes() == config.kv_cache_bytes(
        batch_size=batch_size, bytes_per_value=dtype.itemsize
    )
    for tokens in (0, 1, config.max_seq_len):
        assert config.kv_cache_bytes(tokens, batch_size, 1) == (
            cache.keys[:, :, :, :tokens].numel() + cache.values[:, :, :, :tokens].numel()
        )


@settings(max_examples=60)
@given(small_configs, st.data())
def test_multiplications_equal_what_torch_counts(config, data):
    past = data.draw(st.integers(0, config.max_seq_len - 1), "past")
    tokens = data.draw(st.integers(1, config.max_seq_len - past), "tokens")
    model, cache = Transformer(config), KVCache(config)
    with torch.no_grad():
        if past:
            model(torch.zeros(1, past, dtype=torch.int64), cache)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, tokens, dtype=torch.int64), cache)
    assert counter.get_total_flops() == 2 * config.multiplications(tokens, past)
    if tokens == 1:
        assert counter.get_total_flops() == config.flops_per_token(past + 1)


def test_flops_per_token_is_by_default_that_of_a_full_window():
    config = TransformerConfig(**GOOD)
    assert config.flops_per_token() == config.flops_per_token(16) != config.flops_per_token(15)


@given(configs())
def test_derived_sizes_keep_their_definitions(config):
    assert config.head_dim * config.n_heads == config.dim and config.head_dim % 2 == 0
    assert config.n_heads % config.kv_heads == 0
    assert config.ffn_hidden_dim % 64 == 0
    assert 0 <= config.ffn_hidden_dim - int(config.ffn_dim_multiplier * config.dim * 2 / 3) <= 64


# Refusals

whole_names = ("vocab_size", "dim", "n_layers", "n_heads", "max_seq_len")
positive_names = ("ffn_dim_multiplier", "norm_eps", "rope_theta")
not_numbers = st.one_of(
    st.booleans(),
    st.text(max_size=80),
    st.binary(max_size=8),
    st.lists(st.integers(), max_size=30),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
    st.complex_numbers(),
    st.just(torch.zeros(40, 40)),
)
too_large = st.integers(10**12 + 1) | st.integers(0, 20_000).map(lambda n: 10 ** (13 + n))
not_whole = st.one_of(not_numbers, st.none(), st.floats(), st.integers(max_value=0), too_large)
not_positive = st.one_of(
    not_numbers,
    st.none(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e-320, 10**400]),
    st.integers(max_value=0),
    st.floats(max_value=0),
    st.floats(min_value=1e30, exclude_min=True),
)


@given(st.sampled_from(whole_names), not_whole)
def test_a_size_that_is_no_whole_number_is_refused_by_name(name, value):
    with refused(f"{name} = ", "whole number from 1 to 1,000,000,000,000"):
        TransformerConfig(**{**GOOD, name: value})


@given(not_whole.filter(lambda value: value is not None))
def test_key_and_value_heads_are_none_or_a_whole_number(value):
    with refused("n_kv_heads = ", "whole number from 1"):
        TransformerConfig(**{**GOOD, "n_kv_heads": value})


@given(st.sampled_from(positive_names), not_positive)
def test_a_number_that_must_be_positive_is_refused_by_name(name, value):
    with refused(f"{name} = ", "positive number from 1e-30 to 1e+30"):
        TransformerConfig(**{**GOOD, name: value})


@given(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.just([True])))
def test_tying_is_true_or_false(value):
    with refused("tie_word_embeddings = ", "true or false"):
        TransformerConfig(**GOOD, tie_word_embeddings=value)


@given(st.integers(1, 300), st.integers(1, 40), st.none() | st.integers(1, 40))
def test_heads_that_do_not_divide_are_refused_and_the_advice_helps(dim, n_heads, n_kv_heads):
    sizes = dict(GOOD, dim=dim, n_heads=n_heads, n_kv_heads=n_kv_heads)
    if dim % n_heads:
        with refused(f"n_heads = {n_heads} cannot be: it must divide dim = {dim}"):
            TransformerConfig(**sizes)
    elif dim // n_heads % 2:
        with refused(f"dim = {dim} cannot be", "must be even") as caught:
            TransformerConfig(**sizes)
        advised = int(str(caught.value).rpartition("dim = ")[2].rstrip("."))
        assert TransformerConfig(**{**sizes, "dim": advised, "n_kv_heads": None}).dim > dim
    elif n_kv_heads and n_heads % n_kv_heads:
        with refused(f"n_kv_heads = {n_kv_heads} cannot be: it must divide n_heads = {n_heads}"):
            TransformerConfig(**sizes)
    else:
        assert TransformerConfig(**sizes).num_params() > 0


@pytest.mark.parametrize("value", [1, "1", None, [1], 1.5])
def test_a_refusal_shows_the_value(value):
    with refused(repr(value)):
        TransformerConfig(**{**GOOD, "tie_word_embeddings": value})


@pytest.mark.parametrize("extra", [None, [], "a", {1: 2}, {"a": object()}, {"a": math.nan}])
def test_further_keys_must_be_plain_data(extra):
    with refused("dictionary" if not isinstance(extra, dict) else "plain JSON data"):
        TransformerConfig(**GOOD, extra=extra)


@pytest.mark.parametrize("value", [-1, 1.0, True, "1", math.nan, [1]])
def test_counts_are_made_of_whole_numbers(value):
    config = TransformerConfig(**GOOD)
    calls = {
        "tokens": [config.kv_cache_values, config.kv_cache_bytes, config.multiplications],
        "batch_size": [config.kv_cache_values, config.kv_cache_bytes],
        "bytes_per_value": [config.kv_cache_bytes],
        "past": [lambda past: config.multiplications(1, past)],
        "context": [config.flops_per_token],
    }
    for name, functions in calls.items():
        for count in functions:
            with refused(f"{name} = {value!r} cannot be", "whole number"):
                count(**{name: value})


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (TransformerConfig.kv_cache_bytes, "batch_size"),
        (TransformerConfig.kv_cache_bytes, "bytes_per_value"),
        (TransformerConfig.flops_per_token, "context"),
    ],
)
def test_no_sequence_no_byte_and_no_context_is_no_count(count, name):
    with refused(f"{name} = 0 cannot be"):
        count(TransformerConfig(**GOOD), **{name: 0})


@pytest.mark.parametrize(
    ("name", "value"), [("n_heads", 5), ("n_heads", 0), ("dim", "32"), ("extra", {1: 2})]
)
def test_a_config_that_was_changed_is_checked_when_it_is_used(tmp_path, name, value):
    config = TransformerConfig(**GOOD)
    setattr(config, name, value)
    for use in (
        Transformer,
        KVCache,
        TransformerConfig.num_params,
        TransformerConfig.kv_cache_bytes,
        TransformerConfig.flops_per_token,
        TransformerConfig.to_dict,
        lambda config: config.to_json(tmp_path / "config.json"),
    ):
        with refused("cannot be"):
            use(config)
    assert not list(tmp_path.iterdir())


def test_a_change_that_fits_is_used(tmp_path):
    config = TransformerConfig(**GOOD)
    config.n_heads, config.n_kv_heads = 8, None
    config.to_json(tmp_path / "config.json")
    assert TransformerConfig.from_json(tmp_path / "config.json") == config
    assert Transformer(config).num_params() == config.num_params()


@pytest.mark.parametrize("path", [5, None, b"config.json", "a\0b"])
def test_only_a_text_or_a_path_names_a_config(path):
    for use in (TransformerConfig.from_json, TransformerConfig(**GOOD).to_json):
        with refused("path = ", "must be a text or a Path"):
            use(path)


# config.json

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("configs")


@given(
    configs(),
    st.dictionaries(st.text(max_size=20).filter(lambda k: k not in NAMES), plain, max_size=4),
)
def test_what_is_written_is_read_back_unknown_keys_included(folder, config, extra):
    config = replace(config, extra=extra)
    config.to_json(folder / "config.json")
    again = TransformerConfig.from_json(folder / "config.json")
    assert again == config and again.extra == extra
    again.to_json(folder / "again.json")
    assert (folder / "again.json").read_bytes() == (folder / "config.json").read_bytes()


def test_numbers_keep_their_kind(tmp_path):
    TransformerConfig(**GOOD, ffn_dim_multiplier=2).to_json(tmp_path / "config.json")
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["ffn_dim_multiplier"] == 2.0 and written["n_kv_heads"] == 2
    assert list(written) == [f.name for f in fields(TransformerConfig) if f.name != "extra"]


def nested(depth: int) -> bytes:
    return b'{"a": ' + b"[" * depth + b"]" * depth + b"}"


def written(**changes) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t ", "is empty"),
    "truncated": (written()[:20], "is not JSON (line 1"),
    "trailing comma": (b'{"dim": 32,}', "is not JSON"),
    "comment": (b'{"dim": 32} // mine', "is not JSON"),
    "single quotes": (b"{'dim': 32}", "is not JSON"),
    "latin-1": ('{"né": 1}'.encode("latin-1"), "UTF-8"),
    "UTF-16": ('{"dim": 32}'.encode("utf-16"), "UTF-8"),
    "UTF-16 without mark": ('{"dim": 32}'.encode("utf-16-le"), "UTF-8"),
    "byte-order mark": (b"\xef\xbb\xbf" + written(), "byte-order mark"),
    "NUL": (b"\0" * 100, "UTF-8"),
    "nested, small enough to read": (nested(30_000), "nested too deep"),
    "nested 100,000 deep": (nested(100_000), "larger than 64 KiB"),
    "nested in a further key": (written(more=json.loads(nested(50))), "'more'"),
    "5,000 digits": (b'{"dim": ' + b"9" * 5_000 + b"}", "digits"),
    "4,000 digits": (written(dim=10**4_000), "dim = 1000"),
    "NaN": (written(norm_eps=math.nan), "norm_eps = nan"),
    "NaN in a further key": (written(more=math.nan), "'more' = nan"),
    "1e999": (b'{"dim": 1e999}', "lacks vocab_size, n_layers, n_heads"),
    "1e999 for a size": (written().replace(b'"dim": 32', b'"dim": 1e999'), "dim = inf"),
    "a list": (b"[1, 2]", "this is a list"),
    "a text": (b'"dim"', "this is a str"),
    "null": (b"null", "this is a NoneType"),
    "the same key twice": (b'{"dim": 32, "dim": 64}', "'dim' stands twice"),
    "over 64 KiB": (written(more="x" * 65_536), "larger than 64 KiB"),
    "missing keys": (b'{"dim": 32}', "lacks vocab_size, n_layers, n_heads"),
    "a text for a size": (written(dim="32"), "dim = '32'"),
    "a float for a size": (written(n_layers=2.0), "n_layers = 2.0"),
    "true for a size": (written(n_heads=True), "n_heads = True"),
    "null for a size": (written(vocab_size=None), "vocab_size = None"),
    "a list for a size": (written(vocab_size=list(range(99))), "vocab_size = [0, 1"),
    "zero": (written(n_layers=0), "n_layers = 0"),
    "negative": (written(max_seq_len=-5), "max_seq_len = -5"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_gives_one_clear_line(tmp_path, kind):
    content, words = BROKEN[kind]
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with refused(words):
        TransformerConfig.from_json(path)
    assert path.read_bytes() == content


def test_a_path_without_a_file_gives_one_clear_line(tmp_path):
    with refused("There is no file", "config.json"):
        TransformerConfig.from_json(tmp_path / "config.json")
    with refused("not a file"):
        TransformerConfig.from_json(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with refused("There is no file"):
        TransformerConfig.from_json(tmp_path / "dangling")
    os.mkfifo(tmp_path / "pipe")
    with refused("not a file"):
        TransformerConfig.from_json(tmp_path / "pipe")


def test_an_unreadable_file_gives_one_clear_line(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_bytes(written())

    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with refused("cannot be read: Permission denied"):
        TransformerConfig.from_json(path)


def read_or_refused(path: Path) -> TransformerConfig | None:
    """Return the config that a file holds, None if it was refused in one line."""
    try:
        config = TransformerConfig.from_json(path)
    except ValueError as error:
        assert type(error) is ValueError and "\n" not in str(error) and len(str(error)) < 500
        return None
    config.to_json(path.with_name("again.json"))
    assert TransformerConfig.from_json(path.with_name("again.json")) == config
    assert config.num_params() > 0
    return config


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
needed = ("vocab_size", "dim", "n_layers", "n_heads")
near_configs = st.fixed_dictionaries(
    {name: st.integers(1, 64) for name in needed},
    optional={
        name: anything | st.integers(1, 8)
        for name in NAMES.difference(needed) | {"model_type", "a\nb"}
    },
)


broken_configs = near_configs.flatmap(
    lambda data: st.sampled_from(needed).flatmap(
        lambda name: anything.map(lambda value: {**data, name: value})
    )
)


@settings(max_examples=300)
@given(near_configs | broken_configs | anything)
def test_any_json_is_a_valid_config_or_refused_in_one_line(folder, data):
    path = folder / "any.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    read_or_refused(path)


@settings(max_examples=300)
@given(st.data())
def test_any_bytes_are_a_valid_config_or_refused_in_one_line(folder, data):
    content = bytearray(written(more=["é", None]))
    for _ in range(data.draw(st.integers(0, 4))):  # a good file with a few bytes replaced
        where = data.draw(st.integers(0, len(content)))
        content[where : where + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    content = data.draw(st.sampled_from([bytes(content)]) | st.binary(max_size=40))
    path = folder / "bytes.json"
    path.write_bytes(content)
    read_or_refused(path)


def test_the_search_meets_valid_configs_too(folder):
    path = folder / "good.json"
    path.write_bytes(written())
    assert read_or_refused(path) == TransformerConfig(**GOOD)


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("crash", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, step, crash
):
    path = tmp_path / "config.json"
    old = TransformerConfig(**GOOD)
    old.to_json(path)

    def fail(*args, **kwargs):
        raise crash

    if step == "write":
        opened = os.fdopen

        def fdopen(*args):
            file = opened(*args, buffering=0)
            file.write(b'{"dim": ')  # half a file, on disk
            file.close()
            fail()

        monkeypatch.setattr(config_module.os, "fdopen", fdopen)
    else:
        monkeypatch.setattr(config_module.os, step, fail)
    new = replace(old, n_layers=3)
    if isinstance(crash, OSError):
        with refused("config.json cannot be written: No space left on device"):
            new.to_json(path)
    else:
        with pytest.raises(KeyboardInterrupt):
            new.to_json(path)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
    assert TransformerConfig.from_json(path) == old


def test_a_folder_that_cannot_be_made_or_written_gives_one_clear_line(tmp_path):
    config = TransformerConfig(**GOOD)
    (tmp_path / "in_the_way").write_text("a file")
    with refused("cannot be written"):
        config.to_json(tmp_path / "in_the_way" / "config.json")
    (tmp_path / "folder").mkdir()
    with refused("not a file"):
        config.to_json(tmp_path / "folder")
    with refused("not a file"):
        config.to_json("/dev/full")
    with refused("cannot be written"):
        config.to_json(tmp_path / ("long" * 64))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "in_the_way"]


def test_writing_makes_the_folders_that_are_missing(tmp_path):
    path = tmp_path / "checkpoints" / "myllm" / "config.json"
    TransformerConfig(**GOOD).to_json(path)
    assert [p.name for p in path.parent.iterdir()] == ["config.json"]
    assert path.stat().st_mode & 0o777 == 0o644
