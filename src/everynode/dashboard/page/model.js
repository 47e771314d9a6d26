// The fleet of one DaemonSet as the page knows it. A live stream and a recording feed it the same messages.

const STATES = 16; // more than the legend has: an unknown one is counted and drawn, not dropped

/** How every node stands. Fires `reset` after a snapshot and `change` (detail: indexes) after a batch. */
export class Fleet extends EventTarget {
  set = null;
  names = [];
  labels = {};
  legend = [];
  states = new Uint8Array(0);
  reasons = new Uint8Array(0); // by node: the number of what it waits for in `set.reasons`, from 1 on
  tally = new Uint32Array(STATES); // nodes by state
  version = 0; // counts what was applied
  #indexes = null;

  /** Replace everything by a snapshot. */
  snapshot({ set, nodes, states, legend }) {
    const bytes = decode(states);
    if (bytes.length !== nodes.names.length) throw new Error('a snapshot with a state too few or too many');
    this.version += 1;
    this.set = set;
    this.names = nodes.names;
    this.labels = nodes.labels ?? {};
    this.legend = legend ?? this.legend;
    this.states = bytes.map(stateOf);
    this.reasons = bytes.map(reasonOf);
    this.#indexes = null;
    this.tally.fill(0);
    for (const state of this.states) this.tally[state] += 1;
    this.dispatchEvent(new CustomEvent('reset'));
  }

  /** Apply a batch. Returns false, and changes nothing, where it does not fit: a new snapshot is needed. */
  batch({ set, at = [], states = [] }) {
    const { length } = this.states;
    if (!this.set || at.length !== states.length || at.some((index) => !(index >= 0 && index < length))) return false;
    this.version += 1;
    at.forEach((index, position) => {
      this.tally[this.states[index]] -= 1;
      this.states[index] = stateOf(states[position]);
      this.reasons[index] = reasonOf(states[position]);
      this.tally[this.states[index]] += 1;
    });
    if (set) this.set = { ...this.set, ...set };
    this.dispatchEvent(new CustomEvent('change', { detail: at }));
    return true;
  }

  /** The index of a node; -1 if there is none of that name. */
  indexOf(name) {
    this.#indexes ??= new Map(this.names.map((each, index) => [each, index]));
    return this.#indexes.get(name) ?? -1;
  }

  /** The label and the meaning of a state. */
  describe(state) {
    return this.legend.find((each) => each.state === state) ?? { state, label: `state ${state}`, meaning: '' };
  }

  /** What a node waits for: a code such as ImagePullBackOff; empty if it waits for nothing outside of the controller. */
  reasonOf(index) {
    const number = this.reasons[index];
    return number ? this.set.reasons?.[number - 1] ?? 'other' : '';
  }

  /** The indexes of the nodes that wait for a reason; none for one that a byte cannot tell apart. */
  waitingFor(reason) {
    const number = (this.set.reasons ?? []).indexOf(reason) + 1;
    const found = [];
    for (let index = 0; number && index < this.reasons.length; index += 1) if (this.reasons[index] === number) found.push(index);
    return found;
  }

  /** Whether a node is left by a filter: chosen states, a reason, and a part of its name. */
  isLeft(index, { states, reason, find }) {
    if (states.length && !states.includes(this.states[index])) return false;
    if (reason && this.reasonOf(index) !== reason) return false;
    return find === '' || this.names[index].includes(find);
  }

  /** Nodes by the value of a label, in the order of the values; all in one group without a label. */
  groups(key) {
    const label = key && Object.hasOwn(this.labels, key) ? this.labels[key] : null;
    if (!label) return [{ title: '', indexes: Int32Array.from(this.names.keys()) }];
    const found = new Map();
    label.of.forEach((value, index) => {
      if (!found.has(value)) found.set(value, []);
      found.get(value).push(index);
    });
    const titled = [...found].map(([value, indexes]) => ({
      title: value < 0 ? 'without this label' : label.values[value] || '(empty)',
      last: value < 0,
      indexes: Int32Array.from(indexes),
    }));
    const byTitle = (a, b) => a.last - b.last || a.title.localeCompare(b.title, 'en', { numeric: true });
    return titled.sort(byTitle);
  }
}

// A byte has the state in its lower half and the number of the reason above.
const stateOf = (byte) => byte & 15;
const reasonOf = (byte) => byte >> 4;

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}
