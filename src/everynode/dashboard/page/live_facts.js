// What the page tells of a live set: figures, conditions, revisions, what nodes wait for, and one node's story.

import { card, command, el, renderOnChange, setText } from './dom.js';
import { clock, day, duration, number, plural, shellWord } from './format.js';
import { ask, setPath } from './live.js';
import { standing, whyCommand } from './recorded_facts.js';

const FRESH = 3000; // milliseconds before a table or a story is asked for again

export class LiveFacts {
  constructor(fleet, set, go) {
    Object.assign(this, { fleet, go, path: setPath(set), elapsed: false, header: null, seek: null, rows: new Map(), asked: 0, storyAsked: 0 });
    this.waiting = el('div', { class: 'reasons' });
    this.names = el('div', { class: 'names' });
    this.conditions = el('div', { class: 'conditions' });
    this.revisions = el('div', { class: 'table-room', tabindex: '0', role: 'region', 'aria-label': 'Table of revisions' });
    this.diff = el('div');
    this.commands = el('div', { class: 'commands' });
    this.cards = [
      card('Waiting', { class: 'part' }, this.waiting, this.names), card('Conditions', { class: 'part' }, this.conditions),
      card('Revisions', { class: 'part' }, this.revisions, this.diff), card('In a terminal', { class: 'part' }, this.commands),
    ];
  }

  title = (set) => `${set.name} in ${set.namespace} · Everynode`;

  down = ({ budget }) => ({ title: budget.field === 'maxSurge' ? 'Two pods now' : 'Down now', used: budget.used });

  figures(set) {
    const pace = set.per_minute === null ? '–' : String(Math.round(set.per_minute * 10) / 10);
    return [
      { title: 'Time to go', value: set.seconds_left === null ? '–' : duration(set.seconds_left), note: set.seconds_left === null ? 'no pace to tell it by' : 'at the pace of late' },
      { title: 'Pace', value: pace, note: 'nodes a minute' },
      { title: 'Revision', value: set.target.number === null ? '–' : String(set.target.number), note: set.target.images.join(', ') },
    ];
  }

  curve = (set) => ({ history: set.history, forecast: set.forecast?.length ? set.forecast : null, now: set.now });

  /** Show the parts of the set that have changed. */
  update(set) {
    renderOnChange(this.waiting, set.waiting, () => this.#reasons(set.waiting));
    renderOnChange(this.conditions, [set.conditions, set.refusal, set.faults, set.missing], () => conditions(set));
    renderOnChange(this.revisions, set.revisions, () => this.#history(set.revisions));
    renderOnChange(this.commands, [set.kind, set.namespace, set.name], () => terminal(set).map(command));
  }

  #reasons(waiting) {
    const found = Object.entries(waiting);
    if (!found.length) return el('p', { class: 'hint' }, 'No node waits for anything outside of the controller.');
    return found.map(([reason, count]) => el('button', { type: 'button', class: 'reason', on: { click: () => this.#list(reason) } },
      el('b', {}, reason), el('span', { class: 'count' }, plural(count, 'node'))));
  }

  /** List all names of nodes that wait for a reason. */
  async #list(reason) {
    try {
      const { rows } = await ask(`${this.path}/nodes?reason=${encodeURIComponent(reason)}`);
      this.names.replaceChildren(el('h3', {}, `${reason}: ${plural(rows.length, 'node')}`), ...rows.slice(0, 1).map((row) => el('p', { class: 'note' }, row.message)),
        el('div', { class: 'name-list', tabindex: '0', role: 'region', 'aria-label': 'Names' }, ...rows.map((row) => el('button', { type: 'button', class: 'link', on: { click: () => this.go({ node: row.node }) } }, row.node))));
    } catch (error) {
      this.names.replaceChildren(problem(error));
    }
  }

  #history(revisions) {
    const target = revisions.find((each) => each.target);
    const rows = [...revisions].reverse().map((each) => el('tr', {}, el('td', { class: 'number' }, String(each.number)),
      el('td', {}, each.created === null ? '' : day(each.created)), el('td', {}, each.cause || '–'), el('td', {}, each.images.join(', ')),
      el('td', { class: 'number' }, number(each.pods)),
      el('td', {}, each.target || !target ? 'target' : el('button', { type: 'button', class: 'link', on: { click: () => this.#compare(each.number, target.number) } }, 'compare'))));
    const heads = ['Revision', 'Made', 'Change cause', 'Images', 'Pods', 'Difference'].map((text) => el('th', { scope: 'col' }, text));
    return el('table', { class: 'revisions' }, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...rows));
  }

  async #compare(from, to) {
    try {
      const { text } = await ask(`${this.path}/diff?from=${from}&to=${to}`);
      const kind = (line) => (/^\+(?!\+\+)/.test(line) ? 'plus' : /^-(?!--)/.test(line) ? 'minus' : '');
      this.diff.replaceChildren(el('h3', {}, `From revision ${from} to ${to}`), el('pre', { tabindex: '0' }, ...text.split('\n').map((line) => el('span', { class: kind(line) }, `${line}\n`))));
    } catch (error) {
      this.diff.replaceChildren(problem(error));
    }
  }

  columns = ['Node', 'State', 'Since', 'Why', 'Pod'];

  row(index) {
    this.#refresh();
    const row = this.rows.get(this.fleet.names[index]);
    return row ? [row.since === null ? '' : clock(row.since), [row.reason, row.message].filter(Boolean).join(': '), row.pod] : ['', '', ''];
  }

  /** Ask for the table's rows, at most every few seconds. */
  async #refresh() {
    if (performance.now() - this.asked < FRESH) return;
    this.asked = performance.now();
    try {
      const { rows } = await ask(`${this.path}/nodes`);
      this.rows = new Map(rows.map((row) => [row.node, row]));
      this.fleet.dispatchEvent(new CustomEvent('change', { detail: [] }));
    } catch { /* the stream tells of the trouble */ }
  }

  /** One node's story: asked for when the node or its state changes. */
  async story(place, index) {
    const node = this.fleet.names[index];
    const asked = `${node} ${this.fleet.states[index]}`;
    if (this.storyOf === asked) return;
    this.storyOf = asked;
    try {
      const told = await ask(`${this.path}/node/${encodeURIComponent(node)}`);
      if (this.storyOf === asked) place.replaceChildren(...standing(this.fleet, index), ...facts(told, whyCommand(this.fleet.set, node)));
    } catch (error) {
      if (this.storyOf === asked) place.replaceChildren(...standing(this.fleet, index), problem(error));
    }
  }

  forget() {
    this.storyOf = '';
  }
}

function facts(told, why) {
  return [
    el('dl', {}, ...told.facts.flatMap(({ title, text }) => [el('dt', {}, title), el('dd', {}, text)])),
    ...[told.command, why].filter(Boolean).map(command),
    el('ol', { class: 'events' }, ...told.story.map(([at, words]) => el('li', {}, el('span', { class: 'at' }, clock(at)), el('span', {}, words)))),
    el('ol', { class: 'events' }, ...told.events.map((each) => el('li', {}, el('span', { class: 'at' }, each.at === null ? '' : clock(each.at)),
      el('span', {}, el('b', {}, each.reason), ` ${each.message}${each.count > 1 ? ` (${number(each.count)} times)` : ''}`)))),
  ];
}

function conditions({ conditions: list, refusal, faults, missing }) {
  const notices = [refusal && `The API server would refuse the pods: ${refusal}`, faults, ...missing.map((text) => `You may not ${text}: what depends on it is not shown.`)];
  return [...notices.filter(Boolean).map((text) => el('p', { class: 'notice' }, text)),
    ...(list.length ? list : []).map((each) => el('div', { class: 'condition' },
      el('b', {}, each.type), el('span', {}, [each.status, each.reason].filter(Boolean).join(', ')), el('span', { class: 'note' }, each.since === null ? '' : `since ${day(each.since)}`), el('p', {}, each.message))),
    list.length ? null : el('p', { class: 'hint' }, 'No condition is written: has the controller seen this set?')];
}

function terminal({ kind, name, namespace }) {
  const set = `${shellWord(`${kind}/${name}`)}${namespace === 'default' ? '' : ` -n ${shellWord(namespace)}`}`;
  return [`everynode status ${set} --watch`, `everynode nodes ${set}`, `everynode history ${set}`];
}

/** An error and what to do about it. */
export function problem(error) {
  const place = el('p', { class: 'notice', role: 'alert' });
  setText(place, [error.message, error.help].filter(Boolean).join(' '));
  return place;
}
