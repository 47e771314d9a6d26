// One set: its figures, the fleet, the curve, one node's story, and a table with the same facts.

import { card, el, forget, renderOnChange, setText } from './dom.js';
import { kindWord, number, plural, share, stateWord } from './format.js';
import { repaintSwatch, swatch } from './cells.js';
import { Chart } from './chart.js';
import { Grid } from './grid.js';

const ROWS = 100; // of one page of the table
const SPOKEN = 10_000; // milliseconds between two sentences that are read out

export class SetView {
  /** `facts` tells what a recording or a live set knows; `go` is called with what changes in the URL. */
  constructor(fleet, facts, go) {
    Object.assign(this, { fleet, facts, go, route: null, page: 0, spoken: 0 });
    this.title = el('h1');
    this.place = el('span');
    this.pill = el('span', { class: 'pill' });
    this.sentence = el('p', { class: 'sentence' });
    this.tiles = el('div', { class: 'tiles' });
    this.grid = new Grid(fleet, (node) => go({ node }));
    this.chart = new Chart({ elapsed: facts.elapsed, onTime: facts.seek });
    this.element = el('div', { class: 'set' },
      el('div', { class: 'head' }, el('p', { class: 'note crumb' }, facts.back, this.place), el('div', { class: 'head-line' }, this.title, this.pill), this.sentence, facts.notices, facts.header, facts.actions),
      this.tiles, this.#fleetCard(), this.#side(), this.#curve(),
      facts.cards.length ? el('div', { class: 'parts' }, ...facts.cards.map((column) => el('div', {}, ...column))) : '', this.#tableCard());
    fleet.addEventListener('change', () => this.#later());
    fleet.addEventListener('reset', () => this.#later());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const canvas of this.element.querySelectorAll('.swatch')) repaintSwatch(canvas);
    });
  }

  #fleetCard() {
    this.group = el('select', { on: { change: () => this.go({ group: this.group.value }) } });
    this.search = el('input', { type: 'search', placeholder: 'Find a node', 'aria-label': 'Find a node by name', spellcheck: 'false' });
    this.search.addEventListener('input', () => this.go({ find: this.search.value.trim() }));
    this.search.addEventListener('keydown', (event) => {
      const first = this.fleet.names.find((name) => name.includes(this.search.value.trim()));
      if (event.key === 'Enter' && this.search.value && first) this.go({ node: first });
    });
    this.legend = el('div', { class: 'legend', role: 'group', 'aria-label': 'States; choose some to show only these' });
    this.none = el('p', { class: 'hint', hidden: true }, 'No node is known here. Nodes appear as soon as the cluster has some that you may list.');
    const made = card('Fleet', { class: 'fleet' }, this.legend, this.none, this.grid.element);
    made.extra.append(el('label', {}, el('span', {}, 'Group by'), this.group), this.search);
    return made;
  }

  #side() {
    this.storyBody = el('div', { class: 'story' });
    this.storyCard = card('One node', { class: 'one-node' }, this.storyBody);
    return this.storyCard;
  }

  #curve() {
    return card('Over time', { class: 'curve' }, this.chart.element);
  }

  #tableCard() {
    this.tableBody = el('tbody');
    this.pager = el('div', { class: 'pager' });
    const columns = this.facts.columns.map((text) => el('th', { scope: 'col' }, text));
    this.tableRoom = el('div', { class: 'table-room', tabindex: '0', role: 'region', 'aria-label': 'Table of nodes' },
      el('table', {}, el('thead', {}, el('tr', {}, ...columns)), this.tableBody));
    this.table = el('details', { class: 'card table' }, el('summary', {}, 'The same as a table'), this.tableRoom, this.pager);
    this.table.open = false;
    this.table.addEventListener('toggle', () => this.go({ tab: this.table.open ? 'table' : '' }));
    return this.table;
  }

  /** Show what the URL says. */
  show(route) {
    const before = this.route;
    this.route = route;
    const filter = ({ find, states, reason }) => [find, states, reason].join();
    this.page = before && filter(before) !== filter(route) ? 0 : Math.max(0, (Number(route.page) || 1) - 1);
    const keys = ['', ...Object.keys(this.fleet.labels).sort()];
    renderOnChange(this.group, keys, () => keys.map((key) => el('option', { value: key }, key || 'nothing')));
    this.group.value = keys.includes(route.group) ? route.group : '';
    this.group.closest('label').hidden = keys.length < 2;
    if (document.activeElement !== this.search) this.search.value = route.find;
    this.table.open = route.tab === 'table';
    this.grid.show(route);
    this.facts.show?.(route);
    this.#render();
    if (before && before.node !== route.node && route.node) this.storyCard.scrollIntoView({ block: 'nearest' });
  }

  #later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#render();
    });
  }

  #render() {
    const { set } = this.fleet;
    if (!set || !this.route) return;
    setText(this.title, set.name);
    setText(this.place, `${set.namespace} · ${kindWord(set.kind)}`);
    document.title = this.facts.title(set);
    setText(this.pill, stateWord(set.state));
    this.pill.dataset.state = set.state;
    setText(this.sentence, set.message);
    this.#speak(set.message);
    renderOnChange(this.tiles, [set.counts, this.facts.down(set), this.facts.figures(set)], () => this.#figures(set));
    this.facts.update(set);
    renderOnChange(this.legend, [[...this.fleet.tally], this.route.states, this.route.reason, this.route.find, set.waiting], () => [...this.#legendButtons(), ...this.#reasonButtons(set), this.#clearButton()]);
    this.none.hidden = this.fleet.names.length > 0;
    this.#renderChart(set);
    this.#renderStory();
    if (this.table.open) this.#renderTable();
  }

  #figures(set) {
    const { counts, budget } = set;
    const { title, used: down } = this.facts.down(set);
    const used = Math.min(1, down / Math.max(1, budget.promised));
    const tile = (word, value, note, part, kind = '') => el('div', { class: `tile ${kind}` },
      el('h2', {}, word), el('p', { class: 'value' }, value), el('p', { class: 'note' }, note),
      part === null ? null : el('div', { class: 'bar' }, el('div', { class: 'bar-part', vars: { width: `${part * 100}%` } })));
    const over = down > budget.promised;
    return [
      tile('Updated and available', share(counts.updated, counts.desired), `${number(counts.updated)} of ${plural(counts.desired, 'node')}`, counts.desired ? counts.updated / counts.desired : 0),
      tile(title, number(down), `${number(budget.promised)} promised: ${budget.field} ${budget.written}`, used, over ? 'over' : 'budget'),
      ...this.facts.figures(set).map((each) => tile(each.title, each.value, each.note, null)),
    ];
  }

  #legendButtons() {
    return this.fleet.legend.filter(({ state }) => this.fleet.tally[state] || this.route.states.includes(state)).map(({ state, label, meaning }) => {
      const on = this.route.states.includes(state);
      const states = on ? this.route.states.filter((each) => each !== state) : [...this.route.states, state].sort();
      return el('button', { type: 'button', 'aria-pressed': String(on), title: meaning, 'data-state': state, on: { click: () => {
        this.go({ states });
        this.legend.querySelector(`[data-state="${state}"]`)?.focus();
      } } },
      swatch(state), el('span', {}, label), el('span', { class: 'count' }, number(this.fleet.tally[state])));
    });
  }

  /** What nodes wait for: the part of the legend that tells waiting nodes apart. */
  #reasonButtons({ waiting = {} }) {
    const buttons = Object.entries(waiting).map(([reason, count]) => el('button', {
      type: 'button', class: 'by-reason', 'aria-pressed': String(this.route.reason === reason), 'data-reason': reason, title: 'waiting for this', on: { click: () => {
        this.go({ reason: this.route.reason === reason ? '' : reason });
        this.legend.querySelector(`[data-reason="${CSS.escape(reason)}"]`)?.focus();
      } } }, el('span', {}, reason), el('span', { class: 'count' }, number(count))));
    return buttons.length ? [el('span', { class: 'note' }, 'waiting for'), ...buttons] : [];
  }

  /** Whatever hides nodes, also a filter that the legend does not show any more, ends with this button. */
  #clearButton() {
    const { states, reason, find } = this.route;
    if (!states.length && !reason && !find) return null;
    return el('button', { type: 'button', class: 'link', on: { click: () => {
      this.go({ states: [], reason: '', find: '' });
      this.search.value = '';
      this.search.focus();
    } } }, 'Show all');
  }

  #renderChart(set) {
    const curve = this.facts.curve(set);
    const promised = set.budget.field === 'maxSurge' ? 0 : set.budget.promised; // a surge takes no pod down
    const key = JSON.stringify([curve.history.length, curve.history.at(-1), curve.forecast?.at(-1), curve.pace?.at(-1), set.counts.desired, promised]);
    if (this.drawn === key) return;
    this.drawn = key;
    this.chart.show({ ...curve, desired: set.counts.desired, promised });
  }

  #renderStory() {
    const { node } = this.route;
    const index = node ? this.fleet.indexOf(node) : -1;
    if (index >= 0) {
      this.facts.story(this.storyBody, index);
      return;
    }
    this.facts.forget?.();
    this.storyBody.replaceChildren(el('p', { class: 'hint' }, node ? `No node is called ${node}. Search again, or choose a cell.`
      : 'Choose a cell, or find a node by its name, and its story is told here.'));
    forget(this.storyBody);
  }

  #renderTable() {
    const { fleet } = this;
    const left = [];
    for (let index = 0; index < fleet.names.length; index += 1) if (fleet.isLeft(index, this.route)) left.push(index);
    this.page = Math.min(this.page, Math.max(0, Math.ceil(left.length / ROWS) - 1));
    const shown = left.slice(this.page * ROWS, (this.page + 1) * ROWS);
    this.facts.want?.(shown);
    const cells = shown.map((index) => this.facts.row(index));
    renderOnChange(this.tableBody, shown.map((index, at) => [index, fleet.states[index], cells[at]]), () => (shown.length ? shown.map((index, at) => this.#row(index, cells[at]))
      : el('tr', {}, el('td', { colspan: this.facts.columns.length }, 'No node is left: clear the search or choose other states.'))));
    renderOnChange(this.pager, [left.length, this.page], () => this.#pages(left.length));
  }

  #row(index, [since, ...rest]) {
    const { fleet } = this;
    const name = fleet.names[index];
    return el('tr', {}, el('th', { scope: 'row' }, el('button', { type: 'button', class: 'link', on: { click: () => this.go({ node: name }) } }, name)),
      el('td', {}, el('span', { class: 'state' }, swatch(fleet.states[index]), fleet.describe(fleet.states[index]).label)),
      el('td', { class: 'number' }, since), ...rest.map((text) => el('td', {}, text)));
  }

  #pages(count) {
    const last = Math.ceil(count / ROWS) - 1;
    const turn = (by, text, off) => el('button', { type: 'button', disabled: off, on: { click: () => this.go({ page: String(this.page + by + 1) }) } }, text);
    const from = this.page * ROWS;
    return [el('span', {}, `${number(Math.min(count, from + 1))}–${number(Math.min(count, from + ROWS))} of ${plural(count, 'node')}`),
      turn(-1, 'Previous', this.page <= 0), turn(1, 'Next', this.page >= last)];
  }

  /** Read the sentence out, at most every ten seconds. */
  #speak(text) {
    const now = performance.now();
    if (this.spoken && now - this.spoken < SPOKEN) return;
    this.spoken = now;
    setText(document.getElementById('live'), text);
  }
}
