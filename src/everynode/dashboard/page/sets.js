// All sets: one line each, with a bar.

import { el, renderOnChange, setText } from './dom.js';
import { number, percent, plural, stateWord } from './format.js';
import { format, parse } from './route.js';

export class SetsView {
  constructor() {
    this.list = el('div', { class: 'sets' });
    this.missing = el('div');
    this.sentence = el('p', { class: 'sentence' }, 'Loading …');
    this.element = el('div', { class: 'all' }, el('h1', {}, 'Rollouts'), this.sentence, this.missing, this.list);
  }

  show({ sets, missing }) {
    const moving = sets.filter(({ state }) => state === 'progressing').length;
    const stalled = sets.filter(({ state }) => state === 'stalled').length;
    setText(this.sentence, sets.length ? `${plural(sets.length, 'DaemonSet')}, ${number(moving)} rolling out, ${number(stalled)} stalled.` : '');
    renderOnChange(this.missing, missing, () => missing.map((text) => el('p', { class: 'notice' }, `Not shown, for want of permission: ${text}. Ask for it, or choose a namespace with -n.`)));
    renderOnChange(this.list, sets, () => (sets.length ? sets.map(line) : el('p', { class: 'hint' }, 'No DaemonSet that you may see exists. Create one with kubectl apply -f examples/01-first-daemonset.yaml, or open the dashboard with another context or namespace.')));
  }
}

function line(set) {
  const { kind, namespace, name, desired, updated, held, waiting } = set;
  const part = (count, state) => el('span', { class: 'stack-part', vars: { width: `${desired ? (count / desired) * 100 : 0}%`, background: `var(--state-${state})` } });
  return el('a', { class: 'set-line', href: format({ ...parse(''), set: { kind, namespace, name } }) },
    el('span', { class: 'set-name' }, el('b', {}, name), el('span', {}, `${namespace} · ${kind === 'ads' ? 'Advanced DaemonSet' : 'DaemonSet'}`)),
    pill(set.state),
    el('span', { class: 'set-bar' },
      el('span', { class: 'stack', 'aria-hidden': 'true' }, part(updated, 5), part(waiting, 6), part(held, 2)),
      el('span', { class: 'note' }, set.message)),
    el('span', { class: 'set-count' }, el('b', {}, `${percent(updated, desired)}%`), el('span', {}, `${number(updated)} of ${number(desired)}`)));
}

/** A rollout's state as a pill. */
export const pill = (state) => el('span', { class: 'pill', 'data-state': state }, stateWord(state));
