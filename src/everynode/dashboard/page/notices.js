// An error and what to do about it.

import { el } from './dom.js';

const WORD = /^[a-z]+(?=[ ,:])/; // a name, such as that of a resource or a user, stays as it is written

/** A text as a sentence. */
export function sentence(text) {
  const trimmed = text.trim();
  return trimmed ? `${trimmed.replace(WORD, (word) => `${word[0].toUpperCase()}${word.slice(1)}`)}${/[.!?]$/.test(trimmed) ? '' : '.'}` : '';
}

/** Return a notice of an error with `message` and `help`. */
export function problem(error) {
  return el('p', { class: 'notice', role: 'alert' }, [error.message, error.help].filter(Boolean).join(' '));
}
