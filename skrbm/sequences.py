"""Functions for aligned sequences: file reader, sequence weights, and contact scores."""

from __future__ import annotations

import gzip
import math
import zlib
from codecs import BOM_UTF8
from collections import Counter
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from skrbm.core.couplings import EffectiveCouplings
from skrbm.core.numerics import Array, is_sparse
from skrbm.estimators.input.validation import checked_arguments
from skrbm.estimators.tables.frames import columns_of, container_of, factorized

__all__ = ["contact_scores", "read_fasta", "sequence_weights"]

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "dna": "-ACGT", "rna": "-ACGU"}
BEYOND_LATIN = 255  # byte of letters beyond Latin-1, in which it is the letter y with a diaeresis
NO_LETTERS = set(".> ")  # insertions, beginnings of headers, and blanks, which are dropped
GZIP_MAGIC = b"\x1f\x8b"  # first bytes of a compressed file: RFC 1952
N_SHOWN = 10  # largest number of names in a message
# Block sizes of the comparison of pairs: for at most 255 sites, two arrays of one byte per pair,
# which fit in a cache of 1 MiB.
PAIRED_ROWS, PAIRED_OTHERS = 2**6, 2**13


def read_fasta(
    path: Any,
    *,
    alphabet: str = "protein",
    insertions: str = "drop",
    handle_unknown: str = "error",
) -> Any:
    r"""Read aligned sequences in FASTA, A2M or A3M format.

    Parameters
    ----------
    path : str, path or file
        Name of a file, or a file opened for reading. The file may be compressed with gzip; an open
        file must then be in binary mode.
    alphabet : str, default="protein"
        Letters of the sequences. "protein" consists of the gap "-" and the twenty amino acids,
        "dna" and "rna" of the gap and the four bases. Any other string is the list of all letters:
        at least two printable ASCII characters other than ".", ">" and blanks, each of them once
        and in upper case. Include "-" if the sequences have gaps.
    insertions : {"drop", "keep"}, default="drop"
        Treatment of lower-case letters and ".". In A2M and A3M files, they are insertions, which do
        not belong to a site of the alignment. "drop" removes them. "keep" converts lower-case to
        upper-case letters and "." to "-", for files in which they are not insertions.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of letters that are not in the alphabet, such as "X". "error" raises a ValueError.
        "missing" replaces these letters by missing values, over which `TabularRBM` marginalizes by
        default.

    Returns
    -------
    sequences : pandas.DataFrame of shape (n_sequences, n_sites)
        Data frame with one row per sequence and one categorical column per site. The columns are
        named "1", "2" and so on, and their categories are the letters of the alphabet. The index
        contains the first word of each header.

    Raises
    ------
    BadGzipFile
        If a compressed file is corrupt.
    EOFError
        If a compressed file is truncated.
    ImportError
        If pandas is not installed.
    ValueError
        If there is no record, or if there is text before the first header. If a record has no name
        or no letters, or if a name occurs twice. If sequences differ in length. If a letter is
        unknown and `handle_unknown` is "error". If the value of a parameter is invalid.

    Examples
    --------
    >>> from io import StringIO
    >>> from skrbm.sequences import read_fasta
    >>> print(read_fasta(StringIO(">first\nAC-\n>second\nACgtW\n")))
            1  2  3
    first   A  C  -
    second  A  C  W
    """
    pd = _pandas("read_fasta")
    letters = _letters(alphabet)
    for name, value, options in (
        ("insertions", insertions, ("drop", "keep")),
        ("handle_unknown", handle_unknown, ("error", "missing")),
    ):
        if value not in options:
            raise ValueError(f"{name} expected to be one of {options}, got {value!r}.")
    names, rows = _records(_content(path))
    removed = bytes(range(ord("a"), ord("z") + 1)) + b"."
    if insertions == "drop":
        rows = [row.translate(None, removed) for row in rows]
    else:
        rows = [row.upper().replace(b".", b"-") for row in rows]
    _check_lengths(names, rows, insertions)
    codes = _codes(names, rows, letters, handle_unknown)
    dtype = pd.CategoricalDtype(list(letters))
    columns = {
        str(site): pd.Categorical.from_codes(column, dtype=dtype)
        for site, column in enumerate(codes.T, start=1)
    }
    return pd.DataFrame(columns, index=names)


@checked_arguments(identity=[Interval(Real, 0, 1, closed="right")])
def sequence_weights(X: Any, identity: float = 0.8) -> Array:
    r"""Compute weights that reduce the influence of similar sequences.

    .. math:: w_n = 1 \,/\, \#\{m : \text{rows } n \text{ and } m \text{ agree in at least
        a fraction } \theta \text{ of the sites}\}

    The sum of the weights is the effective number of sequences [1]_. Pass the weights to `fit` as
    `sample_weight`.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_sequences, n_sites)
        Letters, or any other values. A gap is treated as a letter. Missing values are treated as
        equal to each other.
    identity : float, default=0.8
        Threshold :math:`\theta` of sequence identity, in (0, 1]. Two sequences are similar if they
        agree in at least this fraction of the sites.

    Returns
    -------
    weights : ndarray of shape (n_sequences,)
        Weights in (0, 1]. A sequence that is similar to no other has a weight of one.

    Raises
    ------
    TypeError
        If `X` is sparse.
    ValueError
        If `X` is not a table or is empty, or if `identity` is not a number in (0, 1].

    References
    ----------
    .. [1] Morcos, Pagnani, Lunt, Bertolino, Marks, Sander, Zecchina, Onuchic, Hwa, Weigt (2011),
       "Direct-coupling analysis of residue coevolution captures native contacts across many
       protein families", PNAS 108(49), E1293-E1301, eq. 6. :doi:`10.1073/pnas.1111471108`

    Examples
    --------
    >>> from skrbm.sequences import sequence_weights
    >>> sequence_weights([list("AAAAA"), list("AAAAC"), list("GGGGG")])
    array([0.5, 0.5, 1. ])
    """
    sites = _site_codes(X)
    n_equal = max(1, math.ceil(identity * len(sites) - 1e-9))  # 0.55 * 100 is 55.00000000000001
    return 1 / _n_relatives(sites, n_equal)


@checked_arguments(correction=["boolean"], as_frame=["boolean"])
def contact_scores(
    couplings: EffectiveCouplings,
    *,
    ignored_letter: str | None = None,
    correction: bool = True,
    as_frame: bool = False,
) -> Any:
    r"""Compute contact scores of pairs of sites from effective couplings.

    .. math::

        F_{ij} = \sqrt{\sum_{a, b} J_{ij}(a, b)^2}, \qquad
        S_{ij} = F_{ij} - \frac{\overline{F_{i \cdot}} \, \overline{F_{\cdot j}}}{\overline{F}}

    where :math:`J_{ij}(a, b)` is the coupling between letter a at site i and letter b at site j in
    the zero-sum gauge [2]_, and averages are over pairs of different sites. A feature with two
    states in a single column counts as a site with two letters. Some sites have strong couplings to
    all other sites, for example because they are more variable. The average-product correction, the
    second term of :math:`S_{ij}`, reduces this effect [1]_.

    Parameters
    ----------
    couplings : EffectiveCouplings
        Result of `effective_couplings` for a fitted model, or couplings of another Potts model.
    ignored_letter : str, default=None
        Letter that is excluded from the sums. Exclude "-" if long gaps cause couplings between
        neighboring sites. If None, all letters are included.
    correction : bool, default=True
        Whether to apply the average-product correction.
    as_frame : bool, default=False
        Whether to return a data frame of pairs instead of a matrix.

    Returns
    -------
    scores : ndarray of shape (n_features, n_features) or pandas.DataFrame
        Symmetric matrix of scores in nats, with a zero diagonal. If `as_frame` is True, a data
        frame with one row per pair of sites and the columns "first", "second" and "score", sorted
        by descending score.

    Raises
    ------
    ImportError
        If `as_frame` is True and pandas is not installed.
    TypeError
        If `couplings` is not an instance of `EffectiveCouplings`.
    ValueError
        If there are fewer than three sites, or if the couplings have no column for the ignored
        letter. If `ignored_letter` is given and a feature has two states in a single column; fit
        with the kind "categorical". If `correction` or `as_frame` is not boolean.

    References
    ----------
    .. [1] Dunn, Wahl, Gloor (2008), "Mutual information without the influence of phylogeny or
       entropy dramatically improves residue contact prediction", Bioinformatics 24(3), 333-340.
       :doi:`10.1093/bioinformatics/btm604`
    .. [2] Ekeberg, Lövkvist, Lan, Weigt, Aurell (2013), "Improved contact prediction in proteins:
       using pseudolikelihoods to infer Potts models", Physical Review E 87, 012707.
       :doi:`10.1103/PhysRevE.87.012707`

    Examples
    --------
    The last two of four sites are equal in every sequence:

    >>> import numpy as np
    >>> from skrbm import TabularRBM, effective_couplings
    >>> from skrbm.sequences import contact_scores
    >>> X = np.random.default_rng(0).choice(list("AC-"), (300, 4)).astype(object)
    >>> X[:, 3] = X[:, 2]
    >>> kinds = {site: "categorical" for site in range(4)}
    >>> rbm = TabularRBM(4, kinds=kinds, n_iter=20, random_state=0).fit(X)
    >>> scores = contact_scores(effective_couplings(rbm))
    >>> [int(site) for site in np.unravel_index(scores.argmax(), scores.shape)]
    [2, 3]
    """
    if not isinstance(couplings, EffectiveCouplings):
        raise TypeError(
            f"couplings expected to be the result of effective_couplings, got "
            f"{type(couplings).__name__}."
        )
    n_sites = len(couplings.features)
    if n_sites < 3:
        raise ValueError(f"Contact scores expected at least three sites, got {n_sites}.")
    has_two_states = np.zeros(n_sites, dtype=bool)
    if couplings.has_two_states is not None:
        has_two_states[couplings.feature_of_column[couplings.has_two_states]] = True
    included = None
    if ignored_letter is not None:
        if has_two_states.any():
            raise ValueError(
                f"ignored_letter expected sites with one column for each letter, got two states in "
                f"a single column at {couplings.features[has_two_states][:N_SHOWN].tolist()}. Fit "
                f"with the kind 'categorical' for these sites."
            )
        sites = couplings.features[couplings.feature_of_column]
        columns = zip(couplings.columns, sites, strict=True)
        included = np.array([column != f"{site}={ignored_letter}" for column, site in columns])
        if included.all():
            raise ValueError(
                f"ignored_letter expected to be a letter of some site, got {ignored_letter!r}. The "
                f"columns are named {couplings.columns[:N_SHOWN].tolist()} and so on."
            )
    # J(a, b) of two letters is J or -J, where J is the interaction of the only column.
    letters_per_column = np.where(has_two_states, 2.0, 1.0)
    scores = couplings.norms(included) * np.sqrt(np.outer(letters_per_column, letters_per_column))
    if correction:
        scores = _less_average_product(scores)
    if not as_frame:
        return scores
    pd = _pandas("contact_scores(as_frame=True)")
    first, second = np.triu_indices(n_sites, 1)
    names = np.asarray(couplings.features, dtype=object)
    frame = pd.DataFrame(
        {"first": names[first], "second": names[second], "score": scores[first, second]}
    )
    return frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _less_average_product(scores: Array) -> Array:
    """Apply the average-product correction to scores."""
    n_sites = len(scores)
    averages = scores.sum(axis=1) / (n_sites - 1)
    total = averages.mean()
    if total == 0:
        return scores
    corrected = scores - np.outer(averages, averages) / total
    np.fill_diagonal(corrected, 0)
    return corrected


def _pandas(caller: str) -> Any:
    """Import pandas, or raise an ImportError with the install command."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{caller} expected pandas, which is not installed. Install it with: pip install pandas"
        ) from error
    return pd


def _letters(alphabet: str) -> str:
    """Return the letters of an alphabet, given its name or the letters themselves."""
    letters = ALPHABETS.get(alphabet.lower(), alphabet) if isinstance(alphabet, str) else ""
    is_plain = letters.isascii() and letters.isprintable() and letters == letters.upper()
    is_plain = is_plain and not set(letters) & NO_LETTERS
    if not is_plain or len(set(letters)) != len(letters) or len(letters) < 2:
        raise ValueError(
            f"alphabet expected to be one of {list(ALPHABETS)}, or at least two upper-case "
            f"letters other than '.', '>' and blanks, each of them once, got {alphabet!r}."
        )
    return letters


def _content(path: Any) -> bytes:
    """Content of a file, decompressed if it is compressed with gzip."""
    content = path.read() if hasattr(path, "read") else Path(path).read_bytes()
    content = content.encode() if isinstance(content, str) else content
    if content.startswith(GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except zlib.error as error:  # wrong checksums raise a BadGzipFile
            raise gzip.BadGzipFile(f"path expected an intact file, got: {error}.") from error
    return content.removeprefix(BOM_UTF8)


def _records(content: bytes) -> tuple[list[str], list[bytes]]:
    """Return the names and sequences of all records in the content of a file."""
    names: list[str] = []
    rows: list[list[bytes]] = []
    for number, line in enumerate(map(bytes.strip, content.splitlines()), start=1):
        if not line or (line.startswith(b"#") and not rows):  # first line of some A3M files
            continue
        if line.startswith(b">"):
            words = line[1:].split(maxsplit=1)
            if not words:
                raise ValueError(f"Headers expected a name after '>', got none in line {number}.")
            names.append(_text(words[0]))
            rows.append([])
        elif rows:
            rows[-1].append(b"".join(line.split()))
        else:
            raise ValueError(
                f"FASTA expected a header, '>' and a name, before the first sequence, got "
                f"{line[:40].decode(errors='replace')!r} in line {number}."
            )
    if not names:
        raise ValueError("FASTA expected at least one record, got an empty file.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"Records expected unique names (the first words of their headers), got "
            f"{twice[:N_SHOWN]} more than once. Rename or drop them."
        )
    return names, [_one_byte_each(b"".join(parts)) for parts in rows]


def _text(word: bytes) -> str:
    """Text in UTF-8 or, if it is not in UTF-8, in Latin-1."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        return word.decode("latin-1")


def _one_byte_each(row: bytes) -> bytes:
    """Encode each character in Latin-1, as which text is read that is not in UTF-8.

    Characters beyond Latin-1 become the byte `BEYOND_LATIN`.
    """
    if row.isascii():
        return row
    try:
        return bytes(min(ord(letter), BEYOND_LATIN) for letter in row.decode())
    except UnicodeDecodeError:
        return row


def _check_lengths(names: list[str], rows: list[bytes], insertions: str) -> None:
    """Raise a ValueError if sequences are empty or differ in length."""
    cure = "Align the sequences first."
    if insertions == "drop":
        cure += (
            " Lower-case letters and '.' are insertions and are dropped; set insertions='keep' if "
            "they are sites."
        )
    n_sites = len(rows[0])
    for name, row in zip(names, rows, strict=True):
        if not row:
            raise ValueError(f"Record {name!r} expected letters at its sites, got none. {cure}")
        if len(row) != n_sites:
            raise ValueError(
                f"Sequences expected to have equal lengths, got {n_sites} sites in record "
                f"{names[0]!r} and {len(row)} in record {name!r}. {cure}"
            )


def _codes(names: list[str], rows: list[bytes], letters: str, handle_unknown: str) -> Array:
    """Return the codes of the letters, of shape (n_sequences, n_sites); -1 for unknown letters."""
    numbers = np.full(256, -1, dtype=np.int16)
    numbers[np.frombuffer(letters.encode(), np.uint8)] = np.arange(len(letters))
    sequences = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
    codes = numbers[sequences]
    places = np.argwhere(codes < 0)
    if len(places) and handle_unknown == "error":
        record, site = places[0]
        byte = sequences[record, site]
        shown = "a letter beyond Latin-1" if byte == BEYOND_LATIN else repr(chr(byte))
        raise ValueError(
            f"Sequences expected letters of the alphabet {letters!r}, got {shown} at site {site + 1} "
            f"of record {names[record]!r}, and {len(places)} such letters in all. Choose another "
            f"alphabet, or set handle_unknown='missing'."
        )
    return codes


def _site_codes(X: Any) -> Array:
    """Encode the values of each site as integers of the smallest sufficient type.

    Equal values have equal codes, and missing values have the code 0. The codes have shape
    (n_sites, n_rows).
    """
    if is_sparse(X):
        raise TypeError("X expected a dense table, got a sparse matrix. Pass X.toarray().")
    X = np.asarray(X) if container_of(X) == "array" else X
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(
            f"X expected to be a table of at least one row and one site, got shape {X.shape}. "
            f"Convert each sequence to a list of letters."
        )
    codes = [factorized(column)[0] + 1 for column in columns_of(X)]  # missing ones are zero
    largest = max(int(column.max()) for column in codes)
    return np.stack([column.astype(np.min_scalar_type(largest)) for column in codes])


def _n_relatives(
    sites: Array, n_equal: int, block_rows: int = PAIRED_ROWS, block_others: int = PAIRED_OTHERS
) -> Array:
    """Count the rows, including the row itself, that agree with a row in `n_equal` or more sites.

    `sites` has shape (n_sites, n_rows), and the result has shape (n_rows,).
    """
    n_rows = sites.shape[1]
    counts = np.zeros(n_rows, dtype=np.intp)
    for begin in range(0, n_rows, block_rows):
        for other in range(begin, n_rows, block_others):
            rows, others = slice(begin, begin + block_rows), slice(other, other + block_others)
            are_relatives = _n_equal_sites(sites[:, rows], sites[:, others]) >= n_equal
            counts[rows] += are_relatives.sum(axis=1)
            n_done = max(rows.stop - other, 0)  # rows of the block itself, counted above
            counts[others][n_done:] += are_relatives[:, n_done:].sum(axis=0)
    return counts


def _n_equal_sites(rows: Array, others: Array) -> Array:
    """Number of sites at which each of `rows` and each of `others` have equal values.

    `rows`, of shape (n_sites, n_rows), and `others`, of shape (n_sites, n_others), are transposed,
    so that the values of a site are contiguous. The result has shape (n_rows, n_others).
    """
    shape = rows.shape[1], others.shape[1]
    is_equal = np.empty(shape, dtype=bool)
    n_equal = np.zeros(shape, dtype=np.min_scalar_type(len(rows)))
    for site, other_site in zip(rows, others, strict=True):
        np.equal(site[:, None], other_site, out=is_equal)
        n_equal += is_equal.view(np.uint8)
    return n_equal
