"""Reports on hidden units of estimators."""

import numpy as np
import oracles
import pytest
from estimators.instances import assigned, random_machine

from skrbm import TabularRBM, hidden_unit_report


@pytest.mark.parametrize("kind", ["bernoulli", "spin", "cho"])
def test_reports_have_the_exact_importance(kind):
    # Slips: samples of another distribution; fields without the bias.
    p, v, _ = random_machine(kind, 4, 3)
    report = hidden_unit_report(assigned(p), v, n_samples=2000, random_state=0)
    lost = []
    for j in range(3):
        rest = p.replace(
            weights=np.delete(p.weights, j, axis=1),
            hidden_bias=np.delete(p.hidden_bias, j),
            hidden_offset=np.delete(p.hidden_offset, j),
        )
        full, without = (
            -oracles.free_energy(q, v).mean() - oracles.log_partition(q) for q in (p, rest)
        )
        lost.append(full - without)
    assert (report.importance_std_error < 0.1).all()
    assert (np.abs(report.importance - lost) < 4 * report.importance_std_error).all()
    np.testing.assert_allclose(report.mean_activation, oracles.mean_hidden(p, v).mean(axis=0))
    np.testing.assert_array_equal(report.input_counts.sum(axis=1), len(v))
    np.testing.assert_array_equal(report.weights, p.weights.T)


def test_reports_of_tables_name_the_strongest_columns():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    side = rng.random(300) < 0.5
    table = pd.DataFrame(
        {"size": side + rng.normal(0, 0.2, 300), "kind": np.where(side, "ox", "owl")}
    )
    table["noise"] = rng.choice(list("abc"), 300)
    rbm = TabularRBM(12, n_iter=30, random_state=0).fit(table)
    report = hidden_unit_report(rbm, table, n_samples=200, random_state=0)
    best = report.strongest_columns(int(np.argmax(report.importance)), 3)
    assert {name[1:] for name in best} == {"size", "kind=ox", "kind=owl"}
    assert (
        len({name[0] for name in best[:3]}) == 2
    )  # of two categories, one favours and one does not
    lines = str(report).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "and 2 less important units"
    again = hidden_unit_report(rbm, table, n_samples=200, random_state=0)
    np.testing.assert_array_equal(again.importance, report.importance)


def test_bad_arguments_of_reports_are_refused():
    p, v, _ = random_machine("bernoulli")
    rbm = assigned(p)
    with pytest.raises(ValueError, match="n_temperatures expected to be at least 2, got 1"):
        hidden_unit_report(rbm, v, n_temperatures=1)
    with pytest.raises(ValueError, match="'n_samples' parameter"):
        hidden_unit_report(rbm, v, n_samples=0)
    with pytest.raises(ValueError, match="features"):
        hidden_unit_report(rbm, v[:, 1:])
    with pytest.raises(ValueError, match="NaN"):
        hidden_unit_report(rbm, np.where(v == v[0], np.nan, v))
