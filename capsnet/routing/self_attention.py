"""Self-attention routing: one pass, no iterations.

Mazzia, Salvetti, Chiaberge 2021, "Efficient-CapsNet: Capsule Network with Self-Attention Routing".
https://arxiv.org/abs/2101.12491

    û_j|i = W_ij u_i                          a vote, as in dynamic routing
    A_j   = û_j û_jᵀ / √D                     (I, I): how much the votes of two children for parent j agree
    c_ij  = softmax_j(Σ_l A_j,il) + prior_ij  each child divides itself among the parents
    v_j   = squash(Σ_i c_ij û_j|i)            with the exponential squash

Every child is compared with the sum of all votes, since Σ_l û_i · û_l = û_i · Σ_l û_l: A is never formed, and the work
grows with the number of children, not with its square.

The paper's attention has one head, whose queries and keys are the votes themselves. `MultiHeadAttentionRouting` is our
general form of it, in which they are learned projections of the votes.
"""

import math

import torch
from torch import Tensor, nn

from capsnet.functional import at_least_float32, directions, exponential_squash, lengths
from capsnet.layers import Capsules, Routed, he_normal_, traced


class SelfAttentionRouting(nn.Module):
    """Route I capsules of `in_dim` to J capsules of `out_dim`, as published.

    The learned prior is added after the softmax: it starts at zero, but once it is trained the coupling of child i sums
    to 1 + Σ_j prior_ij over the parents, and a part of it can be negative.

    Args:
        in_capsules, in_dim: I and A.
        out_capsules, out_dim: J and D.
    Shapes:
        Capsules (B, I, A) → Routed with capsules (B, J, D) and coupling (B, I, J). The trace is a single step, which
        also has "heads" (B, H, I, J), the coupling of each head, here H = 1.
    """

    def __init__(self, in_capsules: int, in_dim: int, out_capsules: int = 10, out_dim: int = 16):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_capsules, in_dim, out_capsules, out_dim))  # (I, A, J, D)
        self.prior = nn.Parameter(torch.zeros(out_capsules, in_capsules))  # (J, I)
        # Keras counts everything but D as inputs: 1,280 at the paper's size, where 8 reach a vote.
        he_normal_(self.weight, in_capsules * in_dim * out_capsules)

    def forward(self, capsules: Capsules, trace: bool = False) -> Routed:
        # In float32 under autocast: routing is a small part of the work, and its softmax and squash want the precision.
        with torch.autocast(capsules.poses.device.type, enabled=False):
            votes = self._votes(capsules)
            heads = self._heads(votes)  # (B, J, I, H)
            c = heads.mean(3)  # (B, J, I)
            v = exponential_squash((c[:, :, None] @ votes)[:, :, 0])  # (B, J, D)
        coupling, steps = c.transpose(1, 2), None
        if trace:
            with torch.no_grad(), torch.autocast(capsules.poses.device.type, enabled=False):
                step = traced(c, v, (votes @ directions(v)[..., None])[..., 0])
            steps = [{**step, "heads": heads.detach().permute(0, 3, 2, 1)}]
        return Routed(Capsules(v, lengths(v)), coupling, steps)

    def _votes(self, capsules: Capsules) -> Tensor:
        """û, (B, J, I, D)."""
        u = capsules.poses
        children, dim = self.weight.shape[:2]
        if u.shape[1:] != (children, dim):
            given = tuple(u.shape[1:])
            raise ValueError(f"this layer routes {children} capsules of {dim} numbers, but was given {given}.")
        return torch.einsum("bia,iajd->bjid", at_least_float32(u), at_least_float32(self.weight))

    def _heads(self, votes: Tensor) -> Tensor:
        """Coupling of every head, (B, J, I, H)."""
        logits = votes @ votes.sum(2)[..., None] / math.sqrt(votes.shape[3])  # (B, J, I, 1)
        return torch.softmax(logits, dim=1) + at_least_float32(self.prior)[..., None]


class MultiHeadAttentionRouting(SelfAttentionRouting):
    """The general form: attention, with several heads, among the children that vote for one parent.

        q_i = û_j|i Q_jh,  k_i = û_j|i K_jh       query and key of child i, d = D / heads numbers
        A_jh = q kᵀ / √d                          (I, I)
        c_ijh = softmax_j(Σ_l A_jh,il + prior_ij)

    with the mean of c_ijh over the heads as coupling, as graph attention networks end (Veličković et al. 2018, equation
    6): a child sends the whole of its vote to a parent, however the heads came to that. Q and K belong to the parent,
    in whose coordinates the votes for it are. They start as slices of the identity: one head starts as the
    published algorithm, several compare a slice of the pose each. The prior is inside the softmax, so that the
    coupling sums to 1. Projections, mean, start and place of the prior are our choices.

    Args:
        in_capsules, in_dim, out_capsules, out_dim: see `SelfAttentionRouting`.
        heads: H; D must be a multiple.
    Shapes:
        as `SelfAttentionRouting`.
    """

    def __init__(self, in_capsules: int, in_dim: int, out_capsules: int = 10, out_dim: int = 16, heads: int = 4):
        super().__init__(in_capsules, in_dim, out_capsules, out_dim)
        if heads < 1 or out_dim % heads:
            raise ValueError(f"heads is {heads}; poses of {out_dim} numbers need a divisor of {out_dim}.")
        slices = torch.eye(out_dim).view(out_dim, heads, -1).expand(out_capsules, -1, -1, -1)  # (J, D, H, d)
        self.query, self.key = nn.Parameter(slices.clone()), nn.Parameter(slices.clone())

    def _heads(self, votes: Tensor) -> Tensor:
        Q, K = at_least_float32(self.query), at_least_float32(self.key)
        keys = torch.einsum("bjd,jdhk->bjhk", votes.sum(2), K)  # Σ_l k_l: projecting after the sum is the same
        wanted = torch.einsum("jdhk,bjhk->bjdh", Q, keys)  # q_i · Σ_l k_l = û_j|i · wanted
        logits = votes @ wanted / math.sqrt(Q.shape[3]) + at_least_float32(self.prior)[..., None]  # (B, J, I, H)
        return torch.softmax(logits, dim=1)

    def attention(self, capsules: Capsules) -> Tensor:
        """A, (B, H, J, I, I), which routing never forms: how much child i (row) agrees with child l (column)."""
        with torch.autocast(capsules.poses.device.type, enabled=False):
            votes = self._votes(capsules)
            Q, K = at_least_float32(self.query), at_least_float32(self.key)
            q, k = (torch.einsum("bjid,jdhk->bhjik", votes, projection) for projection in (Q, K))
            return q @ k.mT / math.sqrt(Q.shape[3])
