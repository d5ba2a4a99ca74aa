"""Adam for the rows of a table that gradients have reached."""
import itertools

import torch

from support import case, device_ops, expect, rand

ROWS = 11
ENTRIES = {"some rows, some twice": [3, 7, 3, 0, 10, 3], "each row once": list(range(ROWS)), "no rows": []}


def add(dtype, columns, entries, lr_is_tensor):
    ids = torch.tensor(ENTRIES[entries], dtype=torch.int64)
    values = rand(len(ids), columns, dtype=dtype)
    table, mean = rand(ROWS, columns, dtype=dtype), rand(ROWS, columns, dtype=dtype)
    squares = rand(ROWS, columns, dtype=dtype).square()
    touched = torch.arange(ROWS) % 4 == 1

    def run(step):
        state = [t.clone() for t in (table, mean, squares, touched)]
        lr = torch.tensor([0.01]) if lr_is_tensor else None
        device_ops.adam_rows_(state[0], ids, values, entries == "each row once", *state[1:],
                              torch.tensor([float(step)]), lr, 0.01, 0.9, 0.98, 1e-9)
        return state

    name = f"{dtype}, {columns} columns, {entries}, lr {'in a tensor' if lr_is_tensor else 'a number'}"
    case(f"adam rows {name}", lambda: run(1) + run(7))


for arguments in itertools.product((torch.float32, torch.float64), (1, 5, 64, 100), ENTRIES, (False, True)):
    add(*arguments)


def one_step(ids):
    state = [torch.ones(3, 2), torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(3, dtype=torch.bool)]
    device_ops.adam_rows_(state[0], torch.tensor(ids), torch.ones(len(ids), 2), False, *state[1:],
                          torch.tensor(1.0), None, 0.5, 0.0, 0.0, 0.0)
    return state


expect("an id that is no row of the table is left out", one_step([1]), lambda: one_step([-1, 1, 3]))
