"""EM routing written to be read next to the paper: numbers in lists, one capsule after the other.

Hinton, Sabour, Frosst 2018, procedure 1. What capsnet/routing/em.py computes is compared with this.
"""

import math

import torch

from capsnet.routing.em import EMRouting
from capsnet.routing.gaussians import LEAST_VARIANCE


def who_sees_whom(routing, grid):
    """For each parent, in the layer's order, its type and the (child, W) that it sees."""
    height, width = grid or (1, 1)
    if isinstance(routing, EMRouting):
        n = height * width
        everybody = [(type * n + place, type) for type in range(routing.in_types) for place in range(n)]
        return [(type, everybody) for type in range(len(routing.beta_u))]
    K, parents = routing.kernel, []
    for type in range(len(routing.beta_u)):
        for top in range(0, height - K + 1, routing.stride):
            for left in range(0, width - K + 1, routing.stride):
                seen = []
                for child_type in range(routing.in_types):
                    for row in range(K):
                        for column in range(K):
                            child = child_type * height * width + (top + row) * width + left + column
                            seen.append((child, child_type * K * K + row * K + column))
                parents.append((type, seen))
    return parents


def vote(routing, pose, W, child, grid):
    """The 4×4 product, entry by entry, and for class capsules on a grid the child's place."""
    V = [sum(pose[4 * row + k] * W[k][column] for k in range(4)) for row in range(4) for column in range(4)]
    if isinstance(routing, EMRouting) and grid:
        row, column = divmod(child % (grid[0] * grid[1]), grid[1])
        V[3] += (row + 0.5) / grid[0]
        V[7] += (column + 0.5) / grid[1]
    return V


def route(routing, given, sample):
    """One sample → poses and activations of all parents, and coupling."""
    M, a, W = given.poses[sample].tolist(), given.activations[sample].tolist(), routing.weight.tolist()
    parents = who_sees_whom(routing, given.grid)
    V, parents_of = {}, {i: [] for i in range(len(M))}
    for j, (type, seen) in enumerate(parents):
        for i, w in seen:
            V[i, j] = vote(routing, M[i], W[w][type], i, given.grid)
            parents_of[i].append(j)
    R = {(i, j): 1 / len(parents_of[i]) for i, j in V}
    uniform = [sum(R[i, j] for i, _ in seen) for j, (_, seen) in enumerate(parents)]
    for t in range(routing.iterations):
        inverse_temperature = routing.inverse_temperature * (1 - 0.95 ** (t + 1))
        mean, variance, active = [], [], []
        for j, (type, seen) in enumerate(parents):
            S = sum(R[i, j] * a[i] for i, _ in seen)
            mu = [sum(R[i, j] * a[i] * V[i, j][h] for i, _ in seen) / S for h in range(16)]
            var = [sum(R[i, j] * a[i] * (V[i, j][h] - mu[h]) ** 2 for i, _ in seen) / S for h in range(16)]
            var = [max(x, LEAST_VARIANCE) for x in var]
            amount = 100 * S / uniform[j]  # a parent of 100 active children under uniform coupling
            cost = sum((routing.beta_u[type].item() + math.log(math.sqrt(x))) * amount for x in var)
            beta_a = 100 * 16 * routing.beta_a[type].item()
            active.append(1 / (1 + math.exp(-inverse_temperature * (beta_a - cost))))
            mean.append(mu)
            variance.append(var)
        used, p = dict(R), {}
        for i, j in V:
            p[i, j] = 1.0
            for x, mu, var in zip(V[i, j], mean[j], variance[j], strict=True):
                p[i, j] *= math.exp(-((x - mu) ** 2) / (2 * var)) / math.sqrt(2 * math.pi * var)
        for i, j in V:
            R[i, j] = active[j] * p[i, j] / sum(active[k] * p[i, k] for k in parents_of[i])
    coupling = [[used.get((i, j), 0.0) for j in range(len(parents))] for i in range(len(M))]
    return [torch.tensor(x, dtype=torch.float64) for x in (mean, active, coupling)]
