import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  Dropout,
  Embedding,
  Linear,
  Module,
  ModuleDict,
  ModuleList,
  Sequential,
} from 'torchformer';

/** The text Python prints for the same model made of torch.nn. */
const python = `Net(
  (embed): Embedding(10, 4)
  (body): Sequential(
    (0): Linear(in_features=4, out_features=4, bias=True)
    (1): Linear(in_features=4, out_features=4, bias=True)
    (2): Dropout(p=0.2, inplace=False)
  )
  (heads): ModuleDict(
    (b): Linear(in_features=4, out_features=2, bias=True)
    (a): Linear(in_features=4, out_features=1, bias=False)
    (1): ModuleList()
  )
  (layers): ModuleList(
    (0-1): 2 x Linear(in_features=4, out_features=4, bias=True)
    (2): Linear(in_features=4, out_features=2, bias=True)
    (3-4): 2 x Sequential(
      (0): Linear(in_features=1, out_features=1, bias=True)
      (1): Linear(in_features=1, out_features=1, bias=True)
    )
  )
  (empty): Sequential()
)`;

class Net extends Module {
  embed = new Embedding(10, 4);
  body = new Sequential(new Linear(4, 4), new Linear(4, 4), new Dropout(0.2));
  heads = new ModuleDict<Record<string, Module>>([
    ['b', new Linear(4, 2)],
    ['a', new Linear(4, 1, { bias: false })],
    ['1', new ModuleList()],
  ]);
  layers = new ModuleList<Module>([
    new Linear(4, 4),
    new Linear(4, 4),
    new Linear(4, 2),
    new Sequential(new Linear(1, 1), new Linear(1, 1)),
    new Sequential(new Linear(1, 1), new Linear(1, 1)),
  ]);
  empty = new Sequential();
}

describe('a printed module', () => {
  it("looks as Python's does", () => {
    expect(String(new Net())).toBe(python);
    expect(inspect(new Net())).toBe(python);
  });

  it('shows the names of a Sequential', () => {
    expect(String(new Sequential({ hidden: new Linear(2, 3), out: new Linear(3, 1) }))).toBe(
      `Sequential(
  (hidden): Linear(in_features=2, out_features=3, bias=True)
  (out): Linear(in_features=3, out_features=1, bias=True)
)`,
    );
  });

  it('has settings of several lines on lines of their own', () => {
    class Settings extends Module {
      protected override extraDescription(): string {
        return 'a=1\nb=2';
      }
    }
    expect(String(new Settings())).toBe('Settings(\n  a=1\n  b=2\n)');
    expect(String(new ModuleDict({ x: new Settings() }))).toBe(
      'ModuleDict(\n  (x): Settings(\n    a=1\n    b=2\n  )\n)',
    );
  });

  it('uses the toString of a class that has its own', () => {
    class Own extends Module {
      override toString(): string {
        return 'mine';
      }
    }
    expect(String(new Sequential({ own: new Own() as never }))).toBe(
      'Sequential(\n  (own): mine\n)',
    );
  });
});
