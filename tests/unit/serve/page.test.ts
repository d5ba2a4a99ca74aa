/** The page at `/`, and the figures at `/metrics`. */
import { describe, expect, it } from 'vitest';
import { german, serving } from './serving.js';

describe('the page', () => {
  it('is served with what it needs, and may load nothing else', async () => {
    const { get } = await serving();
    const page = await get('/');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(page.text).not.toMatch(/<script(?! type="module" src=)|<style|style=|onclick|https?:/);
    const linked = [...page.text.matchAll(/(?:src|href)="(page\/[^"]+)"/g)].map(([, url]) => url);
    const imported = [...(await get('/page/page.js')).text.matchAll(/from '\.\/([^']+)'/g)].map(
      ([, name]) => `page/${name}`,
    );
    expect(linked).toContain('page/page.js');
    for (const url of [...linked, ...imported]) {
      expect({ url, status: (await get(`/${url}`)).status }).toEqual({ url, status: 200 });
    }
  });

  it('finds every element that its script uses', async () => {
    const { get } = await serving();
    const { text } = await get('/');
    const script = (await get('/page/page.js')).text;
    const ids = [...script.matchAll(/element\('([\w-]+)'/g)].map(([, id]) => id);
    expect(ids.length).toBeGreaterThan(8);
    for (const id of ids) expect(text).toContain(`id="${id}"`);
  });

  it('can be left out', async () => {
    const { get } = await serving({ page: false });
    expect((await get('/')).status).toBe(404);
  });
});

describe('/metrics', () => {
  it('counts requests, texts and models in the text format of Prometheus', async () => {
    const { get, post } = await serving();
    await post('/translate', german(['ein', 'Haus']));
    await post('/translate', german(''));
    await get('/nothing');
    const { headers, text } = await get('/metrics');
    expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const lines = text.split('\n');
    expect(lines).toContain('# TYPE torchformer_requests_total counter');
    expect(lines).toContain('torchformer_requests_total{route="/translate",status="200"} 1');
    expect(lines).toContain('torchformer_requests_total{route="/translate",status="400"} 1');
    expect(lines).toContain('torchformer_requests_total{route="unknown",status="404"} 1');
    expect(lines).toContain('torchformer_texts_total{pair="de-en"} 2');
    expect(lines).toContain('torchformer_characters_total{pair="de-en"} 7');
    expect(lines).toContain('torchformer_models_loaded 1');
    expect(lines).toContain('torchformer_model_loads_total{pair="de-en",result="ok"} 1');
    expect(lines).toContain('torchformer_request_seconds_count{route="/translate"} 2');
    expect(lines).toContain('# TYPE torchformer_event_loop_delay_seconds_p99 gauge');
    expect(lines).toContain('# TYPE torchformer_event_loop_delay_seconds_max gauge');
    expect(lines).toContain('torchformer_request_seconds_bucket{route="/translate",le="+Inf"} 2');
    for (const line of lines.slice(0, -1)) {
      expect(line).toMatch(
        /^# (HELP|TYPE) \w+ .+$|^\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+$/,
      );
    }
    expect(lines.at(-1)).toBe('');
  });

  it('can be left out', async () => {
    const { get } = await serving({ metrics: false });
    expect((await get('/metrics')).status).toBe(404);
  });
});
