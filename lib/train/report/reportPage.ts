/** `report.html`: one file with the page, its script, its style and the data. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../runtime/package.js';
import type { ReportData } from './reportData.js';

/** The parts of the page, made by `scripts/bundleReport.mjs`. */
interface PageParts {
  readonly html: string;
  readonly style: string;
  readonly script: string;
}

let parts: Promise<PageParts> | null = null;

/** Read once: a run writes its report many times. */
function pageParts(): Promise<PageParts> {
  parts ??= readParts();
  return parts;
}

async function readParts(): Promise<PageParts> {
  const folder = join(packageRoot, 'dist', 'train', 'report', 'page');
  const [html, style, script] = await Promise.all(
    ['index.html', 'report.css', 'report.js'].map((name) => readFile(join(folder, name), 'utf8')),
  );
  return { html: html as string, style: style as string, script: script as string };
}

/** The page for some runs. It loads nothing, and runs nothing but its own script. */
export async function reportPage(data: ReportData): Promise<string> {
  const { html, style, script } = await pageParts();
  const policy =
    `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:; ` +
    "base-uri 'none'; form-action 'none'";
  const values: Readonly<Record<string, string>> = {
    policy,
    title: escapeHtml(data.runs.map(({ name }) => name).join(', ')),
    style,
    data: scriptJson(data),
    script,
  };
  // Without the white space around them, which the hashes do not include.
  return html.replaceAll(
    /\s*%(style|data|script)%\s*|%(policy|title)%/g,
    (_, content?: string, text?: string) => values[content ?? text ?? ''] as string,
  );
}

/** What the policy allows, although it is inline. */
function hashOf(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}

/** As JSON in a script element, which a text with `</script>` or `<!--` must not end. */
function scriptJson(data: ReportData): string {
  return JSON.stringify(data).replaceAll('<', '\\u003c');
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
