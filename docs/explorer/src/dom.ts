/** Elements of the page. */

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Return a new element with attributes (those that are false are left out) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** The colours of the style sheet, --c0 and so on. */
const COLOURS = 7;

/** Return the style with a colour, of which there are few; empty for a negative number. */
export function colourOf(number: number): string {
  return number < 0 ? "" : `--colour: var(--c${number % COLOURS})`;
}

/** Return the element of the page with an id. */
export function found<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no ${id}`);
  return element as T;
}

/** Scroll a pane, not the page, so that an element in it is in sight. */
export function reveal(pane: HTMLElement, inside: HTMLElement): void {
  const [outer, inner] = [pane.getBoundingClientRect(), inside.getBoundingClientRect()];
  if (inner.top < outer.top) pane.scrollTop -= outer.top - inner.top + 8;
  else if (inner.bottom > outer.bottom) pane.scrollTop += inner.bottom - outer.bottom + 8;
}
