// The token of this tab: a user's own in a cluster, or that of a dashboard with actions. It is kept until the tab
// is closed, and sent in a header, never in an address.

import { el } from './dom.js';

const KEY = 'everynode-token';

/** The token that was given; empty without one. */
export const token = () => sessionStorage.getItem(KEY) ?? '';

/** Keep a token; an empty one is forgotten. */
export function keep(text) {
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

/** The headers of a request. */
export function headers(more = {}) {
  const known = token();
  return known ? { ...more, Authorization: `Bearer ${known}` } : more;
}

/** Return a form that asks for a token; `onToken` is called when it was given. */
export function tokenForm(words, help, onToken) {
  const field = el('input', { type: 'password', name: 'token', autocomplete: 'off', required: true, spellcheck: 'false' });
  return el('form', { class: 'token', on: { submit: (event) => {
    event.preventDefault();
    keep(field.value.trim());
    onToken();
  } } },
  el('p', { role: 'alert' }, words), el('p', { class: 'note' }, help),
  el('label', {}, el('span', {}, 'Token'), field), el('button', { type: 'submit', class: 'main' }, 'Go on'));
}
