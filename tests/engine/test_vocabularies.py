import os
import shutil
import tempfile

import pytest
import tiktoken

from engine import vocabularies
from engine.tokenizers import load_vocabulary
from engine.vocabularies import VOCABULARIES, find, how_to_add, keep, read, recognise

pytestmark = pytest.mark.usefixtures("no_network")
R50K, GPT2_JSON = VOCABULARIES["gpt2"].sources


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """No vocabulary lies anywhere."""
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("name", VOCABULARIES)
def test_t22_a_missing_vocabulary_is_refused_offline_with_what_to_do(name, loupe_home):
    assert find(name) is None
    with pytest.raises(ValueError, match="not on this machine") as refusal:
        load_vocabulary(name)
    assert str(loupe_home / "vocab") in str(refusal.value)
    assert VOCABULARIES[name].sources[0].sha256[:12] in how_to_add(name)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="gpt5.*gpt2.*o200k_base"):
        load_vocabulary("gpt5")


def test_t22_a_damaged_file_is_not_taken(loupe_home, vocab_folder):
    folder = loupe_home / "vocab"
    folder.mkdir(parents=True)
    good = (vocab_folder / R50K.file_names[0]).read_bytes()
    (folder / "r50k_base.tiktoken").write_bytes(good[:-1])
    assert find("gpt2") is None
    (folder / "r50k_base.tiktoken").write_bytes(good[:-1] + b"x")
    assert find("gpt2") is None
    (folder / "r50k_base.tiktoken").write_bytes(good)
    assert find("gpt2") == folder / "r50k_base.tiktoken"


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_tiktokens_own_cache_is_found(variable, vocab_folder, monkeypatch):
    monkeypatch.setenv(variable, str(vocab_folder))
    for name in VOCABULARIES:
        found = find(name)
        assert found is not None and found.parent == vocab_folder


def test_both_files_of_gpt2_hold_the_same_ranks(loupe_home, vocab_folder):
    read_from = {}
    for source in (R50K, GPT2_JSON):
        folder = loupe_home / "vocab"
        folder.mkdir(parents=True)
        shutil.copy(vocab_folder / source.file_names[0], folder / source.file_names[1])
        read_from[source] = read("gpt2")
        shutil.rmtree(folder)
    assert read_from[R50K] == read_from[GPT2_JSON]
    assert len(read_from[R50K][0]) == 50256


@pytest.mark.parametrize("name", VOCABULARIES)
def test_sizes_and_control_tokens_are_the_publishers(name, vocab_folder, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    reference = tiktoken.get_encoding(name)
    tokenizer = load_vocabulary(name)
    assert tokenizer.vocab_size == reference.n_vocab
    assert VOCABULARIES[name].specials == reference._special_tokens
    assert tokenizer.end_id == reference.eot_token
    assert read(name)[0] == reference._mergeable_ranks


def test_a_vocabulary_in_the_data_folder_comes_first(loupe_home, vocab_folder, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    assert vocabularies.folders()[0] == loupe_home / "vocab"
    (loupe_home / "vocab").mkdir(parents=True)
    shutil.copy(vocab_folder / R50K.file_names[0], loupe_home / "vocab")
    assert find("gpt2").parent == loupe_home / "vocab"


def test_a_file_is_hashed_once_until_it_changes(loupe_home, vocab_folder, monkeypatch):
    folder = loupe_home / "vocab"
    folder.mkdir(parents=True)
    path = folder / "r50k_base.tiktoken"
    path.write_bytes((vocab_folder / R50K.file_names[0]).read_bytes())
    read_files = []
    real = type(path).read_bytes
    monkeypatch.setattr(type(path), "read_bytes", lambda self: read_files.append(self) or real(self))
    assert [find("gpt2") for _ in range(5)] == [path] * 5
    assert read_files == [path]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    os.utime(path, ns=(1, 1))
    assert find("gpt2") is None
    with pytest.raises(ValueError, match="not on this machine"):
        read("gpt2")


def test_the_sizes_that_a_download_announces_are_right(vocab_folder):
    for published in VOCABULARIES.values():
        for source in published.sources:
            assert (vocab_folder / source.file_names[0]).stat().st_size == source.size


def test_a_published_file_is_recognised_and_kept(loupe_home, vocab_folder):
    content = (vocab_folder / R50K.file_names[0]).read_bytes()
    assert recognise(content) == (R50K, ("gpt2", "r50k_base"))
    assert keep(content) == ("gpt2", "r50k_base")
    assert find("gpt2") == loupe_home / "vocab" / "r50k_base.tiktoken"
    assert load_vocabulary("gpt2").encode("Hello world") == [15496, 995]


def test_a_file_of_nobody_is_not_kept(loupe_home):
    assert recognise(b"YQ== 0") == (None, ())
    with pytest.raises(ValueError, match="none of the published vocabularies"):
        keep(b"YQ== 0")
    assert not (loupe_home / "vocab").exists()


def test_an_installed_package_s_files_are_found(tmp_path, vocab_folder, monkeypatch):
    folder = tmp_path / "litellm" / "litellm_core_utils" / "tokenizers"
    folder.mkdir(parents=True)
    (tmp_path / "litellm" / "__init__.py").write_text("raise RuntimeError('imported')", "utf-8")
    shutil.copy(vocab_folder / R50K.file_names[0], folder)
    monkeypatch.syspath_prepend(tmp_path)
    vocabularies._installed.cache_clear()
    assert find("gpt2") == folder / R50K.file_names[0]
    vocabularies._installed.cache_clear()
