/** Tied parameters: one parameter under several names. */
import { noGrad } from '../../tensor/autograd.js';
import { formatShape } from '../../tensor/check.js';
import { native } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import { formOf } from './copyModule.js';
import type { Module } from './module.js';
import { Parameter } from './parameter.js';
import { joinedName, placesBelow } from './registration.js';

/** Groups of two or more names of the same parameter. */
export type Ties = readonly (readonly string[])[];

interface Named {
  readonly name: string;
  readonly parameter: Parameter;
  /** Replaces the parameter. */
  readonly replace: (parameter: Parameter) => void;
}

function namedIn(module: Module): Named[] {
  return placesBelow(module, { removeDuplicate: false }).flatMap(
    ({ name: place, module: owner, registered }) =>
      registered.parameters.map(({ property, name, value }) => ({
        name: joinedName(place, name),
        parameter: value,
        replace: (parameter) => {
          (owner as unknown as Record<string, Parameter>)[property] = parameter;
        },
      })),
  );
}

/**
 * The ties of a module in the order of its state dict: one Parameter in several places, or several
 * Parameters with exactly the same memory.
 *
 * @throws TypeError if the memory of two parameters overlaps partially, which ties cannot express
 */
export function tiesOf(module: Module): Ties {
  const groups: { parameter: Parameter; form: string; names: string[] }[] = [];
  const known = new Map<Parameter, string[]>();
  for (const { name, parameter } of namedIn(module)) {
    let names = known.get(parameter);
    if (names === undefined) {
      const form = formOf(parameter);
      const other = groups.find((group) => native().sameStorage(group.parameter, parameter));
      if (other !== undefined && other.form !== form) {
        throw new TypeError(
          `parameters "${other.names[0]}" and "${name}" share part of their memory: ` +
            'copy one of them, or use the same parameter for both',
        );
      }
      names = other?.names ?? [];
      if (other === undefined) groups.push({ parameter, form, names });
      known.set(parameter, names);
    }
    names.push(name);
  }
  return groups.map(({ names }) => names).filter(({ length }) => length > 1);
}

/**
 * Creates exactly these ties and removes all others, in a module without shared submodules.
 * Untied parameters keep their values; tied ones get those of the first.
 *
 * @throws RangeError if a name does not exist or occurs twice, or shapes differ; nothing has changed
 *   then
 */
export function setTies(module: Module, ties: Ties): void {
  const named = new Map(namedIn(module).map((entry) => [entry.name, entry]));
  checkTies(named, ties);
  const groups = new Map(ties.flatMap((names) => names.map((name) => [name, names] as const)));
  const chosen = new Map<readonly string[], Parameter>();
  const taken = new Set<Parameter>();
  for (const { name, parameter, replace } of named.values()) {
    const group = groups.get(name) ?? [name];
    const own = chosen.get(group) ?? (taken.has(parameter) ? copyOf(parameter) : parameter);
    chosen.set(group, own);
    taken.add(own);
    if (own !== parameter) replace(own);
  }
  for (const { parameter } of named.values()) if (!taken.has(parameter)) parameter.dispose();
}

function checkTies(named: ReadonlyMap<string, Named>, ties: Ties): void {
  const seen = new Set<string>();
  for (const names of ties) {
    let first: { name: string; shape: string } | undefined;
    for (const name of names) {
      const entry = named.get(name);
      if (entry === undefined) throw new RangeError(`there is no parameter "${name}"`);
      if (seen.has(name)) throw new RangeError(`parameter "${name}" is tied twice`);
      seen.add(name);
      const shape = formatShape(entry.parameter.shape);
      first ??= { name, shape };
      if (shape === first.shape) continue;
      throw new RangeError(
        `"${first.name}" ${first.shape} and "${name}" ${shape} differ in shape and cannot be tied`,
      );
    }
  }
}

function copyOf(parameter: Parameter): Parameter {
  const { requiresGrad } = parameter;
  return tidy(() => noGrad(() => new Parameter(parameter.detach().clone(), { requiresGrad })));
}
