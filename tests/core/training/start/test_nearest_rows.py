"""First values of missing cells are those of the nearest rows."""

import numpy as np
import pytest

from skrbm.core.training.start.nearest_rows import with_nearest_values


@pytest.mark.parametrize("constant", [0.1, 0.2, 0.3, 0.7, 1e300])
def test_another_value_of_a_constant_column_does_not_hide_the_others(constant):
    # Slip: a standard deviation of rounding errors as the unit of the column.
    number = np.arange(30.0)
    donors = np.column_stack([np.full(30, constant), number, number])
    rows = np.array([[1.5 * constant, 17.0, np.nan], [np.nan, 3.0, np.nan]])
    filled = with_nearest_values(rows, donors, np.zeros(3))
    np.testing.assert_array_equal(filled, [[1.5 * constant, 17, 17], [constant, 3, 3]])
