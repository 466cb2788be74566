"""A decoder-only transformer (pre-norm; causal attention, scaled_dot_product_attention; an MLP) and its tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

_POOL = 64


class Layer(nn.Module):
    """One block: (N, T, width) -> (N, T, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + attention(x), then that + mlp of that."""
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v, is_causal=True)   # (N, heads, T, width / heads)
        x = x + self.out(attended.transpose(1, 2).reshape(n, t, width))
        return torch.as_tensor(x + self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """Tokens (N, T) -> logits (N, T, vocabulary)."""

    def __init__(self, vocabulary: int, sequence: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(sequence, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each next token."""
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return torch.as_tensor(self.head(self.norm(self.layers(x))))


class Tokens:
    """`count` sequences of random tokens with the tokens that follow them: (T,), (T,), the same on every machine for a seed."""

    def __init__(self, count: int, sequence: int, vocabulary: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._count = count
        self._tokens = torch.randint(0, vocabulary, (_POOL, sequence + 1), generator=generator)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        row = self._tokens[index % _POOL]
        return row[:-1], row[1:]
