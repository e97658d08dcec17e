"""Exercise modern.swiglu."""

import torch
import torch.nn.functional as F

from glassformer.models import SwiGLU

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.swiglu",
    title="SwiGLU",
    minutes=8,
    statement=r"""
One matrix computes a gate, another what may pass; the product of both goes back to the width of the stream:

$$
\operatorname{SwiGLU}(x) = \bigl(\operatorname{SiLU}(x W_{gate}^\top) \odot x W_{up}^\top\bigr)\, W_{down}^\top,
\qquad
\operatorname{SiLU}(z) = \frac{z}{1 + e^{-z}}
$$

The weights are stored as PyTorch stores them, `(out, in)`.
""",
    hints=(
        "Which shapes have the gate and what may pass? They must fit each other number by number.",
        "`gate = x @ w_gate.T` and `up = x @ w_up.T`, both `(T, hidden)`; only one of the two goes through SiLU.",
        "`(gate / (1 + (-gate).exp()) * up) @ w_down.T`; `F.silu(gate)` is the same bend.",
    ),
    explanation=r"""
$\odot$ is a product number by number: `*`, not `@`. SiLU is the gate multiplied by its own sigmoid, so a gate far below
zero lets next to nothing pass, one far above lets everything through. Three matrices and no biases: for the same number of
weights the hidden layer can only be two thirds as wide as BabyGroot's would be.
""",
    forbidden={  # every part of the package's module notes its tensors
        "note": "The package's `SwiGLU` does the work here; three matrix products and a bend are all it takes."
    },
)


@exercise.starter
def swiglu(x, w_gate, w_up, w_down):
    """Return what the feed-forward network adds to each token, [T, d].

    x: [T, d]; w_gate, w_up: [hidden, d]; w_down: [d, hidden].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def swiglu(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T  # [T, d] @ [d, hidden] -> [T, hidden]
    up = x @ w_up.T  # [T, hidden]
    hidden = gate / (1 + (-gate).exp()) * up  # [T, hidden]
    return hidden @ w_down.T  # [T, hidden] @ [hidden, d] -> [T, d]


@exercise.style("torch.nn.functional")
def swiglu(x, w_gate, w_up, w_down):
    return F.linear(F.silu(F.linear(x, w_gate)) * F.linear(x, w_up), w_down)


@exercise.style("einsum")
def swiglu(x, w_gate, w_up, w_down):
    gate, up = torch.einsum("td,whd->wth", x, torch.stack((w_gate, w_up)))
    return torch.einsum("th,th,th,dh->td", gate, gate.sigmoid(), up, w_down)


@exercise.style("unit by unit")
def swiglu(x, w_gate, w_up, w_down):
    out = torch.zeros_like(x)
    for unit in range(len(w_gate)):
        gate, up = x @ w_gate[unit], x @ w_up[unit]  # [T] each
        out = out + torch.outer(gate * torch.sigmoid(gate) * up, w_down[:, unit])
    return out


@exercise.mutant(
    "roles exchanged",
    "Gate and input are exchanged: SiLU bends the gate, $x W_{gate}^\\top$; what may pass stays as it is.",
)
def swiglu(x, w_gate, w_up, w_down):
    return (x @ w_gate.T * F.silu(x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "sigmoid",
    "The gate went through a sigmoid; SiLU is the sigmoid *times the gate itself*.",
)
def swiglu(x, w_gate, w_up, w_down):
    return ((x @ w_gate.T).sigmoid() * (x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "ReLU",
    "This is ReLU, BabyGroot's bend, which sets what is negative to 0; SiLU has no corner and dips below zero.",
)
def swiglu(x, w_gate, w_up, w_down):
    return ((x @ w_gate.T).relu() * (x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "GELU",
    "This is GELU, another smooth bend; SiLU is $z / (1 + e^{-z})$.",
)
def swiglu(x, w_gate, w_up, w_down):
    return (F.gelu(x @ w_gate.T) * (x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "sign in the exponent",
    "The exponent has the wrong sign: $1 + e^{-z}$ closes the gate below zero, $1 + e^{z}$ above.",
)
def swiglu(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T
    return (gate / (1 + gate.exp()) * (x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "both bent",
    "What may pass was bent, too; only the gate goes through SiLU.",
)
def swiglu(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate.T) * F.silu(x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "product bent",
    "SiLU came after the product; it bends the gate alone, before it meets what may pass.",
)
def swiglu(x, w_gate, w_up, w_down):
    return F.silu(x @ w_gate.T * (x @ w_up.T)) @ w_down.T


@exercise.mutant(
    "added",
    "Gate and input were added; a gate multiplies: closed, it lets nothing pass.",
)
def swiglu(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate.T) + x @ w_up.T) @ w_down.T


@exercise.mutant(
    "no second matrix",
    "The gate went on alone; it is to be multiplied by $x W_{up}^\\top$, which says what may pass.",
)
def swiglu(x, w_gate, w_up, w_down):
    return F.silu(x @ w_gate.T) @ w_down.T


@exercise.mutant("ready-made", exercise.forbidden["note"])
def swiglu(x, w_gate, w_up, w_down):
    from glassformer.models import SwiGLU

    module = SwiGLU(x.shape[1], len(w_gate)).double()
    names = ("w_gate.weight", "w_up.weight", "w_down.weight")
    module.load_state_dict(dict(zip(names, (w_gate, w_up, w_down))))
    return module(x).detach()


def test_one_unit_by_hand(answer):
    x = torch.tensor([[3.0, 1.0]], dtype=torch.float64).log()  # gate ln 3, so SiLU = ln 3 · 3/4
    gate = torch.tensor([[1.0, 5.0]], dtype=torch.float64)
    up = torch.tensor([[2.0, 7.0]], dtype=torch.float64)  # up 2 ln 3
    down = torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    answer(x, gate, up, down).equals(1.5 * x[0, 0] ** 2 * down.T)


@worth(2)
def test_any_network(answer, draw):
    T, d, hidden = 3, 4, 7
    shapes = {"w_gate": (hidden, d), "w_up": (hidden, d), "w_down": (d, hidden)}
    weights = {f"{name}.weight": draw.normal(*shape) for name, shape in shapes.items()}
    module, x = SwiGLU(d, hidden).double(), draw.normal(T, d)
    module.load_state_dict(weights)
    answer(x, *weights.values()).equals(module(x).detach())
