/**
 * The version of this package, as in package.json. A constant, because a bundle of an application
 * has no package.json of ours beside it.
 */
export const version = '0.1.0';
