// Extends TypeDoc for the documentation site: names guides by their headings, and groups exports by
// the folder of lib/ that they come from.
import { CommentTag, Converter, ReflectionKind } from 'typedoc';

/** Folder of lib/ → its title on the site, in the order of the site. */
export const folders = {
  tensor: 'Tensors',
  nn: 'Modules',
  dialects: 'Dialects',
  optim: 'Optimizers',
  data: 'Data',
  train: 'Training',
  decode: 'Translation',
  io: 'Files',
  runtime: 'Loading',
};

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    document.name = headingOf(document.content)?.name ?? document.name;
  });

  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    // The page already has the name of the package as its title.
    const readme = context.project.readme ?? [];
    const heading = headingOf(readme);
    if (heading !== null) readme[0].text = readme[0].text.slice(heading.line.length);
    for (const reflection of context.project.getReflectionsByKind(ReflectionKind.All)) {
      if (reflection.parent?.kind !== ReflectionKind.Module) continue;
      const category = categoryOf(app, context, reflection);
      if (category === undefined) continue;
      for (const owner of reflection.signatures ?? [reflection]) {
        owner.comment?.blockTags.push(
          new CommentTag('@category', [{ kind: 'text', text: category }]),
        );
      }
    }
  });
}

/** The heading line `# …` at the start of a text. */
function headingOf([part]) {
  const found = /^# (.+)\n/.exec(part?.text ?? '');
  return found === null ? null : { line: found[0], name: found[1] };
}

function categoryOf(app, context, reflection) {
  const symbol = context.getSymbolFromReflection(reflection);
  const file = symbol?.declarations?.[0]?.getSourceFile().fileName ?? '';
  const folder = /\/lib\/([a-z]+)\//.exec(file)?.[1];
  return folder === undefined ? undefined : folders[folder];
}
