"""Gaussians fitted to votes, with the votes in memory and without."""

import pytest
import torch

from capsnet.routing.gaussians import LEAST_VARIANCE, FactoredVotes, StoredVotes

J = 3


def test_m_step_by_hand():
    votes = torch.tensor([[[1.0, 0.0], [3.0, 4.0], [70.0, -9.0]]])  # one parent, three children, D = 2
    mean, variance, squares = StoredVotes(votes).fit(torch.tensor([[0.5, 0.25, 0.0]]))
    # S = 3/4: μ = (1/2 + 3/4, 1) / S; σ² = (1/2 · (2/3)² + 1/4 · (4/3)²) / S and (1/2 · (4/3)² + 1/4 · (8/3)²) / S.
    torch.testing.assert_close(mean, torch.tensor([[5 / 3, 4 / 3]]))
    torch.testing.assert_close(variance, torch.tensor([[8 / 9, 32 / 9]]))
    torch.testing.assert_close(squares[0, 1], torch.tensor([(4 / 3) ** 2, (8 / 3) ** 2]))


def both_kinds_of_votes(batch=2, types=3, children=7, columns=5, dtype=torch.float64, far=0.0):
    """The same votes, factored and stored, of poses (4, columns) around `far`."""
    generator = torch.Generator().manual_seed(3)
    M = far + torch.randn(batch, types, 4, columns, children, dtype=torch.float64, generator=generator)
    W = torch.randn(types, J, columns, 4, dtype=torch.float64, generator=generator)
    weights = torch.rand(batch, 1, J, types * children, dtype=torch.float64, generator=generator)
    votes = torch.einsum("btrkn,tjkc->bjtnrc", M, W).flatten(4).flatten(2, 3)[:, None]  # (B, 1, J, I, 16)
    return FactoredVotes(M.to(dtype), W.to(dtype)), StoredVotes(votes), weights


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("columns", "children"), [(5, 7), (4, 1), (1, 2)])
def test_factored_votes_are_the_votes(columns, children, shared):
    factored, stored, weights = both_kinds_of_votes(columns=columns, children=children)
    weights = weights[:, :, :1] if shared else weights
    (mean, variance, offsets), (expected_mean, expected, squares) = factored.fit(weights), stored.fit(weights)
    torch.testing.assert_close(mean, expected_mean)
    torch.testing.assert_close(variance, expected)
    assert (expected > 2 * LEAST_VARIANCE).all()
    torch.testing.assert_close(factored.distances(offsets, variance), stored.distances(squares, expected))


@pytest.mark.parametrize("far", [0, 30])
def test_factored_votes_do_not_lose_their_spread_to_rounding(far):
    """In float32, where the square of a vote that is far from zero leaves no digits for the spread."""
    factored, stored, weights = both_kinds_of_votes(dtype=torch.float32, far=far)
    (mean, variance, offsets), (expected_mean, expected, squares) = factored.fit(weights.float()), stored.fit(weights)
    torch.testing.assert_close(mean, expected_mean.float(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(variance, expected.float(), rtol=1e-4, atol=1e-4)
    distances = stored.distances(squares, expected).float()
    torch.testing.assert_close(factored.distances(offsets, variance), distances, rtol=1e-3, atol=1e-3)
