// What the page tells of a recording: figures, the curve, and one node's story, all from the recording itself.

import { command, el, renderOnChange } from './dom.js';
import { shellWord, timecode } from './format.js';
import { swatch } from './cells.js';
import { player } from './player.js';

export class RecordedFacts {
  constructor(fleet, recording, go) {
    Object.assign(this, { fleet, recording, elapsed: true, actions: null, back: null, notices: null });
    this.seek = (t) => { recording.seek(t); go({ t: t.toFixed(1) }); };
    this.header = player(recording, (t) => go({ t: t.toFixed(1) }));
    this.cards = [];
  }

  title = (set) => `${set.name}: forecast · Everynode`;

  down = (set) => ({ title: 'Down now', used: set.down });

  figures = () => this.recording.document.facts;

  curve() {
    const { curve } = this.recording.document;
    return { history: curve.filter(([time]) => time <= this.recording.at), forecast: curve, now: this.recording.at };
  }

  update() {}

  columns = ['Node', 'State', 'Since', 'Labels'];

  row(index) {
    const labels = labelsOf(this.fleet, index).map(([name, value]) => `${name}=${value}`);
    return [timecode(this.recording.story(index).at(-1)[0]), labels.join(', ')];
  }

  story(place, index) {
    const { fleet, recording } = this;
    const events = recording.story(index);
    renderOnChange(place, [index, events], () => [
      ...standing(fleet, index),
      el('ol', { class: 'events' }, ...events.slice(-50).map(([at, state]) => el('li', {},
        el('span', { class: 'at' }, timecode(at)), swatch(state, 12), el('span', {}, fleet.describe(state).label)))),
      el('dl', {}, ...labelsOf(fleet, index).flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
      command(whyCommand(fleet.set, fleet.names[index])),
    ]);
  }
}

/** The name of a node and how it stands. */
export function standing(fleet, index) {
  const { label, meaning } = fleet.describe(fleet.states[index]);
  return [el('h3', {}, fleet.names[index]),
    el('p', { class: 'standing' }, swatch(fleet.states[index]), el('b', {}, label), el('span', {}, meaning))];
}

/** The command that tells the same in a terminal. */
export function whyCommand({ kind, name, namespace }, node) {
  const where = namespace === 'default' ? '' : ` -n ${shellWord(namespace)}`;
  return `everynode why ${shellWord(`${kind}/${name}`)} ${shellWord(node)}${where}`;
}

function labelsOf(fleet, index) {
  return Object.entries(fleet.labels).filter(([, label]) => label.of[index] >= 0).map(([name, label]) => [name, label.values[label.of[index]]]);
}
