// Lists exports without a doc comment: symbols, and the public members of classes, interfaces and
// object types. A member that a base class or interface documents counts as documented. Part of
// `npm run lint`; to run it alone: `node scripts/checkDocs.mjs`.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const library = path.join(root, 'lib') + path.sep;
const generated = path.join(library, 'tensor', 'generated') + path.sep;

const configFile = path.join(root, 'tsconfig.json');
const { options, fileNames } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(configFile, ts.sys.readFile).config,
  ts.sys,
  root,
);
const program = ts.createProgram(fileNames, { ...options, noEmit: true });
const checker = program.getTypeChecker();

let counted = 0;
/** `file:line` of each undocumented declaration → its name, so that each is listed once. */
const missing = new Map();
const seen = new Set();

/** The declarations of a symbol that are in our own sources. */
function ownDeclarations(symbol) {
  return (symbol.declarations ?? []).filter((declaration) => {
    const { fileName } = declaration.getSourceFile();
    const file = path.normalize(fileName);
    return file.startsWith(library) && !file.startsWith(generated);
  });
}

function isHidden(declaration) {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const { name } = declaration;
  return (
    (ts.getCombinedModifierFlags(declaration) & hidden) !== 0 ||
    (name !== undefined && ts.isPrivateIdentifier(name))
  );
}

/** The type that declares a member, and its name: `Batch[Symbol.dispose]`, `LinearOptions.bias`. */
function memberName(owner, declaration) {
  const place = declaration.parent.name?.getText() ?? owner;
  const name = declaration.name?.getText() ?? '';
  return name.startsWith('[') ? `${place}${name}` : `${place}.${name}`;
}

function check(documented, declaration, name) {
  counted += 1;
  if (documented) return;
  const file = declaration.getSourceFile();
  const { line } = file.getLineAndCharacterOfPosition(declaration.getStart());
  missing.set(`${path.relative(root, file.fileName)}:${line + 1}`, name);
}

function isDocumented(symbol) {
  return (
    symbol.getDocumentationComment(checker).length > 0 || symbol.getJsDocTags(checker).length > 0
  );
}

/** Checks a member once: inherited members appear in every subclass. */
function checkMember(owner, symbol) {
  const [declaration] = ownDeclarations(symbol);
  if (declaration === undefined || seen.has(declaration) || isHidden(declaration)) return;
  seen.add(declaration);
  check(isDocumented(symbol), declaration, memberName(owner, declaration));
}

function checkConstructor(name, declaration) {
  const constructors = declaration.members.filter(ts.isConstructorDeclaration);
  const first = constructors[0];
  if (first === undefined || first.parameters.length === 0 || isHidden(first)) return;
  const documented = constructors.some((one) => ts.getJSDocCommentsAndTags(one).length > 0);
  check(documented, first, `new ${name}`);
}

function checkExport(name, exported) {
  const alias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
  const symbol = alias ? checker.getAliasedSymbol(exported) : exported;
  if (seen.has(symbol)) return;
  seen.add(symbol);
  if ((symbol.flags & ts.SymbolFlags.ValueModule) !== 0) {
    // `export * as init`: its members are exports too.
    for (const part of checker.getExportsOfModule(symbol)) {
      checkExport(`${name}.${part.getName()}`, part);
    }
    return;
  }
  const declarations = ownDeclarations(symbol);
  if (declarations[0] === undefined) return;
  check(isDocumented(symbol), declarations[0], name);
  for (const declaration of declarations) checkParts(name, symbol, declaration);
}

function checkParts(name, symbol, declaration) {
  if (ts.isClassDeclaration(declaration)) {
    checkConstructor(name, declaration);
    const statics = checker.getTypeOfSymbolAtLocation(symbol, declaration).getProperties();
    for (const member of statics) {
      if (member.getName() !== 'prototype') checkMember(name, member);
    }
  }
  if (
    ts.isClassDeclaration(declaration) ||
    ts.isInterfaceDeclaration(declaration) ||
    ts.isTypeAliasDeclaration(declaration)
  ) {
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    const parts = type.isUnion() ? type.types : [type];
    for (const part of parts) {
      for (const member of checker.getPropertiesOfType(part)) checkMember(name, member);
    }
  }
  if (ts.isVariableDeclaration(declaration)) {
    // An object of functions, such as `linalg`.
    const type = checker.getTypeOfSymbolAtLocation(symbol, declaration);
    if (type.getCallSignatures().length > 0) return;
    for (const member of type.getProperties()) checkMember(name, member);
  }
}

for (const entry of ['index.ts', 'serve/index.ts']) {
  const index = program.getSourceFile(path.join(root, 'lib', entry));
  for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(index))) {
    checkExport(exported.getName(), exported);
  }
}

const byPlace = [...missing].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
for (const [place, name] of byPlace) console.log(`${place}: ${name} has no doc comment`);
if (missing.size > 0) {
  console.log(`${missing.size} of ${counted} exported symbols and members have no doc comment.`);
  process.exitCode = 1;
}
