/** HTML: only texts change. The translator turns them to upper case. */
import { describe, expect, it } from 'vitest';
import { german, serving, upperCase } from './serving.js';

async function translated(
  html: string,
  load = () => Promise.resolve(upperCase()),
): Promise<string> {
  const { post } = await serving({ load });
  const { json } = await post('/translate', german(html, { format: 'html' }));
  return (json as { translatedText: string }).translatedText;
}

describe('format html', () => {
  it.each([
    ['texts between tags', '<p>ein <b>Haus</b>.</p>', '<p>EIN <b>HAUS</b>.</p>'],
    ['a text without tags', 'ein Haus', 'EIN HAUS'],
    ['no texts at all', '<hr><br/>', '<hr><br/>'],
    [
      'attributes, quotes and case as they are',
      '<A HREF=x title=\'ein "Haus"\'  data-a>ein</A>',
      '<A HREF=x title=\'ein "Haus"\'  data-a>EIN</A>',
    ],
    [
      'scripts and styles',
      '<script>if (a < b) f("<p>x</p>")</script><style>p > a {}</style><p>ja</p>',
      '<script>if (a < b) f("<p>x</p>")</script><style>p > a {}</style><p>JA</p>',
    ],
    ['a script that never ends', '<p>ja</p><script>nein', '<p>JA</p><script>nein'],
    [
      'comments and the doctype',
      '<!doctype html><!-- ein -->ein',
      '<!doctype html><!-- ein -->EIN',
    ],
    [
      'code and form fields',
      '<code>ein</code><textarea>ein</textarea>ein',
      '<code>ein</code><textarea>ein</textarea>EIN',
    ],
    [
      'what is marked as not to be translated',
      '<p translate="no">ein <b translate="yes">zwei</b></p><i class="a notranslate">drei</i>',
      '<p translate="no">ein <b translate="yes">ZWEI</b></p><i class="a notranslate">drei</i>',
    ],
    ['elements without an end tag', '<ul><li>ein<li>zwei</ul>drei', '<ul><li>EIN<li>ZWEI</ul>DREI'],
    ['end tags without a beginning', '</b>ein</p>', '</b>EIN</p>'],
    ['white space around a text', '<p>\n  ein\n  Haus </p>', '<p>\n  EIN HAUS </p>'],
    ['lines of a pre', '<pre>ein\n  Haus</pre>', '<pre>EIN\n  HAUS</pre>'],
    ['character references', 'a &amp; b &lt;i&gt; &#228;', 'A &amp; B &lt;I&gt; Ä'],
    ['a lone less-than sign', 'a < b', 'A &lt; B'],
    ['a tag that never ends', 'ein <b', 'EIN <b'],
  ])('keeps %s', async (_, html, expected) => {
    expect(await translated(html)).toBe(expected);
  });

  it('gives whole texts to the model, without references and white space', async () => {
    const double = upperCase();
    await translated('<p> a &amp;\n b</p><p>c</p>', () => Promise.resolve(double));
    expect(double.calls).toEqual([['a & b', 'c']]);
  });

  it('never makes a tag of a translation', async () => {
    const evil = { ...upperCase(), translate: () => Promise.resolve(['<script>x</script>&']) };
    expect(await translated('<p>ein</p>', () => Promise.resolve(evil))).toBe(
      '<p>&lt;script&gt;x&lt;/script&gt;&amp;</p>',
    );
  });

  it('has no alternatives, but the field if asked for', async () => {
    const { post } = await serving();
    const { json } = await post(
      '/translate',
      german('<b>a</b>', { format: 'html', alternatives: 2 }),
    );
    expect(json).toEqual({ translatedText: '<b>A</b>', alternatives: [] });
  });

  it('takes 512 open tags, as browsers do, and refuses more', async () => {
    const nested = (depth: number) => `${'<b>'.repeat(depth)}ein${'</b>'.repeat(depth)}`;
    expect(await translated(nested(512))).toBe(nested(512).replace('ein', 'EIN'));
    const { post } = await serving({ charLimit: 1e6 });
    expect(
      await post('/translate', german('<b>'.repeat(300_000), { format: 'html' })),
    ).toMatchObject({
      status: 400,
      json: { error: 'Invalid request: tags are nested deeper than 512' },
    });
  });

  it.each([
    ['brackets', '<'.repeat(1e5)],
    ['ampersands', '&'.repeat(1e5)],
    ['white space', ' '.repeat(1e5)],
    ['comments that do not end', '<!--'.repeat(25_000)],
    ['attributes', `<a ${'b '.repeat(5e4)}>`],
    ['an attribute that does not end', `<a b="${"'".repeat(1e5)}`],
    ['end tags', '</b>'.repeat(25_000)],
    ['paragraphs', '<p>'.repeat(30_000)],
  ])('gives back a hundred thousand characters of %s', async (_, html) => {
    const { post } = await serving({ charLimit: 1e6 });
    const { status, json } = await post('/translate', german(html, { format: 'html' }));
    expect(status).toBe(200);
    const { translatedText } = json as { translatedText: string };
    expect(translatedText.replaceAll('&lt;', '<').replaceAll('&amp;', '&')).toBe(html);
  });
});
