/** The calls of the server that the page makes. */

/** A language of `/languages`. */
export interface Language {
  readonly code: string;
  readonly name: string;
  readonly targets: readonly string[];
}

/** The part of `/frontend/settings` that the page uses. */
export interface Settings {
  readonly charLimit: number;
  readonly keyRequired: boolean;
}

/** A word and the indices of its tokens. */
export interface Word {
  readonly text: string;
  readonly tokens: readonly number[];
}

/** How much each token of the translation attends to each token of the source. */
export interface Attention {
  readonly sourceWords: readonly Word[];
  readonly targetWords: readonly Word[];
  readonly weights: readonly (readonly number[])[];
}

/** What is sent to translate. */
export interface Question {
  readonly q: string;
  readonly source: string;
  readonly target: string;
  readonly api_key?: string;
}

export async function getLanguages(): Promise<readonly Language[]> {
  return (await json(await fetch('languages'))) as readonly Language[];
}

export async function getSettings(): Promise<Settings> {
  return (await json(await fetch('frontend/settings'))) as Settings;
}

/** The attention of each line, if the model gives it. */
export async function getAttention(
  question: Question,
  signal: AbortSignal,
): Promise<readonly Attention[]> {
  const answer = await json(await post('translate/detailed', question, signal));
  const { segments } = answer as { segments: readonly { attention: Attention | null }[] };
  return segments.flatMap(({ attention }) => attention ?? []);
}

/** The translations that a wider search finds, the best first. */
export async function getAlternatives(
  question: Question,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const answer = await json(await post('translate', { ...question, alternatives: 3 }, signal));
  const { translatedText, alternatives } = answer as {
    translatedText: string;
    alternatives: readonly string[];
  };
  return [translatedText, ...alternatives];
}

/** Pieces of the translation as they are decoded. */
export async function* streamTranslation(
  question: Question,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const answer = await post('translate/stream', question, signal);
  if (!answer.ok || answer.body === null) {
    await json(answer);
    return;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let received = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error('The connection has ended early');
    received += value;
    const events = received.split('\n\n');
    received = events.pop() ?? '';
    for (const event of events) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      if (name === undefined || data === undefined) continue;
      const content = JSON.parse(data) as { text?: string; error?: string };
      if (name === 'error') throw new Error(content.error ?? 'The server has failed');
      if (name === 'done') return;
      if (content.text !== undefined) yield content.text;
    }
  }
}

function post(url: string, body: object, signal: AbortSignal): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
}

/** @throws Error with the server's message */
async function json(answer: Response): Promise<unknown> {
  const value = (await answer.json().catch(() => ({}))) as { error?: string };
  if (!answer.ok)
    throw new Error(value.error ?? `The server answered with status ${answer.status}`);
  return value;
}
