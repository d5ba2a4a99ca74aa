import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer, readApiKeys, type ServeOptions } from 'torchformer/serve';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../process/support.js';

describe('createServer refuses', () => {
  const models = { 'de-en': 'a' };
  it.each([
    ['no options', undefined, 'createServer: options with models are required'],
    [
      'an unknown option',
      { models, port: 1 },
      'unknown option "port"; valid options: alternativesLimit,',
    ],
    ['no models', { models: {} }, 'models must have a model, got none'],
    [
      'a name that is no pair',
      { models: { de: 'a' } },
      'pairs such as "de-en" or "pt_BR-en", got "de"',
    ],
    ['a number for a folder', { models: { 'de-en': 1 } }, 'models["de-en"] must be a path, got 1'],
    ['room for no model', { models, maxModels: 0 }, 'maxModels'],
    ['a negative queue', { models, queueLimit: -1 }, 'queueLimit'],
    ['no time', { models, timeLimit: 0 }, 'timeLimit'],
    [
      'a time that no timer has',
      { models, timeLimit: 1e7 },
      'timeLimit must be at most 86400 seconds',
    ],
    ['an empty list of keys', { models, apiKeys: [] }, 'apiKeys must have keys that are not empty'],
    ['one key as a text', { models, apiKeys: 'key' }, 'apiKeys must be an array of strings'],
    ['null for the page', { models, page: null }, 'page must be true or false, got null'],
    ['an unknown device', { models, device: 'tpu' }, 'device'],
  ])('%s', async (_, options, message) => {
    await expect(createServer(options as unknown as ServeOptions)).rejects.toThrow(message);
  });
});

describe('readApiKeys', () => {
  it('reads a key from each line, without comments', async () => {
    const file = join(temporaryFolder(), 'keys');
    writeFileSync(file, '# people\nfirst\r\n\n  second \n');
    expect(await readApiKeys(file)).toEqual(['first', 'second']);
  });

  it('refuses a file without keys, and one that is not there', async () => {
    const file = join(temporaryFolder(), 'keys');
    await expect(readApiKeys(file)).rejects.toThrow('the API keys cannot be read: ENOENT');
    writeFileSync(file, '# none yet\n');
    await expect(readApiKeys(file)).rejects.toThrow('has no API key; write one in each line');
  });
});
