/** The options of the server, and their checks. */
import {
  checkArray,
  checkBoolean,
  checkFunction,
  checkInteger,
  checkObject,
  checkPath,
  checkPositive,
  checkRequiredOptions,
  checkString,
  checkStrings,
  orDefault,
} from '../runtime/arguments.js';
import { checkDevice, type DeviceChoice } from '../tensor/device.js';
import { parsePair } from './modelList.js';
import type { ServedTranslator } from './servedTranslator.js';
import { loadServed } from './translatorAdapter.js';

/** Options of `createServer`. */
export interface ServeOptions {
  /**
   * The models: a folder with a model folder (or the folder of a run) for each pair of languages, such
   * as `models/de-en`; or pair → folder. In a pair, an underscore stands for the hyphen of a code:
   * `'pt_BR-en'`. A folder may gain and lose models while the server runs.
   */
  models: string | Readonly<Record<string, string>>;
  /** The device of the models. Default `'cpu'`. */
  device?: DeviceChoice | undefined;
  /** Number of hypotheses that are followed in a search. Default 1: greedy. */
  beam?: number | undefined;
  /** Models in memory at the same time; the least recently used are unloaded. Default 8. */
  maxModels?: number | undefined;
  /** Keys of which a request for a translation must have one. Default: no key is needed. */
  apiKeys?: readonly string[] | undefined;
  /** Maximum size of a body, in bytes. Default 1 MiB. */
  bodyLimit?: number | undefined;
  /** Maximum number of texts in a request. Default 256. */
  batchLimit?: number | undefined;
  /** Maximum length of a text, in characters (UTF-16 units). Default 20,000. */
  charLimit?: number | undefined;
  /** Maximum number of alternatives. Default 10. */
  alternativesLimit?: number | undefined;
  /** Requests translated at the same time. Default 32. */
  concurrency?: number | undefined;
  /** Requests that wait for those; more get status 503. Default 256. */
  queueLimit?: number | undefined;
  /** Seconds that a translation may take, waiting included; then it is status 504. Default 60. */
  timeLimit?: number | undefined;
  /** Seconds in which a client must send a request; then it is status 408. Default 30. */
  requestTimeout?: number | undefined;
  /** Connections at the same time; more are closed. Default 4096. */
  maxConnections?: number | undefined;
  /** The origin whose pages may call the server (`'*'`: all). Default: none but its own. */
  cors?: string | undefined;
  /** Whether `/` is a page to try the models. Default true. */
  page?: boolean | undefined;
  /** Whether `/metrics` has figures for Prometheus. Default true. */
  metrics?: boolean | undefined;
  /** Takes a line about each fault of the server. Default: nothing is logged. */
  log?: ((line: string) => void) | undefined;
  /** Loads a model. Default: `Translator.load` on `device`, with `beam`. */
  load?: ((folder: string) => Promise<ServedTranslator>) | undefined;
}

/** {@link ServeOptions} with defaults. */
export interface ServeSettings {
  readonly models: string | Readonly<Record<string, string>>;
  readonly maxModels: number;
  readonly apiKeys: readonly string[] | null;
  readonly bodyLimit: number;
  readonly batchLimit: number;
  readonly charLimit: number;
  readonly alternativesLimit: number;
  readonly concurrency: number;
  readonly queueLimit: number;
  readonly timeLimit: number;
  readonly requestTimeout: number;
  readonly maxConnections: number;
  readonly cors: string | null;
  readonly page: boolean;
  readonly metrics: boolean;
  readonly log: (line: string) => void;
  readonly load: (folder: string) => Promise<ServedTranslator>;
}

/** The defaults of the numbers. */
export const serveDefaults = {
  beam: 1,
  maxModels: 8,
  bodyLimit: 1024 * 1024,
  batchLimit: 256,
  charLimit: 20_000,
  alternativesLimit: 10,
  concurrency: 32,
  queueLimit: 256,
  timeLimit: 60,
  requestTimeout: 30,
  maxConnections: 4096,
} as const;

const names = [
  ...Object.keys(serveDefaults),
  ...['models', 'device', 'apiKeys', 'cors', 'page', 'metrics', 'log', 'load'],
];

/** The longest time of a timer, in seconds. */
const longestTime = 86_400;

/** @throws TypeError, RangeError naming the option */
export function checkServeOptions(owner: string, options: ServeOptions): ServeSettings {
  checkRequiredOptions(owner, options, names, 'models');
  const atLeast = (name: keyof typeof serveDefaults, minimum: number) =>
    checkInteger(owner, name, orDefault(options[name], serveDefaults[name]), minimum);
  const seconds = (name: 'timeLimit' | 'requestTimeout') => {
    const value = checkPositive(owner, name, orDefault(options[name], serveDefaults[name]));
    if (value <= longestTime) return value;
    throw new RangeError(`${owner}: ${name} must be at most ${longestTime} seconds, got ${value}`);
  };
  const { apiKeys, cors, log = () => undefined } = options;
  checkFunction(owner, 'log', log);
  return {
    models: checkModels(owner, options.models),
    maxModels: atLeast('maxModels', 1),
    apiKeys: apiKeys === undefined ? null : checkKeys(owner, apiKeys),
    bodyLimit: atLeast('bodyLimit', 1),
    batchLimit: atLeast('batchLimit', 1),
    charLimit: atLeast('charLimit', 1),
    alternativesLimit: atLeast('alternativesLimit', 0),
    concurrency: atLeast('concurrency', 1),
    queueLimit: atLeast('queueLimit', 0),
    timeLimit: seconds('timeLimit'),
    requestTimeout: seconds('requestTimeout'),
    maxConnections: atLeast('maxConnections', 1),
    cors: cors === undefined ? null : checkString(owner, 'cors', cors),
    page: checkBoolean(owner, 'page', orDefault(options.page, true)),
    metrics: checkBoolean(owner, 'metrics', orDefault(options.metrics, true)),
    log,
    load: loaderOf(owner, options, atLeast('beam', 1)),
  };
}

function checkModels(owner: string, models: unknown): string | Readonly<Record<string, string>> {
  if (typeof models === 'string') return checkPath(owner, 'models', models);
  const expected = 'a folder, or an object such as { "de-en": folder }';
  const entries = Object.entries(checkObject(owner, 'models', models, expected));
  if (entries.length === 0) throw new RangeError(`${owner}: models must have a model, got none`);
  return Object.fromEntries(
    entries.map(([pair, folder]) => {
      if (parsePair(pair) === null) {
        throw new RangeError(
          `${owner}: models must have pairs such as "de-en" or "pt_BR-en", got "${pair}"`,
        );
      }
      return [pair, checkPath(owner, `models["${pair}"]`, folder)];
    }),
  );
}

function checkKeys(owner: string, keys: unknown): readonly string[] {
  checkArray(owner, 'apiKeys', keys, 'an array of strings');
  const checked = checkStrings(owner, 'apiKeys', keys);
  if (checked.length > 0 && !checked.includes('')) return checked;
  throw new RangeError(
    `${owner}: apiKeys must have keys that are not empty; without the option, no key is needed`,
  );
}

function loaderOf(
  owner: string,
  { device = 'cpu', load }: ServeOptions,
  beam: number,
): ServeSettings['load'] {
  if (load !== undefined) {
    checkFunction(owner, 'load', load);
    return load;
  }
  const checked = checkDevice(owner, 'device', device);
  return (folder) => loadServed(folder, checked, beam);
}
