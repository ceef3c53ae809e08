"""Aligned sequences: files, and weights of rows."""

import gzip
import io
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from skrbm import EffectiveCouplings, TabularRBM, effective_couplings
from skrbm.sequences import _n_relatives, contact_scores, read_fasta, sequence_weights

FASTA = ">one of them\nAC-\nW\n\n> two\nACDW\n"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def text(content):
    return io.StringIO(content)


def test_all_containers_of_a_file_are_read_alike(tmp_path):
    # Slips: the description in the name; a second line of letters lost; a line's end kept.
    pd = pytest.importorskip("pandas")
    plain, packed = tmp_path / "a.fasta", tmp_path / "a.fasta.gz"
    plain.write_bytes(FASTA.replace("\n", "\r\n").encode())
    packed.write_bytes(gzip.compress(FASTA.encode()))
    frames = [
        read_fasta(source)
        for source in (text(FASTA), io.BytesIO(FASTA.encode()), plain, str(plain), packed)
    ]
    for frame in frames:
        pd.testing.assert_frame_equal(frame, frames[0])
    assert list(frames[0].index) == ["one", "two"]
    assert list(frames[0].columns) == ["1", "2", "3", "4"]
    assert frames[0].to_numpy().tolist() == [list("AC-W"), list("ACDW")]
    assert "".join(frames[0]["4"].cat.categories) == "-ACDEFGHIKLMNPQRSTVWY"


def test_insertions_are_no_sites_unless_kept():
    # Slips: an insertion counted in the length; "." taken for a gap of A2M.
    pytest.importorskip("pandas")
    a3m = ">a\nACD\n>b\nAxy.C-\n"
    assert read_fasta(text(a3m)).to_numpy().tolist() == [list("ACD"), list("AC-")]
    lower = ">a\nac.g\n>b\nACGT\n"
    kept = read_fasta(text(lower), alphabet="dna", insertions="keep")
    assert kept.to_numpy().tolist() == [list("AC-G"), list("ACGT")]


def test_files_of_windows_and_names_of_alphabets_in_capitals():
    # Slips: a byte-order mark before the first name; "DNA" taken for the letters D, N and A.
    pytest.importorskip("pandas")
    rows = read_fasta(text("\N{ZERO WIDTH NO-BREAK SPACE}>a\nACG\n"), alphabet="DNA")
    assert rows.index.tolist() == ["a"]
    assert rows.to_numpy().tolist() == [list("ACG")]


def test_unknown_letters_may_be_missing_and_are_summed_out():
    # Slip: -1 taken for the last letter.
    pytest.importorskip("pandas")
    frame = read_fasta(text(">a\nAX\n>b\nAC\n"), handle_unknown="missing")
    assert frame.isna().to_numpy().tolist() == [[False, True], [False, False]]
    rbm = TabularRBM(2, n_iter=1, random_state=0).fit(frame)
    assert rbm.score_samples(frame).shape == (2,)
    assert [len(categories) for categories in rbm.categories_] == [21, 21]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "at least one record, got an empty file"),
        ("\n \n", "at least one record, got an empty file"),
        ("ACD\n>a\nACD\n", "before the first sequence, got 'ACD' in line 1"),
        (">a\nACD\n>\nACD\n", "a name after '>', got none in line 3"),
        (">a\n>b\nACD\n", "'a' expected letters at its sites, got none"),
        (">a\nacd\n", "'a' expected letters at its sites, got none.*insertions='keep'"),
        (">a\nACD\n>b\nACDA\n", "got 3 sites in record 'a' and 4 in record 'b'"),
        (">a 1\nACD\n>a 2\nACD\n", r"unique names.*got \['a'\] more than once"),
        (">a\nACD\n>b\nAJX\n", "got 'J' at site 2 of record 'b', and 2 such letters in all"),
        (">a\nAC\N{LATIN CAPITAL LETTER E WITH ACUTE}\n", "at site 3 of record 'a'"),
    ],
)
def test_bad_files_are_refused_by_record(content, message):
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        read_fasta(text(content))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda packed: packed[:12] + b"\xff" + packed[13:], gzip.BadGzipFile),
        (lambda packed: packed[:-6] + b"\xff" * 6, gzip.BadGzipFile),  # checksum and length
        (lambda packed: packed[:20], EOFError),
    ],
)
def test_damaged_files_raise_the_documented_error(change, error):
    # Slip: a zlib.error of corrupt content.
    pytest.importorskip("pandas")
    with pytest.raises(error):
        read_fasta(io.BytesIO(change(gzip.compress(FASTA.encode()))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphabet": "AA"}, "'rna'.* or at least two upper-case letters.*got 'AA'"),
        ({"alphabet": ">A"}, "letters other than '.', '>' and blanks.*got '>A'"),
        ({"alphabet": "A B"}, "alphabet expected to be one of.*got 'A B'"),
        ({"alphabet": "A\tB"}, "alphabet expected to be one of.*got 'A"),
        ({"alphabet": 4}, "alphabet expected to be one of.*got 4"),
        ({"alphabet": "proteins"}, "alphabet expected to be one of.*got 'proteins'"),
        ({"insertions": "ignore"}, r"insertions expected to be one of \('drop', 'keep'\)"),
        ({"handle_unknown": "gap"}, "handle_unknown expected to be one of.*got 'gap'"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        read_fasta(text(FASTA), **options)


def weights_by_pairs(X, identity):
    """Weights from every pair of rows, one after the other."""
    n_equal = [[sum(a == b for a, b in zip(x, y, strict=True)) for y in X] for x in X]
    counts = [
        sum(n >= round(identity * len(x), 9) for n in row)
        for row, x in zip(n_equal, X, strict=True)
    ]
    return 1 / np.array(counts)


@pytest.mark.parametrize("identity", [0.28, 0.6, 0.8, 1.0])
def test_weights_are_those_of_all_pairs(identity, rng):
    # Slips: a share above the threshold in place of at least; 0.28 * 25, a little more than 7, rounded up.
    X = rng.choice(list("ACD-"), (80, 25), p=[0.3, 0.3, 0.2, 0.2])
    X[:20] = X[20:40]
    expected = weights_by_pairs(X.tolist(), identity)
    np.testing.assert_array_equal(sequence_weights(X, identity), expected)
    assert len(np.unique(expected)) > 1


def test_blocks_meet_every_pair_once(rng):
    # Slips: rows of a block that count each other twice; a last block that is cut short.
    sites = rng.integers(2, size=(6, 45)).astype(np.uint8)
    expected = ((sites[:, :, None] == sites[:, None]).sum(axis=0) >= 4).sum(axis=1)
    for blocks in ((1, 1), (4, 4), (4, 10), (7, 3), (50, 50)):
        np.testing.assert_array_equal(_n_relatives(sites, 4, *blocks), expected)


def test_weights_count_to_more_than_a_byte_holds(rng):
    # Slip: numbers of equal sites, or of letters, modulo 256.
    X = np.zeros((3, 600), dtype=int)
    X[2, :300] = 1
    np.testing.assert_array_equal(sequence_weights(X, 0.6), [0.5, 0.5, 1.0])
    identifiers = np.repeat(np.arange(300)[:, None], 2, axis=1)
    np.testing.assert_array_equal(sequence_weights(identifiers, 1.0), np.ones(300))


def test_weights_of_frames_are_those_of_their_letters(rng):
    # Slip: a missing value equal to nothing, not even in its own row.
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    letters = np.where(rng.random((40, 5)) < 0.2, None, rng.choice(list("AC"), (40, 5)))
    expected = weights_by_pairs(letters.tolist(), 0.8)
    names = list("abcde")
    for X in (
        letters,
        pd.DataFrame(letters, columns=names).astype("category"),
        pl.DataFrame(letters.tolist(), schema=names, orient="row"),
    ):
        np.testing.assert_array_equal(sequence_weights(X), expected)


@pytest.mark.parametrize(
    ("X", "identity", "message"),
    [
        (["ACD", "ACD"], 0.8, r"at least one row and one site, got shape \(2,\).*list of let"),
        (np.empty((0, 3)), 0.8, r"got shape \(0, 3\)"),
        ([["A"]], 0.0, r"'identity' .* range \(0.0, 1.0\]. Got 0.0"),
        ([["A"]], 80, r"'identity' .* range \(0.0, 1.0\]. Got 80"),
        ([["A"]], "x", r"'identity' .* range \(0.0, 1.0\]. Got 'x'"),
        ([["A"]], None, r"'identity' .* range \(0.0, 1.0\]. Got None"),
    ],
)
def test_bad_arguments_of_weights_are_refused(X, identity, message):
    with pytest.raises(ValueError, match=message):
        sequence_weights(X, identity)


def test_weights_of_sparse_matrices_are_refused():
    # Slip: a message about the shape ().
    with pytest.raises(TypeError, match=r"dense table, got a sparse matrix.*toarray"):
        sequence_weights(sp.csr_array(np.eye(3)))


def random_couplings(rng, n_sites=5):
    """Potts model of three letters, not in the zero-sum gauge, and its couplings in that."""
    pairs = rng.normal(size=(n_sites, n_sites, 3, 3))
    pairs = pairs + pairs.transpose(1, 0, 3, 2)
    pairs[np.arange(n_sites), np.arange(n_sites)] = 0
    pairs = pairs - pairs.mean(axis=2, keepdims=True)
    pairs = pairs - pairs.mean(axis=3, keepdims=True)
    matrix = pairs.transpose(0, 2, 1, 3).reshape(3 * n_sites, -1)
    names = np.array([f"s{i}" for i in range(n_sites)], dtype=object)
    columns = np.array([f"{name}={letter}" for name in names for letter in "-AC"], dtype=object)
    sites = np.repeat(np.arange(n_sites), 3)
    fields = np.zeros(len(matrix))
    return EffectiveCouplings(fields, matrix, None, "exact", sites, names, columns), pairs


def test_scores_are_norms_less_their_average_product(rng):
    # Slips: averages over the diagonal too; a norm squared; the gap in the sum.
    couplings, pairs = random_couplings(rng)
    for ignored, first in ((None, 0), ("-", 1)):
        norms = np.zeros((5, 5))
        for i, j in np.ndindex(5, 5):
            norms[i, j] = np.linalg.norm(pairs[i, j, first:, first:])
        actual = contact_scores(couplings, ignored_letter=ignored, correction=False)
        np.testing.assert_allclose(actual, norms, atol=1e-12)
        off = [[norms[i, j] for j in range(5) if j != i] for i in range(5)]
        corrected = contact_scores(couplings, ignored_letter=ignored)
        for i, j in zip(*np.triu_indices(5, 1), strict=True):
            expected = norms[i, j] - np.mean(off[i]) * np.mean(off[j]) / np.mean(off)
            assert corrected[i, j] == corrected[j, i] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_array_equal(np.diag(corrected), 0)


def test_a_frame_has_each_pair_once_with_its_names(rng):
    pytest.importorskip("pandas")
    couplings, _ = random_couplings(rng)
    scores, frame = contact_scores(couplings), contact_scores(couplings, as_frame=True)
    assert len(frame) == 10
    assert frame["score"].is_monotonic_decreasing
    for _, (first, second, score) in frame.iterrows():
        assert score == scores[int(first[1:]), int(second[1:])]


def test_sites_without_couplings_have_no_scores():
    # Slip: 0 / 0.
    zero = np.zeros((6, 6))
    numbers = np.arange(3)
    couplings = EffectiveCouplings(
        zero[0], zero, None, "exact", np.repeat(numbers, 2), numbers, zero
    )
    np.testing.assert_array_equal(contact_scores(couplings), np.zeros((3, 3)))


def test_what_has_no_contacts_is_refused(rng):
    with pytest.raises(ValueError, match="at least three sites, got 2"):
        contact_scores(random_couplings(rng, n_sites=2)[0])
    with pytest.raises(ValueError, match=r"letter of some site, got 'X'.*'s0=-', 's0=A'"):
        contact_scores(random_couplings(rng)[0], ignored_letter="X")
    with pytest.raises(TypeError, match="result of effective_couplings, got TabularRBM"):
        contact_scores(TabularRBM())
    for name in ("correction", "as_frame"):
        with pytest.raises(ValueError, match=f"'{name}' .* Got 'x'"):
            contact_scores(random_couplings(rng)[0], **{name: "x"})


def test_two_state_sites_have_two_letters(rng):
    # Slips: the one column of two states taken for one letter; letters that have no column.
    X = rng.choice(list("AC-"), (200, 4)).astype(object)
    X[:, :2] = rng.choice(list("AC"), (200, 2))
    X[:, 1] = np.where(rng.random(200) < 0.8, X[:, 0], X[:, 1])
    X[:, 3] = np.where(rng.random(200) < 0.8, X[:, 2], X[:, 3])
    kinds = dict.fromkeys(range(4), "categorical")
    options = {"n_iter": 3, "random_state": 0}
    two = TabularRBM(2, kinds=kinds | {0: "binary", 1: "binary"}, **options).fit(X)
    one = TabularRBM(2, kinds=kinds, **options).fit(X)

    def of_both(array):  # the same distribution with a column for each state
        halves = np.stack([-array[..., :2] / 2, array[..., :2] / 2], axis=-1)
        return np.concatenate([halves.reshape(*array.shape[:-1], 4), array[..., 2:]], axis=-1)

    one.components_ = of_both(two.components_)
    one.intercept_visible_ = of_both(two.intercept_visible_)
    one.intercept_hidden_ = two.intercept_hidden_ + two.components_[:, :2].sum(axis=1) / 2
    assert np.ptp(one.free_energy(X) - two.free_energy(X)) < 1e-9
    scores = [contact_scores(effective_couplings(rbm), correction=False) for rbm in (one, two)]
    np.testing.assert_allclose(*scores, atol=1e-9)
    with pytest.raises(ValueError, match=r"two states in a single column at \[0, 1\].*'categor"):
        contact_scores(effective_couplings(two), ignored_letter="-")


def test_letters_beyond_ascii_are_one_site_each():
    # Slip: as many sites as the letter has bytes.
    file = ">a\nA\u00e9C\n>b\nAD\u03b1\n"
    letters = read_fasta(io.StringIO(file), handle_unknown="missing")
    assert letters.isna().to_numpy().tolist() == [[False, True, False], [False, False, True]]
    with pytest.raises(ValueError, match="got 'é' at site 2 of record 'a'"):
        read_fasta(io.StringIO(file))
    with pytest.raises(ValueError, match="got 'é' at site 2 of record 'a'"):
        read_fasta(io.BytesIO(">a\nA\u00e9C\n".encode("latin-1")))
    with pytest.raises(ValueError, match="got a letter beyond Latin-1 at site 1 of record 'b'"):
        read_fasta(io.StringIO(">a\nAC\n>b\n\u03b1D\n"))


def test_sequences_that_agree_nowhere_are_never_similar():
    # Slip: a threshold that rounds to no site at all.
    weights = sequence_weights([list("AC"), list("DE"), list("DF")], identity=1e-10)
    np.testing.assert_allclose(weights, [1, 0.5, 0.5])


def test_numbers_and_constant_sites_have_no_second_letter(rng):
    # Slip: every single column taken for two states.
    X = rng.normal(size=(100, 3))
    couplings = effective_couplings(TabularRBM(2, n_iter=2, random_state=0).fit(X))
    scores = contact_scores(couplings, correction=False)
    np.testing.assert_array_equal(scores, couplings.norms())
    X = np.column_stack([X[:, 0], rng.integers(0, 2, (100, 2)), X[:, 1]])
    kinds = {1: "categorical", 2: "binary"}  # the units are in another order
    couplings = effective_couplings(TabularRBM(2, kinds=kinds, n_iter=2, random_state=0).fit(X))
    factors = np.sqrt([1, 1, 2, 1])
    expected = couplings.norms() * np.outer(factors, factors)
    np.testing.assert_allclose(contact_scores(couplings, correction=False), expected)
    X = rng.choice(list("AC-"), (100, 4)).astype(object)
    X[:, 0] = "A"
    kinds = dict.fromkeys(range(4), "categorical")
    rbm = TabularRBM(2, kinds=kinds, n_iter=2, random_state=0).fit(X)
    assert (contact_scores(effective_couplings(rbm), ignored_letter="-")[0] == 0).all()
    X[:, 1] = None  # a site without letters
    with pytest.warns(UserWarning, match="no observed value"):
        rbm.fit(X)
    assert contact_scores(effective_couplings(rbm)).shape == (4, 4)


def test_names_in_latin_letters_differ_and_comments_before_records_are_skipped():
    """Slips: one sign for all letters that are not in UTF-8; `#A3M#` taken for a sequence."""
    content = b"#A3M#\n>prot\xe9\nAC\n>prot\xe8\nAD\n"
    assert list(read_fasta(io.BytesIO(content)).index) == ["prot\xe9", "prot\xe8"]
    utf8 = content.decode("latin-1").encode()
    assert list(read_fasta(io.BytesIO(utf8)).index) == ["prot\xe9", "prot\xe8"]


def test_only_the_ignored_letter_is_left_out(rng):
    """Slip: a letter that ends in it, such as a code of several characters."""
    couplings, *_ = random_couplings(rng)
    last = couplings.columns[-1].rpartition("=")
    renamed = replace(couplings, columns=np.append(couplings.columns[:-1], f"{last[0]}=b=-"))
    one, other = (contact_scores(own, ignored_letter="-") for own in (couplings, renamed))
    np.testing.assert_array_equal(one, other)
