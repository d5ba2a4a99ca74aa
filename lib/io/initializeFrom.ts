/** Starts a training from the weights of another. */
import { stat } from 'node:fs/promises';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { checkTokenizer } from '../data/tokenizers/tokenizer.js';
import { Embedding } from '../nn/layers/embedding.js';
import { checkModel } from '../nn/model/checkModel.js';
import type { ModelConfig } from '../nn/model/modelOptions.js';
import type { Transformer } from '../nn/model/transformer.js';
import type { Module } from '../nn/module/module.js';
import { matchingNames, type NamePatterns } from '../nn/module/namePatterns.js';
import { Parameter } from '../nn/module/parameter.js';
import {
  checkBoolean,
  checkObject,
  checkOptions,
  checkPath,
  orDefault,
} from '../runtime/arguments.js';
import { counted } from '../runtime/counted.js';
import { noGrad } from '../tensor/autograd.js';
import { formatShape } from '../tensor/check.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ModelFolderConfig } from './modelConfig.js';
import { openModelFolder, tokenizerOf } from './openModelFolder.js';
import { readSafetensors, type SafetensorsFile } from './safetensors.js';
import { checkpointFault } from './safetensorsHeader.js';
import { VocabularyRows, type TokenMatch } from './vocabularyRows.js';

/** Options of {@link initializeFrom}. */
export interface InitializeOptions {
  /**
   * The tokenizer of the model; needed if it is not that of the source: rows of embeddings and of the
   * generator are then matched by token. Default: the ids mean the same in both.
   */
  tokenizer?: Tokenizer;
  /** The tokenizer of the source; default: the one in its folder. */
  savedTokenizer?: Tokenizer;
  /**
   * For tokens with other names in the source: from the model's token to the source's, such as
   * `{ '[PAD]': '<pad>' }`. Default: none.
   */
  renamedTokens?: Readonly<Record<string, string>>;
  /** Names of the parameters to initialize, as for `freeze`; default: all. */
  include?: NamePatterns;
  /** Names of parameters that keep their values, among those included; default: none. */
  exclude?: NamePatterns;
  /** Whether it is an error if the source lacks an included parameter; default true. */
  strict?: boolean;
}

/** The result of {@link initializeFrom}: names of parameters and buffers. */
export interface Initialization {
  /** What was read: a model folder or a file. */
  readonly source: string;
  /** Initialized from the source. */
  readonly matched: readonly string[];
  /** Not included, or excluded: their values are as before. */
  readonly excluded: readonly string[];
  /** Included, but not in the source: their values are as before. Empty with `strict`. */
  readonly missing: readonly string[];
  /** In the source, but not used. */
  readonly unused: readonly string[];
  /** The tokens, if rows were matched by token; else null. */
  readonly tokens: TokenMatch | null;
}

const optionNames = [
  ...['tokenizer', 'savedTokenizer', 'renamedTokens', 'include', 'exclude', 'strict'],
];

/**
 * Copies the weights of a trained model into a new one, by name: the start of fine-tuning. Rows of
 * embeddings, and of the generator's weight and bias, are matched by token if the model has another
 * tokenizer; rows of new tokens keep the values they were drawn with.
 *
 * ```ts
 * const report = await initializeFrom(model, 'runs/general', { tokenizer });
 * console.log(describeInitialization(report));
 * ```
 *
 * The modules and settings of the model stay its own; only dropout, vocabulary, number of positions and
 * number of layers may differ from the source's.
 *
 * @param model of `makeModel`, or with the same names
 * @param source the folder of a model or a run, or a safetensors file
 * @throws TorchError ERR_CHECKPOINT if the source cannot be read, lacks a parameter (see `strict`), has
 *   one of another shape (both shapes are named), or its layers compute something else; the model is
 *   then unchanged
 * @throws RangeError if a pattern matches no parameter; TypeError for an option of a wrong type
 */
export async function initializeFrom(
  model: Transformer,
  source: string,
  options: InitializeOptions = {},
): Promise<Initialization> {
  const owner = 'initializeFrom';
  checkModel(owner, model);
  checkPath(owner, 'source', source);
  checkOptions(owner, options, optionNames);
  const { tokenizer, savedTokenizer, include, exclude } = options;
  const strict = checkBoolean(owner, 'strict', orDefault(options.strict, true));
  const renamed = checkRenamed(owner, options);
  if (tokenizer !== undefined) checkTokenizer(owner, tokenizer);
  if (savedTokenizer !== undefined) checkTokenizer(owner, savedTokenizer);
  const targets = targetsOf(model);
  const included = includedNames(owner, [...targets.keys()], include, exclude);

  const opened = await open(source);
  const { weights } = opened;
  try {
    if (included.some((name) => /^(en|de)coder\./.test(name))) checkSettings(opened, model);
    const saved = savedTokenizer ?? opened.tokenizer();
    const rows =
      tokenizer === undefined || saved === null
        ? null
        : new VocabularyRows(tokenizer, saved, renamed);
    const plan = planOf(targets, included, weights);
    if (plan.matched.length === 0) {
      throw checkpointFault(weights.path, noneMatches(included, weights.names));
    }
    const update = plan.unused.find((name) => name.endsWith('.lora_A.weight'));
    if (update !== undefined) throw checkpointFault(weights.path, hasLora(update));
    if (strict && plan.missing.length > 0) {
      throw checkpointFault(weights.path, lacks(plan.missing, plan.unused));
    }
    const tables = vocabularyNames(model);
    const byToken = (name: string) => {
      if (rows === null || !tables.has(name)) return false;
      const isAsLong = weights.info(name).shape[0] === targets.get(name)?.shape[0];
      return !rows.isIdentity || !isAsLong;
    };
    checkShapes(weights, targets, plan.matched, tables, byToken);
    await load(model, weights, plan.matched, (name, value) =>
      byToken(name) ? (rows as VocabularyRows).filled(targets.get(name) as Tensor, value) : value,
    );
    const usesTables = plan.matched.some((name) => tables.has(name));
    return {
      source: opened.path,
      ...plan,
      excluded: [...targets.keys()].filter((name) => !included.includes(name)),
      tokens: rows !== null && usesTables ? rows.match : null,
    };
  } finally {
    await weights.close();
  }
}

/** The report in one to three lines, for people. */
export function describeInitialization(report: Initialization): string {
  const { source, matched, excluded, missing, unused, tokens } = report;
  const all = matched.length + excluded.length + missing.length;
  const parts = [
    excluded.length > 0 ? `${excluded.length} kept by the patterns` : null,
    missing.length > 0 ? `${missing.length} not in the source: ${some(missing)}` : null,
    unused.length > 0 ? `${unused.length} of the source unused: ${some(unused)}` : null,
  ].filter((part) => part !== null);
  const lines = [
    `initialized ${matched.length} of ${counted(all, 'tensor')} from ${source}` +
      (parts.length > 0 ? ` (${parts.join('; ')})` : ''),
  ];
  if (tokens !== null) {
    const { drawn, unused: dropped } = tokens;
    lines.push(
      `tokens: ${tokens.matched} matched` +
        (drawn.length > 0 ? `, ${drawn.length} new: ${some(drawn.map(quoted))}` : '') +
        (dropped.length > 0 ? `, ${dropped.length} unused: ${some(dropped.map(quoted))}` : ''),
    );
  }
  return lines.join('\n');
}

// ---- the source ----

interface OpenSource {
  readonly path: string;
  readonly config: ModelFolderConfig | null;
  readonly weights: SafetensorsFile;
  readonly tokenizer: () => Tokenizer | null;
}

/** A file, or the model in a folder. */
async function open(source: string): Promise<OpenSource> {
  const isFile = await stat(source).then(
    (status) => status.isFile(),
    () => /\.(safetensors|pth?|bin)$/.test(source),
  );
  if (isFile) {
    const weights = await readSafetensors(source);
    return { path: source, config: null, weights, tokenizer: () => null };
  }
  const opened = await openModelFolder(source);
  const { folder, config, weights } = opened;
  return { path: folder, config, weights, tokenizer: () => tokenizerOf(opened) };
}

/** Settings that change what layers compute from their weights, but no shape. */
const meaningful: readonly (keyof ModelConfig)[] = [
  ...(['h', 'norm', 'order', 'finalNorm', 'positions', 'activation', 'emptyRows'] as const),
];

function checkSettings({ path, config }: OpenSource, model: Transformer): void {
  if (config === null || model.config === null) return;
  for (const name of meaningful) {
    const [saved, own] = [config.model[name], model.config[name]].map((v) => JSON.stringify(v));
    if (saved === own) continue;
    throw checkpointFault(
      path,
      `its layers have ${name} ${saved}, those of the model ${own}, and would compute something else ` +
        `from the same weights; make the model with ${name} ${saved}`,
    );
  }
}

// ---- names ----

/** Parameters under all their names, and persistent buffers. */
function targetsOf(model: Transformer): Map<string, Tensor> {
  return model.stateDict({ keepVars: true });
}

function includedNames(
  owner: string,
  names: readonly string[],
  include: NamePatterns | undefined,
  exclude: NamePatterns | undefined,
): string[] {
  const kind = 'parameter';
  const included =
    include === undefined ? names : matchingNames(owner, 'include', kind, include, names);
  if (exclude === undefined) return [...included];
  const excluded = new Set(matchingNames(owner, 'exclude', kind, exclude, included));
  return included.filter((name) => !excluded.has(name));
}

interface Plan {
  readonly matched: string[];
  readonly missing: string[];
  readonly unused: string[];
}

function planOf(
  targets: ReadonlyMap<string, Tensor>,
  included: readonly string[],
  weights: SafetensorsFile,
): Plan {
  const matched = included.filter((name) => weights.has(name));
  const found = new Set(matched.map((name) => targets.get(name)));
  // Buffers such as tables of positions follow from the settings; a tied parameter needs one name.
  const missing = included.filter((name) => {
    const target = targets.get(name);
    return target instanceof Parameter && !found.has(target);
  });
  const used = new Set(matched);
  return { matched, missing, unused: weights.names.filter((name) => !used.has(name)) };
}

/** The names of tables with a row for each token. */
function vocabularyNames(model: Transformer): Set<string> {
  // A model of another class may not have these properties.
  const { srcEmbed, tgtEmbed, generator } = model as Partial<Transformer>;
  const tables = new Set<Tensor | null | undefined>();
  for (const embed of [srcEmbed, tgtEmbed]) {
    for (const module of (embed as Module | undefined)?.modules() ?? []) {
      if (module instanceof Embedding) tables.add(module.weight);
    }
  }
  tables.add(generator?.proj.weight).add(generator?.proj.bias);
  const named = model.namedParameters({ removeDuplicate: false });
  return new Set(named.flatMap(([name, parameter]) => (tables.has(parameter) ? [name] : [])));
}

// ---- shapes and values ----

function checkShapes(
  weights: SafetensorsFile,
  targets: ReadonlyMap<string, Tensor>,
  names: readonly string[],
  tables: ReadonlySet<string>,
  byToken: (name: string) => boolean,
): void {
  const faults: string[] = [];
  let onlyRows = true;
  for (const name of names) {
    const target = targets.get(name) as Tensor;
    // Loading recomputes tables of positions with another length, and refuses other buffers.
    if (!(target instanceof Parameter)) continue;
    const [own, saved] = [target.shape, weights.info(name).shape];
    const first = byToken(name) ? 1 : 0;
    if (formatShape(own.slice(first)) === formatShape(saved.slice(first))) continue;
    onlyRows &&= tables.has(name) && formatShape(own.slice(1)) === formatShape(saved.slice(1));
    faults.push(`${name} is ${formatShape(saved)} there, ${formatShape(own)} in the model`);
  }
  if (faults.length === 0) return;
  const advice = onlyRows
    ? 'to match their rows by token, pass the tokenizer of the model (tokenizer), and that of the source ' +
      'if it has none (savedTokenizer)'
    : 'make the model with the same sizes, or leave them out (exclude)';
  throw checkpointFault(weights.path, `${some(faults, '; ')}; ${advice}`);
}

async function load(
  model: Transformer,
  weights: SafetensorsFile,
  names: readonly string[],
  converted: (name: string, value: Tensor) => Tensor,
): Promise<void> {
  const state = new Map<string, Tensor>();
  try {
    for (const name of names) {
      const value = await weights.tensor(name);
      state.set(name, value);
      const final = noGrad(() => tidy(() => converted(name, value)));
      if (final === value) continue;
      state.set(name, final);
      value.dispose();
    }
    model.loadStateDict(state, { strict: false });
  } catch (error) {
    throw checkpointFault(weights.path, (error as Error).message, error);
  } finally {
    for (const value of state.values()) value.dispose();
  }
}

// ---- messages ----

function checkRenamed(
  owner: string,
  { renamedTokens, tokenizer }: InitializeOptions,
): Readonly<Record<string, string>> {
  if (renamedTokens === undefined) return {};
  const renamed = checkObject(
    owner,
    'renamedTokens',
    renamedTokens,
    "an object such as { '[PAD]': '<pad>' }",
  );
  if (tokenizer === undefined) {
    throw new TypeError(`${owner}: renamedTokens needs the tokenizer of the model (tokenizer)`);
  }
  for (const [token, saved] of Object.entries(renamed)) {
    if (typeof saved !== 'string') {
      throw new TypeError(`${owner}: renamedTokens ${quoted(token)} must be a token of the source`);
    }
  }
  return renamedTokens;
}

function noneMatches(included: readonly string[], given: readonly string[]): string {
  return (
    `none of its ${counted(given.length, 'tensor')} (${some(given)}) has the name of a parameter of the ` +
    `model (${some(included)})`
  );
}

function hasLora(name: string): string {
  return (
    `it has low-rank updates that are not merged (${name}), without which its weights are not what was ` +
    'trained; load it into its model, mergeLora(model), and save that'
  );
}

function lacks(missing: readonly string[], unused: readonly string[]): string {
  return (
    `it lacks ${counted(missing.length, 'parameter')} of the model: ${some(missing)}` +
    (unused.length > 0 ? `; it has, but the model has not: ${some(unused)}` : '') +
    '; to leave them as they were drawn, pass strict: false, or the names to take (include)'
  );
}

function some(names: readonly string[], separator = ', '): string {
  const shown = names.slice(0, 5).join(separator);
  return names.length > 5 ? `${shown}${separator}and ${names.length - 5} more` : shown;
}

function quoted(token: string): string {
  return JSON.stringify(token);
}
