// Makes the script and the style of `report.html` from lib/train/report/page and uPlot, as two files in
// dist/ that the page contains. Part of `npm run build`.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const sources = path.join(root, 'lib/train/report/page');
const output = path.join(root, 'dist/train/report/page');
const library = path.join(root, 'node_modules/uplot');

const [bundle] = await build({
  configFile: false,
  root: sources,
  logLevel: 'warn',
  build: {
    lib: { entry: path.join(sources, 'main.ts'), formats: ['iife'], name: 'report' },
    target: 'es2022',
    write: false,
  },
});
const { code } = bundle.output[0];
// uPlot's license wants to go with every copy.
const license = readFileSync(path.join(library, 'LICENSE'), 'utf8').trim();
const { version } = JSON.parse(readFileSync(path.join(library, 'package.json'), 'utf8'));
// The end tag would end the script element of the page.
const script = `/*! With uPlot ${version}.\n${license}\n*/\n${code}`.replaceAll(
  '</script',
  '<\\/script',
);
const style = [path.join(library, 'dist/uPlot.min.css'), path.join(sources, 'page.css')]
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

mkdirSync(output, { recursive: true });
writeFileSync(path.join(output, 'report.js'), script);
writeFileSync(path.join(output, 'report.css'), style);
cpSync(path.join(sources, 'index.html'), path.join(output, 'index.html'));
