// Elements. Everything that comes from the cluster is set as text, never as markup.

/** Return an element with attributes and children; strings become text nodes. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (name === 'vars') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? '' : SHOWN.has(name) ? visible(value) : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false && child !== '').map((child) => (typeof child === 'string' ? visible(child) : child)));
  return element;
}

const SHOWN = new Set(['title', 'aria-label', 'placeholder']); // attributes that are seen or read out

// Controls, and marks that turn the direction of text: with them a text can look like another.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text with nothing hidden in it: what would not be seen is shown as a box. */
export const visible = (text) => text.replace(HIDDEN, '\u25af');

/** Set the text of an element only where it differs, so that nothing is laid out again for nothing. */
export function setText(element, text) {
  const shownText = visible(text);
  if (element.textContent !== shownText) element.textContent = shownText;
}

/** Call `render` with the value, and put what it returns into `place`, only when the value has changed. */
export function renderOnChange(place, value, render) {
  const key = JSON.stringify(value);
  if (shown.get(place) === key) return;
  shown.set(place, key);
  place.replaceChildren(...[render(value)].flat().filter(Boolean));
}

/** Render a place anew the next time, whatever was shown there. */
export const forget = (place) => shown.delete(place);

const shown = new WeakMap();

/** Return a command with a button that copies it. */
export function command(text) {
  const button = el('button', { class: 'copy', type: 'button', 'aria-label': `Copy: ${text}` }, 'Copy');
  button.addEventListener('click', async () => {
    setText(button, (await copy(text)) ? 'Copied' : 'Press Ctrl+C');
    setTimeout(() => setText(button, 'Copy'), 1600);
  });
  return el('div', { class: 'command' }, el('code', { tabindex: '0' }, text), button);
}

/** Return a unified diff, its lines marked. */
export function diffLines(text) {
  const kind = (line) => (/^\+(?!\+\+)/.test(line) ? 'plus' : /^-(?!--)/.test(line) ? 'minus' : '');
  return el('pre', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': 'What changes' }, ...text.split('\n').map((line) => el('span', { class: kind(line) }, `${line}\n`)));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Files and plain HTTP have no clipboard: the text is selected instead.
    for (const code of document.querySelectorAll('.command code')) {
      if (code.textContent === text) getSelection().selectAllChildren(code);
    }
    return false;
  }
}

/** Return a card: a titled part of the page. */
export function card(title, attributes = {}, ...children) {
  const id = `card-${(cards += 1)}`;
  const heading = el('h2', { id }, title);
  const extra = el('div', { class: 'card-extra' });
  const body = el('section', { ...attributes, class: `card ${attributes.class ?? ''}`, 'aria-labelledby': id },
    el('div', { class: 'card-head' }, heading, extra), ...children);
  return Object.assign(body, { heading, extra });
}

let cards = 0;
