import type { Module } from './module.js';
import { joinedName, memberModules, placesBelow } from './registration.js';

/**
 * Puts another module in the place of a submodule. The replaced module is not disposed of.
 *
 * @param name dotted path of state names, as in `namedModules()`; not that of the root
 * @returns whether there is such a submodule
 */
export function replaceModule(root: Module, name: string, replacement: Module): boolean {
  for (const { name: outer, module: owner, registered } of placesBelow(root)) {
    const entry = registered.children.find((child) => joinedName(outer, child.name) === name);
    if (entry === undefined) continue;
    const members = (owner as { [memberModules]?: ReadonlyMap<string, Module> })[memberModules];
    if (members?.has(entry.property) === true) {
      (members as Map<string, Module>).set(entry.property, replacement);
    } else {
      (owner as unknown as Record<string, Module>)[entry.property] = replacement;
    }
    return true;
  }
  return false;
}
