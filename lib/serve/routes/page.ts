/** The page to try the models, which the package contains as files. */
import type { FastifyInstance } from 'fastify';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../runtime/package.js';

/** The page loads nothing from elsewhere, and nothing that is inline. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const files: Readonly<Record<string, { path: string; type: string }>> = {
  '/': { path: 'index.html', type: 'text/html' },
  '/page/page.css': { path: 'page.css', type: 'text/css' },
  '/page/page.js': { path: 'page.js', type: 'text/javascript' },
  '/page/attention.js': { path: 'attention.js', type: 'text/javascript' },
  '/page/client.js': { path: 'client.js', type: 'text/javascript' },
};

export async function addPageRoutes(server: FastifyInstance): Promise<void> {
  for (const [url, { path, type }] of Object.entries(files)) {
    const content = await readFile(join(packageRoot, 'dist', 'serve', 'page', path));
    server.get(url, (_request, reply) =>
      reply
        .headers({
          'content-type': `${type}; charset=utf-8`,
          'content-security-policy': policy,
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
        })
        .send(content),
    );
  }
}
