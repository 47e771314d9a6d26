// What the page tells of a live set: figures, conditions, revisions, what nodes wait for, and one node's story.

import { card, command, diffLines, el, renderOnChange } from './dom.js';
import { swatch } from './cells.js';
import { clock, day, duration, number, plural, shellWord } from './format.js';
import { ActionBar } from './actions.js';
import { ask, setPath } from './live.js';
import { problem } from './notices.js';
import { standing, whyCommand } from './recorded_facts.js';

const FRESH = 3000; // milliseconds before a table or a story is asked for again

export class LiveFacts {
  constructor(fleet, set, go, { actions = false } = {}) {
    Object.assign(this, { fleet, go, path: setPath(set), elapsed: false, header: null, seek: null, rows: new Map(), asked: 0 });
    this.bar = actions ? new ActionBar(fleet, this.path) : null;
    this.actions = this.bar?.element ?? null;
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
      { title: 'Time to go', value: set.seconds_left === null ? '–' : duration(set.seconds_left), note: set.seconds_left === null ? 'no pace is known yet' : 'at the recent pace' },
      { title: 'Pace', value: pace, note: 'nodes a minute' },
      { title: 'Revision', value: set.target.number === null ? '–' : String(set.target.number), note: set.target.images.join(', ') },
    ];
  }

  curve({ history, forecast, counts, seconds_left: left, now, end }) {
    const latest = [now, counts.updated, Math.max(0, counts.desired - counts.available)];
    const pace = left === null ? null : [[now, counts.updated], [now + left, end]];
    return { history: [...history.filter((point) => point[0] < now), latest], forecast: forecast.length ? forecast : null, pace, now };
  }

  /** Show the parts of the set that have changed. */
  update(set) {
    this.bar?.update(set);
    renderOnChange(this.waiting, set.waiting, () => this.#reasons(set.waiting));
    renderOnChange(this.conditions, [set.conditions, set.refusal, set.faults, set.missing], () => conditions(set));
    renderOnChange(this.revisions, set.revisions, () => this.#history(set.revisions));
    renderOnChange(this.commands, [set.kind, set.namespace, set.name], () => terminal(set).map(command));
  }

  #reasons(waiting) {
    const found = Object.entries(waiting);
    if (!found.length) return el('p', { class: 'hint' }, 'No node waits for anything outside of the controller.');
    return found.map(([reason, count]) => el('button', { type: 'button', class: 'reason', on: { click: () => this.go({ reason }) } },
      el('b', {}, reason), el('span', { class: 'count' }, plural(count, 'node'))));
  }

  /** Show what else the URL says: the names of nodes that wait for a reason, and a difference. */
  show({ reason, diff }) {
    if (reason !== this.listed) this.#list(reason);
    if (diff !== this.compared) this.#compare(diff);
  }

  /** List all names of nodes that wait for a reason. */
  async #list(reason) {
    this.listed = reason;
    if (!reason) {
      this.names.replaceChildren();
      return;
    }
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
      el('td', {}, each.target || !target ? 'target' : el('button', { type: 'button', class: 'link', on: { click: () => this.go({ diff: `${each.number}-${target.number}` }) } }, 'compare'))));
    const heads = ['Revision', 'Made', 'Change cause', 'Images', 'Pods', 'Difference'].map((text) => el('th', { scope: 'col' }, text));
    return el('table', { class: 'revisions' }, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...rows));
  }

  async #compare(diff) {
    this.compared = diff;
    const [, from, to] = /^(\d+)-(\d+)$/.exec(diff) ?? [];
    if (!from) {
      this.diff.replaceChildren();
      return;
    }
    try {
      const { text } = await ask(`${this.path}/diff?from=${from}&to=${to}`);
      const same = el('p', { class: 'hint' }, 'The templates are the same.');
      this.diff.replaceChildren(el('h3', {}, `From revision ${from} to ${to}`), text ? diffLines(text) : same);
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
  const entry = (title, text) => [el('dt', {}, title), el('dd', {}, text)];
  return [
    el('dl', {}, ...told.facts.flatMap(({ title, text }) => entry(title, text)), ...told.errors.flatMap((text) => entry('last error', text))),
    el('h4', {}, 'What helps'), ...[...told.commands, why].map(command),
    told.story.length ? el('h4', {}, 'What happened') : '',
    el('ol', { class: 'events', tabindex: '0', 'aria-label': 'What happened' }, ...told.story.map((each) => el('li', { class: each.event === 'Warning' ? 'warning' : '' },
      el('span', { class: 'at' }, clock(each.at)), each.state === null ? '' : swatch(each.state & 15, 12), el('span', {}, each.text)))),
    told.missing ? el('p', { class: 'note' }, `Events are not shown: you lack the right to ${told.missing}.`) : '',
  ].filter(Boolean);
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
  const changes = kind === 'ads' ? [`everynode pause ${set}`, `everynode undo ${set}`] : [`everynode undo ${set}`];
  return [`everynode status ${set} --watch`, `everynode nodes ${set}`, `everynode history ${set}`, ...changes];
}
