// The fleet as a grid: one cell per node on a canvas. Only what is in sight is drawn, and after a batch only the
// cells that changed. One real element moves over the canvas with the focus: it is the ring that is seen and the
// option that is read out.

import { el } from './dom.js';
import { number, plural } from './format.js';
import { Sprites } from './cells.js';
import { arrange, neighbour, nodeAt, pixelOf, placesOf } from './layout.js';

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Grid {
  /** `onSelect` is called with the name of a node that was chosen. */
  constructor(fleet, onSelect) {
    this.fleet = fleet;
    this.onSelect = onSelect;
    this.view = { group: '', states: [], reason: '', find: '' };
    this.focused = -1;
    this.selected = -1;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.cell = el('div', { class: 'grid-cell', role: 'option', id: 'grid-cell', 'aria-selected': 'false', hidden: true });
    this.mark = el('div', { class: 'grid-mark', hidden: true });
    this.room = el('div', { class: 'grid-room' }, this.canvas, this.mark);
    this.list = el('div', {
      class: 'grid-list', tabindex: '0', role: 'listbox', 'aria-label': 'Nodes, one cell each. Arrow keys move, Enter tells the story of a node.',
    }, this.cell);
    this.room.append(this.list);
    this.tip = el('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });
    this.element = el('div', { class: 'grid' }, this.room, this.tip);
    this.#listen();
  }

  #listen() {
    this.fleet.addEventListener('reset', () => this.#layOut());
    this.fleet.addEventListener('change', ({ detail }) => this.#changed(detail));
    this.element.addEventListener('scroll', () => this.#later());
    this.list.addEventListener('keydown', (event) => this.#key(event));
    this.list.addEventListener('focus', () => this.#focus(this.focused >= 0 ? this.focused : this.#first(), true));
    this.list.addEventListener('blur', () => { this.cell.hidden = true; });
    this.list.addEventListener('pointermove', (event) => this.#hover(event));
    this.list.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.list.addEventListener('click', (event) => {
      const index = this.#under(event);
      if (index >= 0) this.#choose(index);
    });
    new ResizeObserver(() => this.#layOut()).observe(this.element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.repaint());
  }

  /** Show another grouping, filter or search. */
  show(view) {
    const regroup = view.group !== this.view.group;
    this.view = view;
    this.selected = view.node ? this.fleet.indexOf(view.node) : -1;
    if (regroup || !this.layout) this.#layOut();
    else this.repaint();
  }

  /** How many nodes the filter and the search leave. */
  matching() {
    return this.fleet.names.reduce((count, _, index) => count + !this.#isDim(index), 0);
  }

  /** Draw all again, with the colours of the moment. */
  repaint() {
    this.sprites = null;
    this.#place(this.mark, this.selected);
    this.#later();
  }

  #isDim(index) {
    return !this.fleet.isLeft(index, this.view);
  }

  #layOut() {
    const width = this.room.clientWidth;
    if (!width || !this.fleet.set) return;
    this.selected = this.view.node ? this.fleet.indexOf(this.view.node) : -1;
    const height = Math.max(240, Math.min(560, innerHeight * 0.55));
    this.layout = arrange(this.fleet.groups(this.view.group), width, height);
    this.places = placesOf(this.layout, this.fleet.names.length);
    this.room.style.setProperty('height', `${Math.ceil(this.layout.height)}px`);
    if (this.focused >= this.fleet.names.length) this.focused = -1;
    this.repaint();
    if (document.activeElement === this.list) this.#focus(this.focused, false);
  }

  #later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#paint();
    });
  }

  /** Size the canvas to what is in sight and draw it. */
  #paint() {
    const { layout, element } = this;
    if (!layout) return;
    const ratio = devicePixelRatio || 1;
    const height = Math.min(element.clientHeight || layout.height, Math.ceil(layout.height));
    const pixels = [Math.round(this.room.clientWidth * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
      this.canvas.style.setProperty('height', `${height}px`);
    }
    this.top = element.scrollTop;
    this.bottom = this.top + height;
    this.sprites ??= new Sprites(layout.size, ratio);
    this.context = this.canvas.getContext('2d');
    this.context.clearRect(0, 0, ...pixels);
    for (const block of layout.blocks) this.#paintBlock(block, ratio);
  }

  #paintBlock(block, ratio) {
    const { pitch, titled } = this.layout;
    if (block.cells + block.rows * pitch < this.top || block.top > this.bottom) return;
    if (titled) this.#paintTitle(block, ratio);
    const from = Math.max(0, Math.floor((this.top - block.cells) / pitch)) * block.across;
    const to = Math.min(block.group.indexes.length, (Math.ceil((this.bottom - block.cells) / pitch) + 1) * block.across);
    for (let place = from; place < to; place += 1) this.#paintCell(block, place, ratio);
  }

  #paintTitle(block, ratio) {
    const { context } = this;
    const styles = getComputedStyle(this.element);
    const { indexes, title } = block.group;
    let done = 0;
    for (const index of indexes) done += this.fleet.states[index] === 5;
    context.save();
    context.scale(ratio, ratio);
    context.beginPath();
    context.rect(block.left, block.top - this.top, block.room, 22);
    context.clip();
    context.textBaseline = 'middle';
    context.fillStyle = styles.getPropertyValue('--text');
    context.font = `600 12px ${styles.fontFamily}`;
    const y = block.top - this.top + 11;
    context.fillText(title, block.left, y);
    const used = context.measureText(title).width;
    context.fillStyle = styles.getPropertyValue('--quiet');
    context.font = `12px ${styles.fontFamily}`;
    context.fillText(`${number(done)} of ${number(indexes.length)} updated`, block.left + used + 8, y);
    context.restore();
  }

  #paintCell(block, place, ratio) {
    const index = block.group.indexes[place];
    const [x, y] = pixelOf(this.layout, block, place);
    this.sprites.draw(this.context, this.fleet.states[index], Math.round(x * ratio), Math.round((y - this.top) * ratio), this.#isDim(index));
  }

  /** Draw the changed cells again; a title only counts, so that with titles all is drawn. */
  #changed(indexes) {
    if (!this.layout) return;
    if (this.focused >= 0 && !this.cell.hidden && indexes.includes(this.focused)) this.#describe(this.focused);
    if (this.layout.titled || this.frame || indexes.length > 2000 || !this.sprites) {
      if (indexes.length) this.#later();
      return;
    }
    const ratio = devicePixelRatio || 1;
    for (const index of indexes) {
      const block = this.layout.blocks[this.places.block[index]];
      const [x, y] = pixelOf(this.layout, block, this.places.place[index]);
      if (y + this.layout.pitch < this.top || y > this.bottom) continue;
      const size = this.sprites.pixels;
      this.context.clearRect(Math.round(x * ratio), Math.round((y - this.top) * ratio), size, size);
      this.#paintCell(block, this.places.place[index], ratio);
    }
  }

  // --- Pointer and keyboard ------------------------------------------------------------------

  #under(event) {
    const box = this.room.getBoundingClientRect();
    return this.layout ? nodeAt(this.layout, event.clientX - box.left, event.clientY - box.top) : -1;
  }

  #hover(event) {
    const index = this.#under(event);
    this.tip.hidden = index < 0;
    if (index < 0) return;
    const { label } = this.fleet.describe(this.fleet.states[index]);
    const reason = this.fleet.reasonOf(index);
    this.tip.replaceChildren(el('b', {}, this.fleet.names[index]), ` ${label}${reason ? `: ${reason}` : ''}`);
    const box = this.element.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 4);
    this.tip.style.setProperty('left', `${Math.max(4, left)}px`);
    this.tip.style.setProperty('top', `${event.clientY - box.top + this.element.scrollTop + 16}px`);
  }

  #choose(index) {
    this.focused = index;
    this.onSelect(this.fleet.names[index]);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.layout) return;
    let next = null;
    if (Object.hasOwn(KEYS, event.key)) next = this.#step(...KEYS[event.key]);
    else if (event.key === 'Home') next = this.#first();
    else if (event.key === 'End') next = this.#order().findLast((index) => !this.#isDim(index)) ?? -1;
    else if (event.key === 'PageDown' || event.key === 'PageUp') next = this.#page(event.key === 'PageDown' ? 1 : -1);
    else if ((event.key === 'Enter' || event.key === ' ') && this.focused >= 0) this.#choose(this.focused);
    else return;
    event.preventDefault();
    if (next !== null && next >= 0) this.#focus(next, true);
  }

  #order() {
    return this.layout.blocks.flatMap((block) => [...block.group.indexes]);
  }

  #first() {
    return this.layout ? this.#order().find((index) => !this.#isDim(index)) ?? -1 : -1;
  }

  /** One step in a direction, over the cells that the filter leaves out. */
  #step(across, down) {
    let at = this.focused;
    for (;;) {
      const next = neighbour(this.layout, this.places, at, across, down);
      if (next < 0 || next === at) return -1;
      at = next;
      if (!this.#isDim(at)) return at;
    }
  }

  #page(direction) {
    let at = this.focused;
    for (let step = 0; step < 10; step += 1) {
      const next = neighbour(this.layout, this.places, at, 0, direction);
      if (next < 0) break;
      at = next;
    }
    return at;
  }

  #focus(index, reveal) {
    this.focused = index;
    this.#place(this.cell, index);
    if (index < 0) return;
    this.#describe(index);
    this.list.setAttribute('aria-activedescendant', 'grid-cell');
    if (reveal && this.element.scrollHeight > this.element.clientHeight) this.cell.scrollIntoView({ block: 'nearest' });
  }

  #describe(index) {
    const { label, meaning } = this.fleet.describe(this.fleet.states[index]);
    const group = this.layout.blocks[this.places.block[index]].group.title;
    const reason = this.fleet.reasonOf(index);
    this.cell.setAttribute('aria-label', `${this.fleet.names[index]}, ${label}: ${reason || meaning}${group ? `, in ${group}` : ''}`);
    this.cell.setAttribute('aria-setsize', this.fleet.names.length);
    this.cell.setAttribute('aria-posinset', index + 1);
    this.cell.setAttribute('aria-selected', String(index === this.selected));
  }

  #place(element, index) {
    element.hidden = index < 0 || !this.layout || this.places.block[index] < 0;
    if (element.hidden) return;
    const block = this.layout.blocks[this.places.block[index]];
    const [x, y] = pixelOf(this.layout, block, this.places.place[index]);
    element.style.setProperty('transform', `translate(${x - 2}px, ${y - 2}px)`);
    element.style.setProperty('width', `${this.layout.size + 4}px`);
    element.style.setProperty('height', `${this.layout.size + 4}px`);
  }

  /** What the filter and the search leave, in words. */
  summary() {
    const all = this.fleet.names.length;
    const left = this.matching();
    return left === all ? plural(all, 'node') : `${number(left)} of ${plural(all, 'node')}`;
  }
}
