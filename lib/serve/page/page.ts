/** The page to try the models. */
import { attentionLine } from './attention.js';
import {
  getAlternatives,
  getAttention,
  getLanguages,
  getSettings,
  streamTranslation,
} from './client.js';
import type { Attention, Language, Question } from './client.js';

const form = element('form', HTMLFormElement);
const source = element('source', HTMLSelectElement);
const target = element('target', HTMLSelectElement);
const key = element('key', HTMLInputElement);
const text = element('text', HTMLTextAreaElement);
const translation = element('translation', HTMLElement);
const status = element('status', HTMLElement);
/** What a screen reader says. */
const announcement = element('announcement', HTMLElement);
const error = element('error', HTMLElement);
const stop = element('stop', HTMLButtonElement);

let languages: readonly Language[] = [];
let charLimit = Infinity;
/** Of the translation that is running. */
let running: AbortController | null = null;

function element<T extends HTMLElement>(id: string, type: abstract new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`the page has no ${id}`);
}

async function start(): Promise<void> {
  const [all, settings] = await Promise.all([getLanguages(), getSettings()]);
  languages = all;
  charLimit = settings.charLimit;
  element('key-field', HTMLElement).hidden = !settings.keyRequired;
  const sources = all.filter(({ targets }) => targets.length > 0);
  source.replaceChildren(
    ...sources.map(({ code, name }) => new Option(name, code)),
    ...(sources.length > 1 ? [new Option('Detect language', 'auto')] : []),
  );
  if (sources.length === 0) error.textContent = 'The server has no models yet.';
  showTargets();
  showCount();
}

/** The languages that the chosen one can be translated to. */
function showTargets(): void {
  const codes =
    source.value === 'auto'
      ? [...new Set(languages.flatMap(({ targets }) => targets))].sort()
      : (languages.find(({ code }) => code === source.value)?.targets ?? []);
  const earlier = target.value;
  target.replaceChildren(
    ...codes.map((code) => new Option(languages.find((one) => one.code === code)?.name, code)),
  );
  if (codes.includes(earlier)) target.value = earlier;
  if (source.value === 'auto') text.removeAttribute('lang');
  else text.lang = source.value;
}

function showCount(): void {
  const { length } = text.value;
  const number = (value: number) => value.toLocaleString('en-US');
  element('count', HTMLElement).textContent =
    `${number(length)} of ${number(charLimit)} characters`;
}

async function translate(): Promise<void> {
  if (text.value.trim() === '') {
    text.focus();
    return;
  }
  running?.abort();
  const controller = new AbortController();
  const { signal } = controller;
  running = controller;
  clear();
  stop.hidden = false;
  status.textContent = 'Translating…';
  translation.lang = target.value;
  translation.setAttribute('aria-busy', 'true');
  const question: Question = {
    q: text.value,
    source: source.value,
    target: target.value,
    ...(key.value === '' ? {} : { api_key: key.value }),
  };
  try {
    for await (const piece of streamTranslation(question, signal)) translation.append(piece);
    status.textContent = 'Translated.';
    announcement.textContent = translation.textContent;
    showAttention(await getAttention(question, signal), question);
    showAlternatives(await getAlternatives(question, signal), question);
  } catch (fault) {
    if (running !== controller) return;
    status.textContent = '';
    if (signal.aborted) status.textContent = 'Stopped.';
    else error.textContent = (fault as Error).message;
  } finally {
    if (running === controller) {
      running = null;
      stop.hidden = true;
      translation.removeAttribute('aria-busy');
    }
  }
}

function clear(): void {
  translation.replaceChildren();
  error.textContent = '';
  announcement.textContent = '';
  element('alternatives', HTMLElement).hidden = true;
  element('attention', HTMLElement).hidden = true;
}

function showAttention(lines: readonly Attention[], question: Question): void {
  element('attention', HTMLElement).hidden = lines.length === 0;
  element('attention-lines', HTMLElement).replaceChildren(
    ...lines.map((line) => attentionLine(line, question)),
  );
}

/** Those that differ from the translation that is shown. */
function showAlternatives(found: readonly string[], question: Question): void {
  const others = found.filter((text) => text.trim() !== translation.textContent?.trim());
  element('alternatives', HTMLElement).hidden = others.length === 0;
  element('alternatives-list', HTMLElement).replaceChildren(
    ...others.map((text) => {
      const item = document.createElement('li');
      item.lang = question.target;
      item.textContent = text;
      return item;
    }),
  );
}

source.addEventListener('change', showTargets);
text.addEventListener('input', showCount);
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
stop.addEventListener('click', () => running?.abort());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void translate();
});
start().catch((fault: unknown) => {
  error.textContent = (fault as Error).message;
});
