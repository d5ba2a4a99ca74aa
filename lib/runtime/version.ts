/**
 * The version of this package, as in package.json. It is a constant because the bundle of an
 * application does not include our package.json.
 */
export const version = '0.1.0';
