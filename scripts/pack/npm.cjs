// @ts-check
// Runs npm and returns its output as objects.
'use strict';
const { spawnSync } = require('node:child_process');
const { StepFailed } = require('../common.cjs');

/**
 * Runs npm and returns its output.
 *
 * @param {readonly string[]} args
 * @param {{ cwd?: string }} options
 */
function npm(args, options = {}) {
  // npm provides its own path, which also works if `npm` is a shell function or a shim, not a program.
  const own = process.env.npm_execpath;
  const [command, first] = own?.endsWith('.js') ? [process.execPath, [own]] : ['npm', []];
  const result = spawnSync(command, [...first, ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    shell: process.platform === 'win32' && command === 'npm',
    ...options,
  });
  if (result.error) throw new StepFailed(`npm: ${result.error.message}`);
  if (result.status !== 0) {
    throw new StepFailed(`npm ${args.join(' ')}: exit code ${result.status}\n${result.stderr}`);
  }
  return result.stdout;
}

/**
 * What `npm pack` reports for the package in a folder: its files, sizes and the tarball's name.
 *
 * @param {string} folder
 * @param {readonly string[]} args
 */
function pack(folder, args) {
  const answer = JSON.parse(npm(['pack', '--json', '--ignore-scripts', ...args], { cwd: folder }));
  // An array in npm 10 and 11, an object by name in later versions.
  return Object.values(answer)[0];
}

module.exports = { npm, pack };
