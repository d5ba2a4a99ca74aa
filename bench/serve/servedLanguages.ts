/** The languages that the server gets its model for. */
export const source = 'de';
export const target = 'en';
