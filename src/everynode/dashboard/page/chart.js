// Updated and down over time, as two stacked charts with one time axis.
//
// Drawn as SVG by hand: at most 600 points redrawn once a second need none of what a chart library is for, the
// stylesheet colours SVG (light, dark, print) where a canvas library is told every colour in a script, and every
// exported file would carry the 50 KB of the smallest library that we would have taken (uPlot).

import { el, svg } from './dom.js';
import { clock, duration, number, timecode } from './format.js';

const MARGIN = { left: 48, right: 16, top: 10 };
const UPPER = 150;
const LOWER = 56;
const GAP = 26;
const AXIS = 24;
const SHORTEST = 30; // seconds that are shown at least; of a live set, those before now
const HEIGHT = MARGIN.top + UPPER + GAP + LOWER + AXIS;

export class Chart {
  /** `onTime` is called with a time on which the viewer clicked. */
  constructor({ elapsed = false, onTime = null } = {}) {
    this.elapsed = elapsed;
    this.picture = svg('svg', { class: 'chart', role: 'img', height: HEIGHT });
    this.values = el('div', { class: 'chart-values' });
    this.element = el('div', { class: 'chart-room' }, this.values, this.picture);
    this.data = null;
    new ResizeObserver(() => this.#draw()).observe(this.element);
    this.picture.addEventListener('pointermove', (event) => this.#point(event));
    this.picture.addEventListener('pointerleave', () => this.#values(null));
    if (onTime) {
      this.picture.classList.add('seekable');
      this.picture.addEventListener('click', (event) => onTime(this.#timeAt(event)));
    }
  }

  /** Draw `history` [[time, updated, down or null]], `forecast` and `pace` ([[time, updated]] or null), until `now`. */
  show(data) {
    this.data = data;
    this.#draw();
  }

  #draw() {
    const width = this.element.clientWidth;
    const { data } = this;
    if (!data || !width) return;
    this.#scales(width);
    this.picture.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute('width', width);
    this.picture.setAttribute('aria-label', this.#words());
    this.cursor = svg('line', { class: 'cursor', y1: MARGIN.top, y2: HEIGHT - AXIS, visibility: 'hidden' });
    this.picture.replaceChildren(...this.#grid(width), ...this.#lines(), this.cursor);
    this.#values(null);
  }

  #scales(width) {
    const { history, forecast, pace, desired, promised, now } = this.data;
    const times = [...history, ...(forecast ?? []), ...(pace ?? [])].map((point) => point[0]).concat(now);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    this.from = this.elapsed ? first : Math.min(first, last - SHORTEST);
    this.to = Math.max(last, this.from + SHORTEST);
    this.most = Math.max(1, promised, ...history.map((point) => point[2] ?? 0), ...(forecast ?? []).map((point) => point[2] ?? 0));
    const room = width - MARGIN.left - MARGIN.right;
    const bottom = HEIGHT - AXIS;
    this.x = (time) => MARGIN.left + ((time - this.from) / (this.to - this.from)) * room;
    this.time = (x) => this.from + ((x - MARGIN.left) / room) * (this.to - this.from);
    this.yUpdated = (value) => MARGIN.top + UPPER * (1 - value / Math.max(1, desired));
    this.yDown = (value) => bottom - LOWER * (value / this.most);
  }

  #grid(width) {
    const { desired, promised } = this.data;
    const right = width - MARGIN.right;
    const made = [];
    const across = (y, text, kind = 'rule') => made.push(
      svg('line', { class: kind, x1: MARGIN.left, x2: right, y1: y, y2: y }),
      svg('text', { class: 'tick', x: MARGIN.left - 8, y: y + 4, 'text-anchor': 'end' }, text),
    );
    for (const value of new Set([0, Math.round(desired / 2), desired])) across(this.yUpdated(value), number(value));
    across(this.yDown(0), '0');
    if (promised > 0 && Number.isFinite(promised)) across(this.yDown(promised), number(promised), 'limit');
    const titles = [[MARGIN.top + UPPER + GAP - 8, 'down'], [MARGIN.top + 12, 'updated']];
    for (const [y, text] of titles) made.push(svg('text', { class: 'title', x: MARGIN.left + 6, y }, text));
    const times = ticks(this.from, this.to, Math.max(2, Math.floor(width / 150)));
    const fine = times.length > 1 && times[1] - times[0] < 60;
    for (const time of times) {
      made.push(svg('text', { class: 'tick', x: this.x(time), y: HEIGHT - 6, 'text-anchor': 'middle' }, this.#clock(time, fine)));
    }
    return made;
  }

  #lines() {
    const { history, forecast, pace, now } = this.data;
    const made = [];
    if (forecast?.length) {
      const line = this.elapsed ? this.#steps(forecast, 1, this.yUpdated) : this.#straight(forecast, 1, this.yUpdated);
      made.push(svg('path', { class: 'line forecast', d: line }));
      if (forecast[0].length > 2) made.push(svg('path', { class: 'line forecast', d: this.#steps(forecast, 2, this.yDown) }));
    }
    if (pace?.length) made.push(svg('path', { class: 'line pace', d: this.#straight(pace, 1, this.yUpdated) }));
    if (history.length) {
      const [, lastUpdated, lastDown] = history.at(-1);
      this.#filled(made, 'updated', [...history, [now, lastUpdated, lastDown]], 1, this.yUpdated);
      const known = history.filter((point) => point[2] !== null);
      if (known.length) this.#filled(made, 'down', [...known, [now, lastUpdated, lastDown]], 2, this.yDown);
      made.push(svg('line', { class: 'now', x1: this.x(now), x2: this.x(now), y1: MARGIN.top, y2: HEIGHT - AXIS }));
    }
    return made;
  }

  #filled(made, kind, points, column, y) {
    const line = this.#steps(points, column, y);
    const close = `V${y(0).toFixed(1)}H${this.x(points[0][0]).toFixed(1)}Z`;
    made.push(svg('path', { class: `area ${kind}`, d: line + close }), svg('path', { class: `line ${kind}`, d: line }));
  }

  #straight(points, column, y) {
    return points.map((point, at) => `${at ? 'L' : 'M'}${this.x(point[0]).toFixed(1)} ${y(point[column]).toFixed(1)}`).join('');
  }

  #steps(points, column, y) {
    let path = '';
    for (const point of points) {
      const at = this.x(point[0]).toFixed(1);
      const value = y(point[column]).toFixed(1);
      path += path ? `H${at}V${value}` : `M${at} ${value}`;
    }
    return path;
  }

  #clock(time, fine) {
    if (this.elapsed) return timecode(time);
    return fine ? clock(time) : clock(time).replace(/:\d\d( |$)/, '$1');
  }

  #timeAt(event) {
    const x = event.clientX - this.picture.getBoundingClientRect().left;
    return Math.min(this.to, Math.max(this.from, this.time(x)));
  }

  #point(event) {
    if (!this.data) return;
    const time = this.#timeAt(event);
    this.cursor.setAttribute('visibility', 'visible');
    this.cursor.setAttribute('x1', this.x(time));
    this.cursor.setAttribute('x2', this.x(time));
    this.#values(time);
  }

  /** The values at a time; at the end without one. */
  #values(time) {
    const { history, pace, desired, now } = this.data;
    if (time === null) this.cursor?.setAttribute('visibility', 'hidden');
    const at = time ?? now;
    const seen = at <= now ? valueAt(history, at) : null;
    const told = this.#forecastAt(at);
    const later = at > now ? between(pace, at) : null;
    const parts = [el('span', { class: 'when' }, this.elapsed ? timecode(at) : clock(at))];
    if (seen) {
      parts.push(el('span', { class: 'key updated' }, `updated ${number(seen[1])} of ${number(desired)}`));
      if (seen[2] !== null) parts.push(el('span', { class: 'key down' }, `down ${number(seen[2])}`));
    }
    if (told !== null) parts.push(el('span', { class: 'key forecast' }, `forecast ${number(told)}`));
    if (later !== null) parts.push(el('span', { class: 'key pace' }, `at this pace ${number(later)}`));
    else if (pace && time === null) parts.push(el('span', { class: 'key pace' }, `at this pace done in ${duration(pace.at(-1)[0] - now)}`));
    this.values.replaceChildren(...parts);
  }

  /** What the forecast says of a time. A recording is the forecast: until now, it is what was seen. */
  #forecastAt(time) {
    const { forecast, now } = this.data;
    if (!this.elapsed) return between(forecast, time);
    return time > now ? valueAt(forecast, time)?.[1] ?? null : null;
  }

  #words() {
    const { history, forecast, pace, desired, now } = this.data;
    const last = history.at(-1) ?? [now, 0, 0];
    const most = history.reduce((worst, point) => Math.max(worst, point[2] ?? 0), 0);
    const told = this.#forecastAt(now);
    const ahead = told === null ? '' : ` The forecast for now was ${number(told)}.`;
    const end = (pace ?? forecast)?.at(-1);
    const later = end && end[0] > now ? ` ${number(Math.round(end[1]))} in ${duration(end[0] - now)}, if it goes on like this.` : '';
    return `Updated ${number(last[1])} of ${number(desired)}, down ${number(last[2] ?? 0)}, at most ${number(most)}.${ahead}${later}`;
  }
}

function valueAt(points, time) {
  let found = null;
  for (const point of points) {
    if (point[0] > time) break;
    found = point;
  }
  return found;
}

/** The value of a line at a time, between its points; null outside of them. */
function between(points, time) {
  const next = points?.findIndex((point) => point[0] >= time) ?? -1;
  if (next < 0) return null;
  const [to, value] = points[next];
  if (next === 0) return to === time ? value : null;
  const [from, before] = points[next - 1];
  return Math.round(before + ((time - from) / Math.max(1e-9, to - from)) * (value - before));
}

/** Round times between two moments: about `count` of them. */
function ticks(from, to, count) {
  const sizes = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const size = sizes.find((each) => (to - from) / each <= count) ?? sizes.at(-1);
  const found = [];
  for (let time = Math.ceil(from / size) * size; time <= to; time += size) found.push(time);
  return found;
}
