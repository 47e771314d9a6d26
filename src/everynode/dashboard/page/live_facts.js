// What the page tells of a live set: figures, conditions, revisions, what nodes wait for, and one node's story.

import { card, command, diffLines, el, renderOnChange } from './dom.js';
import { swatch } from './cells.js';
import { clock, day, duration, number, plural, shellWord } from './format.js';
import { ActionBar } from './actions.js';
import { ask, setPath } from './live.js';
import { problem } from './notices.js';
import { standing, whyCommand } from './recorded_facts.js';

const FRESH = 3000; // milliseconds before a table is asked for again
const TOLD = 15_000; // and a story, which has times and events that no batch tells of
// Why there is no time to go.
const NO_PACE = {
  complete: 'nothing is left to do', held: 'partition or selector hold the rest', paused: 'until it is resumed', waiting: 'nothing moves', stalled: 'nothing moves',
  'all-but-silent': 'until silent nodes report', 'on-delete': 'until pods are deleted', unobserved: 'the controller has not begun',
};

export class LiveFacts {
  constructor(fleet, set, go, { actions = false } = {}) {
    Object.assign(this, { fleet, go, path: setPath(set), elapsed: false, header: null, seek: null, rows: new Map(), asked: -Infinity, listed: '', told: null });
    this.bar = actions ? new ActionBar(fleet, this.path) : null;
    this.actions = this.bar?.element ?? null;
    this.back = el('a', { href: '#/' }, 'All rollouts');
    this.notices = el('div', { class: 'notices' });
    this.waiting = el('div', { class: 'reasons' });
    this.names = el('div', { class: 'names' });
    this.conditions = el('div', { class: 'conditions' });
    this.revisions = el('div', { class: 'table-room', tabindex: '0', role: 'region', 'aria-label': 'Table of revisions' });
    this.diff = el('div');
    this.commands = el('div', { class: 'commands' });
    this.cards = [
      [card('Waiting', { class: 'part' }, this.waiting, this.names), card('Revisions', { class: 'part' }, this.revisions, this.diff)],
      [card('Conditions', { class: 'part' }, this.conditions), card('In a terminal', { class: 'part' }, this.commands)],
    ];
  }

  title = (set) => `${set.name} in ${set.namespace} · Everynode`;

  down = ({ budget }) => ({ title: budget.field === 'maxSurge' ? 'Two pods now' : 'Down now', used: budget.used });

  figures(set) {
    const moves = set.state === 'progressing';
    const left = moves ? set.seconds_left : null;
    const pace = moves && set.per_minute !== null ? String(Math.round(set.per_minute * 10) / 10) : '–';
    return [
      { title: 'Time to go', value: left === null ? '–' : duration(left), note: left === null ? NO_PACE[set.state] ?? 'no pace is known yet' : 'at the recent pace' },
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
    this.#showNames();
    renderOnChange(this.notices, [set.refusal, set.faults, set.missing], () => notices(set));
    renderOnChange(this.conditions, set.conditions, () => conditions(set.conditions));
    renderOnChange(this.revisions, set.revisions, () => this.#history(set.revisions));
    renderOnChange(this.commands, [set.kind, set.namespace, set.name, set.paused], () => terminal(set).map(command));
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
    Object.assign(this, { listed: reason, told: null });
    this.#showNames();
    if (!reason) return;
    const [first] = this.fleet.waitingFor(reason);
    // Of a reason that a byte cannot tell apart, the server knows the nodes.
    const query = first === undefined ? `reason=${encodeURIComponent(reason)}` : `at=${first}`;
    const told = await ask(`${this.path}/nodes?${query}`).catch((error) => ({ error }));
    if (this.listed !== reason) return;
    this.told = told;
    this.#showNames();
  }

  /** Show the names as of now, and what the first of them waits for. */
  #showNames() {
    const { fleet, listed, told } = this;
    const some = listed ? fleet.waitingFor(listed).map((index) => fleet.names[index]) : [];
    const names = !some.length && listed in fleet.set.waiting ? told?.rows?.map((row) => row.node) ?? [] : some;
    renderOnChange(this.names, [listed, names, told], () => {
      if (!listed) return [];
      if (told?.error) return problem(told.error);
      if (told && !names.length) return el('p', { class: 'hint' }, 'No node waits for that any more.');
      return [el('h3', {}, `${listed}: ${plural(names.length, 'node')}`), told?.rows[0] && el('p', { class: 'note' }, `${told.rows[0].node}: ${told.rows[0].message}`),
        names.length > 0 && el('div', { class: 'name-list', tabindex: '0', role: 'region', 'aria-label': 'Names' },
          ...names.map((node) => el('button', { type: 'button', class: 'link', on: { click: () => this.go({ node }) } }, node)))];
    });
  }

  #history(revisions) {
    const target = revisions.find((each) => each.target);
    const rows = [...revisions].reverse().map((each) => el('tr', {}, el('td', { class: 'number' }, String(each.number)),
      el('td', {}, el('div', { class: 'cause', title: each.cause || null }, each.cause || 'no change cause'), el('div', { class: 'note' }, each.images.join(', ')),
        each.created === null ? '' : el('div', { class: 'note' }, day(each.created))),
      el('td', { class: 'number' }, number(each.pods)),
      el('td', {}, each.target || !target ? 'target' : el('button', { type: 'button', class: 'link', on: { click: () => this.go({ diff: `${each.number}-${target.number}` }) } }, 'compare'))));
    const heads = ['Revision', 'Change cause, images, made', 'Pods', 'Difference'].map((text) => el('th', { scope: 'col' }, text));
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
    const row = this.rows.get(this.fleet.names[index]);
    return row ? [row.since === null ? '' : clock(row.since), [row.reason, row.message].filter(Boolean).join(': '), row.pod] : ['…', '', ''];
  }

  /** Ask for these rows, unless they are known as the fleet is now; those that change are asked for every few seconds at most. */
  want(indexes) {
    const at = indexes.join();
    const key = `${this.fleet.version} ${at}`;
    if (key === this.known || !at) return;
    clearTimeout(this.asking);
    const rest = at === this.wanted ? this.asked + FRESH - performance.now() : 0;
    if (rest > 0) this.asking = setTimeout(() => this.want(indexes), rest);
    else this.#ask(at, key);
  }

  async #ask(at, key) {
    Object.assign(this, { wanted: at, known: key, asked: performance.now() });
    try {
      const { rows } = await ask(`${this.path}/nodes?at=${at}`);
      this.rows = new Map(rows.map((row) => [row.node, row]));
      this.fleet.dispatchEvent(new CustomEvent('change', { detail: [] }));
    } catch { /* the stream tells of the trouble */ }
  }

  /** One node's story: asked for when the node or its state changes, and again after a while. */
  async story(place, index, again = false) {
    const node = this.fleet.names[index];
    const asked = `${node} ${this.fleet.states[index]}`;
    if (this.storyOf === asked) return;
    if (this.storyNode !== node) place.replaceChildren(...standing(this.fleet, index), el('p', { class: 'hint' }, 'Loading …'));
    Object.assign(this, { storyOf: asked, storyNode: node });
    clearTimeout(this.telling);
    const told = await ask(`${this.path}/node/${encodeURIComponent(node)}`).then((story) => facts(story, whyCommand(this.fleet.set, node)), (error) => [problem(error)]);
    if (this.storyOf !== asked) return;
    if (!again || !isUsed(place)) place.replaceChildren(...standing(this.fleet, index), ...told);
    this.telling = setTimeout(() => {
      if (this.storyOf !== asked || !place.isConnected) return;
      this.storyOf = '';
      this.story(place, this.fleet.indexOf(node), true);
    }, TOLD);
  }

  forget() {
    Object.assign(this, { storyOf: '', storyNode: '' });
  }
}

/** Whether the viewer is at something in a place: nothing may change there under their hands. */
function isUsed(place) {
  const selection = getSelection();
  return place.contains(document.activeElement) || (!selection.isCollapsed && place.contains(selection.anchorNode));
}

function facts(told, why) {
  const entry = (title, text) => [el('dt', {}, title), el('dd', {}, text)];
  return [
    el('dl', {}, ...told.facts.flatMap(({ title, text }) => entry(title, text)), ...told.errors.flatMap((text) => entry('last error', text))),
    el('h4', {}, 'What helps'), el('div', { class: 'commands' }, ...[...told.commands, why].map(command)),
    told.story.length ? el('h4', {}, 'What happened') : '',
    el('ol', { class: 'events', tabindex: '0', 'aria-label': 'What happened' }, ...told.story.map((each) => el('li', { class: each.event === 'Warning' ? 'warning' : '' },
      el('span', { class: 'at' }, clock(each.at)), each.state === null ? '' : swatch(each.state & 15, 12), el('span', {}, each.text)))),
    told.missing ? el('p', { class: 'note' }, `Events are not shown: you lack the right to ${told.missing}.`) : '',
  ].filter(Boolean);
}

function notices({ refusal, faults, missing }) {
  return [refusal && `The API server would refuse the pods: ${refusal}`, faults, missing.length > 0 && `Only what the status says is shown: the page cannot ${missing.join(' and ')}.`]
    .filter(Boolean).map((text) => el('p', { class: 'notice' }, text));
}

function conditions(list) {
  if (!list.length) return el('p', { class: 'hint' }, 'No condition is written: has the controller seen this set?');
  return list.map((each) => el('div', { class: 'condition' },
    el('b', {}, each.type), el('span', {}, [each.status, each.reason].filter(Boolean).join(', ')), el('span', { class: 'note' }, each.since === null ? '' : `since ${day(each.since)}`), el('p', {}, each.message)));
}

function terminal({ kind, name, namespace, paused }) {
  const set = `${shellWord(`${kind}/${name}`)}${namespace === 'default' ? '' : ` -n ${shellWord(namespace)}`}`;
  const changes = kind === 'ads' ? [`everynode ${paused ? 'resume' : 'pause'} ${set}`, `everynode undo ${set}`] : [`everynode undo ${set}`];
  return [`everynode status ${set} --watch`, `everynode nodes ${set}`, `everynode history ${set}`, ...changes];
}
