/** Records what `makeModel` created, to find out later which modules were replaced. */
import { formatShape } from '../../tensor/check.js';
import type { Module } from '../module/module.js';
import { placesBelow, type Registered } from '../module/registration.js';

/** Settings that do not affect what a trained model computes, or that the library sets. */
const freeSettings: ReadonlySet<string> = new Set([
  'training',
  'p',
  'keepAttention',
  'sparseGradient',
]);

interface Part {
  /** The class. */
  readonly constructor: unknown;
  /** The properties that are numbers, strings or booleans. */
  readonly settings: ReadonlyMap<string, unknown>;
  /** Names and shapes. */
  readonly parameters: string;
}

/** The classes, settings and parameters of all modules of a model when it was created. */
export class ModelBlueprint {
  readonly #parts: ReadonlyMap<string, Part>;

  constructor(model: Module) {
    this.#parts = partsOf(model);
  }

  /**
   * Names of the modules that were added, removed or replaced, or whose settings were changed,
   * without their submodules. `''` is the model itself.
   */
  differences(model: Module): string[] {
    const parts = partsOf(model);
    const names = [...parts.keys()].filter((name) => !this.#fits(name, parts.get(name)));
    names.push(...[...this.#parts.keys()].filter((name) => !parts.has(name)));
    return names.filter((name) => !names.some((outer) => isInside(name, outer)));
  }

  #fits(name: string, part: Part | undefined): boolean {
    const made = this.#parts.get(name);
    if (made === undefined || part === undefined) return false;
    return (
      made.constructor === part.constructor &&
      made.parameters === part.parameters &&
      [...made.settings].every(([key, value]) => part.settings.get(key) === value) &&
      // A property may hide a method of the class.
      [...part.settings].every(
        ([key, value]) => typeof value !== 'function' || made.settings.has(key),
      )
    );
  }
}

function partsOf(model: Module): Map<string, Part> {
  const places = placesBelow(model, { removeDuplicate: false });
  return new Map(
    places.map(({ name, module, registered }) => [
      name,
      {
        constructor: module.constructor,
        settings: settingsOf(module),
        parameters: parametersOf(registered),
      },
    ]),
  );
}

function settingsOf(module: Module): Map<string, unknown> {
  const isSetting = ([key, value]: [string, unknown]) =>
    !freeSettings.has(key) && typeof value !== 'object' && value !== undefined;
  return new Map(Object.entries(module).filter(isSetting));
}

function parametersOf({ parameters }: Registered): string {
  return parameters.map(({ name, value }) => `${name} ${formatShape(value.shape)}`).join();
}

function isInside(name: string, outer: string): boolean {
  return name !== outer && (outer === '' || name.startsWith(`${outer}.`));
}
