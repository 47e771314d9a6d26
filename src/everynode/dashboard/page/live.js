// Live sources: answers, and server-sent events that are taken up again where they were cut.
//
// Streams are read with fetch: an EventSource can neither send a token in a header nor tell why it was refused.

import { sentence } from './notices.js';
import { headers } from './session.js';

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
const AGAIN = 500;
const HIDDEN = 10_000; // a tab that is not seen gives its connection back after this time
const SILENCE = 45_000; // the server says something every 15 seconds
const CUT = 'The connection is cut: what you see is the last that was known.';

/** Return the answer of the server; throws an Error with `help`, what to do, and `status` where it answered. */
async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: headers(options.headers), cache: 'no-store' });
  } catch {
    throw Object.assign(new Error('The dashboard does not answer.'), { help: 'Is it still running? Start it again, and load this page anew.' });
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(sentence(body.error ?? `The dashboard answered ${answer.status}`)), { help: sentence(body.help ?? ''), status: answer.status });
}

/** Return the answer of the server as JSON; asked twice where no answer came, as when a laptop changes its network. */
export async function ask(path) {
  const answer = await request(path, {}).catch((error) => {
    if (error.status) throw error;
    return new Promise((done) => { setTimeout(done, AGAIN); }).then(() => request(path, {}));
  });
  return answer.json();
}

/** Send JSON to the server, and return its answer. */
export async function tell(path, content) {
  return (await request(path, { method: 'POST', body: JSON.stringify(content), headers: { 'Content-Type': 'application/json' } })).json();
}

/** The path of a set's part of the API. */
export function setPath({ kind, namespace, name }) {
  return `api/set/${[kind, namespace, name].map(encodeURIComponent).join('/')}`;
}

/**
 * A stream of events that reconnects until it is closed; `onTrouble` gets {message, help, status}, or null when all is well.
 *
 * A browser has six connections to a server, for all its tabs and the pages that it keeps for the way back. A page that is not
 * seen rests, therefore, and takes up where it ended when it is seen again.
 */
export class Stream {
  constructor(path, handlers, onTrouble) {
    Object.assign(this, { path, handlers, onTrouble, last: '', wait: FIRST_WAIT, closed: false, resting: false });
    addEventListener('pagehide', this.#rest);
    addEventListener('pageshow', this.#wake);
    document.addEventListener('visibilitychange', this.#seen);
    this.#open();
  }

  close() {
    this.closed = true;
    removeEventListener('pagehide', this.#rest);
    removeEventListener('pageshow', this.#wake);
    document.removeEventListener('visibilitychange', this.#seen);
    this.#stop();
  }

  #stop() {
    for (const timer of [this.timer, this.hiding]) clearTimeout(timer);
    this.reading?.abort();
  }

  #rest = () => {
    this.resting = true;
    this.#stop();
  };

  #wake = () => {
    clearTimeout(this.hiding);
    if (!this.resting) return;
    this.resting = false;
    this.#open();
  };

  #seen = () => {
    if (document.hidden) this.hiding = setTimeout(this.#rest, HIDDEN);
    else this.#wake();
  };

  /** Ask for everything anew: what is here does not fit what came. */
  restart() {
    this.last = '';
    this.again();
  }

  /** Connect at once. */
  again() {
    clearTimeout(this.timer);
    this.reading?.abort();
    this.#open();
  }

  async #open() {
    const reading = new AbortController();
    this.reading = reading;
    try {
      const more = this.last ? { 'Last-Event-ID': this.last } : {};
      const answer = await request(this.path, { headers: more, signal: reading.signal });
      this.wait = FIRST_WAIT;
      this.onTrouble(null);
      const renewed = await this.#read(answer.body.getReader(), reading);
      if (reading.signal.aborted || this.closed) return;
      if (renewed) this.#open();
      else this.#failed({ message: CUT });
    } catch (error) {
      if (!reading.signal.aborted && !this.closed) this.#failed(error.status ? error : { message: CUT, help: error.help });
    }
  }

  /** Read until the stream ends; returns whether the server asked to come again. */
  async #read(reader, reading) {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const silence = setTimeout(() => reader.cancel(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return false;
      text += decoder.decode(value, { stream: true });
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) {
        if (reading.signal.aborted) return false;
        if (this.#handle(event)) return true;
      }
    }
  }

  #handle(text) {
    const fields = {};
    for (const line of text.split('\n')) {
      const colon = line.indexOf(': ');
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    if (fields.event === 'renew') return true;
    if (fields.id) this.last = fields.id;
    if (fields.event) this.handlers[fields.event]?.(JSON.parse(fields.data));
    return false;
  }

  #failed(trouble) {
    const seconds = Math.round(this.wait / 1000);
    const help = trouble.help || `Trying again every ${seconds === 1 ? 'second' : `${seconds} seconds`}.`;
    this.onTrouble({ message: trouble.message, help, status: trouble.status });
    if (this.closed || trouble.status === 401) return; // again() after a token was given
    this.timer = setTimeout(() => this.#open(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }
}
