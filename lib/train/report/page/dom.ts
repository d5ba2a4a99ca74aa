/** Short ways to make elements. Texts are never parsed as HTML. */

/** What {@link make} sets: properties of the element; others, such as `aria-label`, as attributes. */
type Settings = Readonly<Record<string, string | number | boolean>>;

/** Makes an element with children. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  settings: Settings = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name in element) Object.assign(element, { [name]: value });
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

/** Characters that change the direction of the texts after them. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text of a run, with pictures in place of characters that would change what is seen. */
export function visible(text: string): string {
  const even = text.replace(directions, '\ufffd');
  return even.replace(/[^\P{Cc}\n]/gu, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '\u2421' : '\ufffd';
  });
}

/** A row of a table. */
export function tableRow(
  cell: 'th' | 'td',
  contents: readonly (Node | string)[],
): HTMLTableRowElement {
  return make(
    'tr',
    {},
    ...contents.map((content, index) =>
      cell === 'th'
        ? make('th', { scope: 'col' }, content)
        : index === 0
          ? make('th', { scope: 'row' }, content)
          : make('td', {}, content),
    ),
  );
}
