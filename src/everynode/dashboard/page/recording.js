// A recording feeds the fleet the messages that a live stream would send, at the time that the player stands at.

const SPEEDS = 20; // seconds that a whole recording takes to play

export class Recording {
  constructor(document_, fleet) {
    Object.assign(this, { document: document_, fleet, at: 0, next: 0, playing: false, onTime: () => {} });
    this.#rewind();
  }

  get end() {
    return this.document.end;
  }

  #rewind() {
    const { set, nodes, states, legend } = this.document;
    this.next = 0;
    this.at = 0;
    this.fleet.snapshot({ set, nodes, states, legend });
  }

  /** Stand at a time: forward by the frames in between, backward from the start. */
  seek(seconds) {
    const to = Math.min(this.end, Math.max(0, seconds));
    if (to < this.at) this.#rewind();
    this.at = to;
    const { frames } = this.document;
    const latest = new Map();
    let set = {};
    for (; this.next < frames.length && frames[this.next][0] <= to; this.next += 1) {
      const [, change] = frames[this.next];
      change.at.forEach((index, position) => latest.set(index, change.states[position]));
      set = { ...set, ...change.set };
    }
    this.fleet.batch({ set, at: [...latest.keys()], states: [...latest.values()] });
    this.onTime(to);
  }

  /** Play or pause; at the end, play from the start. */
  toggle() {
    this.playing = !this.playing;
    if (!this.playing) return;
    if (this.at >= this.end) this.seek(0);
    let before = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      this.playing = this.at < this.end;
      this.seek(this.at + ((now - before) / 1000) * (this.end / SPEEDS));
      before = now;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** What happened to a node: [[seconds, state]] from the start to the time of the player. */
  story(index) {
    const found = [[0, atob(this.document.states).charCodeAt(index)]];
    for (const [seconds, change] of this.document.frames) {
      if (seconds > this.at) break;
      const position = change.at.indexOf(index);
      if (position >= 0) found.push([seconds, change.states[position]]);
    }
    return found;
  }
}
