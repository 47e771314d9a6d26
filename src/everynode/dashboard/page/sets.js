// All sets: one line each, with a bar.

import { el, renderOnChange, setText } from './dom.js';
import { kindWord, number, plural, share, stateWord } from './format.js';
import { sentence } from './notices.js';
import { format, parse } from './route.js';

const FEW = 8; // sets that need no search

export class SetsView {
  /** `go` is called with what changes in the URL. */
  constructor(go) {
    this.list = el('div', { class: 'sets' });
    this.troubles = el('div', { class: 'notices' });
    this.sentence = el('p', { class: 'sentence', role: 'status' }, 'Loading …');
    this.search = el('input', { type: 'search', placeholder: 'Find a rollout', 'aria-label': 'Find a rollout by name, namespace or state', spellcheck: 'false', hidden: true });
    this.search.addEventListener('input', () => go({ find: this.search.value.trim() }));
    this.element = el('div', { class: 'all' }, el('h1', {}, 'Rollouts'), this.sentence, this.search, this.troubles, this.list);
  }

  /** Show the sets that a search leaves. */
  filter({ find }) {
    this.find = find;
    if (document.activeElement !== this.search) this.search.value = find;
    if (this.sets) this.#render();
  }

  /** Say nothing of loading where a notice says why nothing comes. */
  fail() {
    if (!this.sets) setText(this.sentence, '');
  }

  show({ sets, troubles }) {
    Object.assign(this, { sets, troubled: troubles.length > 0 });
    const moving = sets.filter(({ state }) => state === 'progressing').length;
    const waiting = sets.filter(({ state }) => state === 'stalled' || state === 'waiting').length;
    setText(this.sentence, sets.length ? `${plural(sets.length, 'DaemonSet')}, ${number(moving)} rolling out, ${number(waiting)} waiting.` : '');
    renderOnChange(this.troubles, troubles, () => [...troubles.map(({ message, help }) => el('p', { class: 'notice' }, `${sentence(message)} ${sentence(help)}`)),
      !sets.length && troubles.some(({ message }) => message.includes('cluster scope')) && el('p', { class: 'hint' }, 'With rights in one namespace, name it: everynode dashboard -n NAMESPACE')]);
    this.#render();
  }

  #render() {
    const { sets, find } = this;
    this.search.hidden = sets.length <= FEW && !find;
    const left = sets.filter(({ name, namespace, state }) => [name, namespace, state, stateWord(state).toLowerCase()].some((text) => text.includes(find)));
    renderOnChange(this.list, [left, this.troubled], () => (left.length ? left.map(line) : this.#none(sets)));
  }

  #none(sets) {
    if (this.troubled && !sets.length) return []; // what is wrong is said above
    return el('p', { class: 'hint' }, sets.length ? 'No rollout is left: clear the search.'
      : 'No DaemonSet that you may see exists. Create one with kubectl apply -f examples/01-first-daemonset.yaml, or open the dashboard with another context or namespace.');
  }
}

function line(set) {
  const { kind, namespace, name, desired, updated } = set;
  const width = desired ? (updated / desired) * 100 : 0;
  return el('a', { class: 'set-line', href: format({ ...parse(''), set: { kind, namespace, name } }) },
    el('span', { class: 'set-name' }, el('b', {}, name), el('span', {}, `${namespace} · ${kindWord(kind)}`)),
    pill(set.state),
    el('span', { class: 'set-bar' },
      el('span', { class: 'stack', 'aria-hidden': 'true' }, el('span', { class: 'stack-part', vars: { width: `${width}%`, background: 'var(--state-5)' } })),
      el('span', { class: 'note' }, set.message)),
    el('span', { class: 'set-count' }, el('b', {}, share(updated, desired)), el('span', {}, `${number(updated)} of ${number(desired)}`)));
}

/** A rollout's state as a pill. */
const pill = (state) => el('span', { class: 'pill', 'data-state': state }, stateWord(state));
