// An error and what to do about it.

import { el } from './dom.js';

/** Return a notice of an error with `message` and `help`. */
export function problem(error) {
  return el('p', { class: 'notice', role: 'alert' }, [error.message, error.help].filter(Boolean).join(' '));
}
