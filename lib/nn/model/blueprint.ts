/** What `makeModel` made, to tell later which modules somebody has replaced. */
import { formatShape } from '../../tensor/check.js';
import type { Module } from '../module/module.js';
import { placesBelow, type Registered } from '../module/registration.js';

/** Settings that change nothing of what a trained model computes, or that the library sets. */
const freeSettings: ReadonlySet<string> = new Set([
  'training',
  'p',
  'keepAttention',
  'sparseGradient',
]);

interface Part {
  /** The class. */
  readonly constructor: unknown;
  /** Numbers, texts and booleans among the properties. */
  readonly settings: ReadonlyMap<string, unknown>;
  /** Names and shapes. */
  readonly parameters: string;
}

/** The classes, settings and parameters of all modules of a model as they were made. */
export class ModelBlueprint {
  readonly #parts: ReadonlyMap<string, Part>;

  constructor(model: Module) {
    this.#parts = partsOf(model);
  }

  /**
   * Names of the modules that have been added, removed or replaced by others, or whose settings are
   * others; without those inside of them. `''` is the model itself.
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
      // A method of the class may be hidden by a property.
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
