// Reads the public API from the compiled declarations (dist/index.d.ts). Makes the report that
// `npm run api` writes, and the list of types in the entry point for `require`.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as prettier from 'prettier';
import ts from 'typescript';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const declarations = path.join(root, 'dist') + path.sep;
/** Types of libtorch's own ops, thousands of lines; they depend on its version, not ours. */
const generated = path.join(declarations, 'tensor', 'generated') + path.sep;

const printer = ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed });

/**
 * The exports of the compiled package, by name, with a checker for them.
 *
 * @typedef {{
 *   readonly checker: ts.TypeChecker,
 *   readonly exports: readonly { readonly name: string, readonly symbol: ts.Symbol }[],
 * }} Surface
 * @returns {Surface}
 */
export function readSurface(entry = path.join(declarations, 'index.d.ts')) {
  const program = ts.createProgram([entry], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    skipLibCheck: true,
    noEmit: true,
  });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(entry);
  if (source === undefined) throw new Error(`${entry} is missing: run npm run build`);
  const exports = exportsOf(checker, checker.getSymbolAtLocation(source));
  return { checker, exports };
}

/** The entry points of the package: their declarations, and what is made of them. */
export const entryPoints = [
  { declaration: 'index.d.ts', report: 'api/report.md', entry: 'lib/index.cts' },
  { declaration: 'serve/index.d.ts', report: 'api/serve.md', entry: 'lib/serve/index.cts' },
];

/**
 * What `npm run api` writes: paths from the root → texts.
 *
 * @returns {Promise<Map<string, string>>}
 */
export async function apiFiles() {
  const files = new Map();
  for (const { declaration, report, entry } of entryPoints) {
    const surface = readSurface(path.join(declarations, declaration));
    const filepath = path.join(root, entry);
    const options = { ...(await prettier.resolveConfig(filepath)), filepath };
    files.set(report, apiReport(surface));
    files.set(entry, await prettier.format(requireEntry(surface), options));
  }
  return files;
}

function exportsOf(checker, module) {
  const found = checker.getExportsOfModule(module).map((symbol) => ({
    name: symbol.getName(),
    symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  }));
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const isNamespace = (symbol) => (symbol.flags & ts.SymbolFlags.ValueModule) !== 0;

// ---- the report ---------------------------------------------------------------------------------

/**
 * The text of the report: every export, then the types they use that are not exported.
 *
 * @param {Surface} surface
 */
export function apiReport({ checker, exports }) {
  const exported = new Set();
  const entries = [];
  const collect = (list, prefix) => {
    for (const { name, symbol } of list) {
      exported.add(symbol);
      if (isNamespace(symbol)) collect(exportsOf(checker, symbol), `${prefix}${name}.`);
      else entries.push({ name: `${prefix}${name}`, symbol });
    }
  };
  collect(exports, '');
  const needed = new Map();
  const sections = entries.map(({ name, symbol }) => {
    noteNeeded(checker, symbol, exported, needed);
    return section(name, symbol);
  });
  // The list grows during the iteration.
  for (const symbol of needed.keys()) noteNeeded(checker, symbol, exported, needed);
  const inner = [...needed]
    .map(([symbol, file]) => ({ name: symbol.getName(), file, symbol }))
    .sort((a, b) => (a.name + a.file < b.name + b.file ? -1 : 1))
    .map(({ name, symbol, file }) => `// ${file}\n${section(name, symbol)}`);
  return [
    '# Public API\n\nMade by `npm run api` from the compiled declarations; a test compares it. ' +
      'What is here is what CONTRIBUTING.md promises to keep.\n',
    '## Exports\n\n```ts',
    ...sections,
    '```\n\n## Used by these, not exported\n\n```ts',
    ...inner,
    '```\n',
  ].join('\n');
}

function ownDeclarations(symbol) {
  return (symbol.declarations ?? []).filter((node) => {
    const file = path.normalize(node.getSourceFile().fileName);
    return file.startsWith(declarations) && !file.startsWith(generated);
  });
}

function section(name, symbol) {
  const texts = ownDeclarations(symbol).map((node) => {
    const whole = ts.isVariableDeclaration(node) ? node.parent.parent : node;
    const text = printer.printNode(
      ts.EmitHint.Unspecified,
      withoutHidden(whole),
      node.getSourceFile(),
    );
    return text.replace(/^(export )?(declare )?/, '');
  });
  const own = symbol.getName();
  const note = own === name ? '' : `// ${name}\n`;
  return `${note}${texts.join('\n')}\n`;
}

function isHidden(node) {
  const internal = ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal');
  const isPrivate = (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private) !== 0;
  return internal || isPrivate || (node.name !== undefined && ts.isPrivateIdentifier(node.name));
}

/** A class or interface without its private members and those marked @internal. */
function withoutHidden(node) {
  const { factory } = ts;
  if (ts.isClassDeclaration(node)) {
    const members = node.members.filter((member) => !isHidden(member));
    const { modifiers, name, typeParameters, heritageClauses } = node;
    return factory.createClassDeclaration(
      modifiers,
      name,
      typeParameters,
      heritageClauses,
      members,
    );
  }
  if (ts.isInterfaceDeclaration(node)) {
    const members = node.members.filter((member) => !isHidden(member));
    const { modifiers, name, typeParameters, heritageClauses } = node;
    return factory.createInterfaceDeclaration(
      modifiers,
      name,
      typeParameters,
      heritageClauses,
      members,
    );
  }
  return node;
}

/** Collects our own types that the declarations of `symbol` refer to and that are not exported. */
function noteNeeded(checker, symbol, exported, needed) {
  const visit = (node) => {
    if (node !== undefined && isHiddenMember(node)) return;
    if (ts.isIdentifier(node)) {
      const found = checker.getSymbolAtLocation(node);
      const target =
        found !== undefined && found.flags & ts.SymbolFlags.Alias
          ? checker.getAliasedSymbol(found)
          : found;
      note(target);
    }
    ts.forEachChild(node, visit);
  };
  const note = (target) => {
    const kinds = ts.SymbolFlags.Class | ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias;
    if (target === undefined || (target.flags & kinds) === 0) return;
    if (exported.has(target) || needed.has(target)) return;
    const [declaration] = ownDeclarations(target);
    if (declaration === undefined) return;
    const file = path.relative(declarations, declaration.getSourceFile().fileName);
    needed.set(target, file.replaceAll(path.sep, '/'));
  };
  for (const declaration of ownDeclarations(symbol)) visit(declaration);
}

function isHiddenMember(node) {
  return (ts.isClassElement(node) || ts.isTypeElement(node)) && isHidden(node);
}

// ---- the entry point for require ----------------------------------------------------------------

/** The text of an entry point for `require`. */
function requireEntry({ checker, exports }) {
  return `/* eslint-disable @typescript-eslint/no-namespace, @typescript-eslint/no-require-imports --
   The form that CommonJS has: one value, with the types beside it. */
/**
 * The package for \`require\`: the very modules that \`import\` gives, so that there is one copy of
 * everything, whoever loads it first.
 *
 * Made by \`npm run api\`. TypeScript does not let a CommonJS file hand on the types of an ES module
 * in one line, so they are listed; the values need no list.
 */
import type * as esm from './index.js' with { 'resolution-mode': 'import' };
import nodeModule = require('node:module');

const torchformer = load();

/**
 * Under tsx, whose hooks give Node.js the sources of CommonJS modules, the \`require\` of this file
 * cannot load an ES module on Node.js 20; one made for the file can. It comes second, because
 * bundlers only follow the first.
 */
function load(): typeof esm {
  try {
    return require('./index.js') as typeof esm;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_VM_MODULE_LINK_FAILURE') throw error;
    return nodeModule.createRequire(__filename)('./index.js') as typeof esm;
  }
}

declare namespace torchformer {
${typeLines(checker, exports, 'esm', '  ').join('\n')}
}

export = torchformer;
`;
}

function typeLines(checker, exports, from, indent) {
  return exports.flatMap(({ name, symbol }) => {
    if (isNamespace(symbol)) {
      const inner = typeLines(
        checker,
        exportsOf(checker, symbol),
        `${from}.${name}`,
        `${indent}  `,
      );
      return inner.length === 0 ? [] : [`${indent}namespace ${name} {`, ...inner, `${indent}}`];
    }
    const kinds = ts.SymbolFlags.Class | ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias;
    if ((symbol.flags & kinds) === 0) return [];
    const parameters = typeParametersOf(symbol);
    const declared = parameters.length === 0 ? '' : `<${parameters.map(printed).join(', ')}>`;
    const given =
      parameters.length === 0 ? '' : `<${parameters.map(({ name }) => name.text).join(', ')}>`;
    return [`${indent}type ${name}${declared} = ${from}.${name}${given};`];
  });
}

function typeParametersOf(symbol) {
  const declared = (symbol.declarations ?? []).find((node) => node.typeParameters !== undefined);
  return declared === undefined ? [] : [...declared.typeParameters];
}

function printed(node) {
  return printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());
}
