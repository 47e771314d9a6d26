// Pause, resume, partition and undo: each is shown as the API server would make it, and then confirmed.

import { command, diffLines, el } from './dom.js';
import { tell } from './live.js';
import { keep, token, tokenForm } from './session.js';
import { problem } from './notices.js';

/** Return the buttons of a set; `fleet` knows it. */
export class ActionBar {
  constructor(fleet, path) {
    Object.assign(this, { fleet, path });
    this.dialog = el('dialog', { class: 'change', 'aria-labelledby': 'change-title' });
    this.buttons = el('div', { class: 'actions', role: 'group', 'aria-label': 'Change this rollout' });
    this.element = el('div', {}, this.buttons, this.dialog);
  }

  /** Show the buttons that fit the set. */
  update({ kind, paused }) {
    const advanced = kind === 'ads';
    const wanted = [
      advanced && !paused && ['Pause', () => this.#show('pause')],
      advanced && paused && ['Resume', () => this.#show('resume')],
      advanced && ['Partition …', () => this.#ask('partition')],
      ['Undo …', () => this.#ask('undo')],
    ].filter(Boolean);
    const words = wanted.map(([word]) => word).join();
    if (this.shown === words) return;
    this.shown = words;
    this.buttons.replaceChildren(...wanted.map(([word, click]) => el('button', { type: 'button', class: 'action', on: { click } }, word)));
  }

  #open(title, ...children) {
    const close = el('button', { type: 'button', class: 'action', on: { click: () => this.dialog.close() } }, 'Close');
    this.dialog.replaceChildren(el('h2', { id: 'change-title' }, title), ...children, close);
    if (!this.dialog.open) this.dialog.showModal();
    // What would change comes first: Enter, pressed once too often, confirms nothing.
    (this.dialog.querySelector('input, select, .diff') ?? close).focus();
  }

  /** Ask for the argument of an action. */
  #ask(action) {
    const { set } = this.fleet;
    const field = action === 'partition'
      ? el('input', { name: 'argument', value: set.partition, required: true, pattern: '\\d+%?', autocomplete: 'off' })
      : el('select', { name: 'argument' }, ...[...set.revisions].reverse().filter((each) => !each.target)
        .map((each) => el('option', { value: each.number }, [`revision ${each.number}`, each.images.join(', '), each.cause].filter(Boolean).join(' · '))));
    const words = action === 'partition' ? ['Partition', 'How many nodes, or what share of them, keep the version they have: 5 or 30%. 0 updates all.']
      : ['Undo', 'The template of this revision becomes the current one again, and is rolled out as the strategy says.'];
    if (action === 'undo' && !field.options.length) {
      this.#open(words[0], el('p', {}, 'There is no other revision to go back to.'));
      return;
    }
    this.#open(words[0], el('form', { on: { submit: (event) => {
      event.preventDefault();
      this.#show(action, field.value.trim());
    } } }, el('p', { class: 'note' }, words[1]), el('label', {}, el('span', {}, action === 'partition' ? 'Nodes or percentage' : 'Revision'), field),
    el('button', { type: 'submit', class: 'main' }, 'Show the change')));
  }

  /** Show what would change, and let it be confirmed. */
  async #show(action, argument = '') {
    const asked = { action, argument };
    const title = `${action[0].toUpperCase()}${action.slice(1)} ${this.fleet.set.name}`;
    if (!token()) {
      this.#open(title, tokenForm('An action needs the token.', 'It was printed when the dashboard was started with --allow-actions.', () => this.#show(action, argument)));
      return;
    }
    this.#open(title, el('p', { class: 'hint' }, 'Asking the API server …'));
    await this.#try(title, asked, async () => {
      const shown = await tell(`${this.path}/preview`, asked);
      if (!shown.changes) {
        this.#open(title, el('p', {}, `Nothing would change: it ${shown.done}.`));
        return;
      }
      const go = el('button', { type: 'button', class: 'main confirm', on: { click: () => this.#apply(title, { ...asked, confirmed: shown.digest }) } }, 'Change it');
      this.#open(title, el('p', {}, 'The API server would make this change:'), diffLines(shown.diff),
        shown.warning ? el('p', { class: 'notice' }, shown.warning) : '',
        el('p', { class: 'note' }, 'The same in a terminal:'), command(shown.command), go);
    });
  }

  async #apply(title, asked) {
    this.#open(title, el('p', { class: 'hint' }, 'Writing …'));
    await this.#try(title, asked, async () => {
      const { done } = await tell(`${this.path}/apply`, asked);
      this.#open(title, el('p', { role: 'status', class: 'done' }, `Done: ${done}.`));
    });
  }

  async #try(title, asked, work) {
    try {
      await work();
    } catch (error) {
      if (error.status === 401) {
        keep('');
        this.#open(title, tokenForm(error.message, error.help, () => this.#show(asked.action, asked.argument)));
      } else {
        this.#open(title, problem(error));
      }
    }
  }
}
