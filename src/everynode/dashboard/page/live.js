// Live sources: server-sent events of all sets and of one set. A cut stream is taken up again where it ended.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;

/** Return the answer of the server as JSON; throws an Error with `help`, what to do. */
export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: 'no-store' });
  } catch {
    throw Object.assign(new Error('The dashboard does not answer.'), { help: 'Is everynode dashboard still running?' });
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(body.error ?? `The dashboard answered ${answer.status}.`), { help: body.help ?? '', status: answer.status });
  return body;
}

/** The path of a set's part of the API. */
export function setPath({ kind, namespace, name }) {
  return `api/set/${[kind, namespace, name].map(encodeURIComponent).join('/')}`;
}

/** A stream of events that reconnects until it is closed; `onTrouble` gets {message, help}, or null when all is well. */
export class Stream {
  constructor(path, handlers, onTrouble) {
    Object.assign(this, { path, handlers, onTrouble, last: '', wait: FIRST_WAIT, closed: false });
    this.#open();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }

  /** Ask for everything anew: what is here does not fit what came. */
  restart() {
    this.last = '';
    this.source.close();
    this.#open();
  }

  #open() {
    const source = new EventSource(this.last ? `${this.path}?from=${encodeURIComponent(this.last)}` : this.path);
    this.source = source;
    source.addEventListener('open', () => this.#well());
    source.addEventListener('error', () => this.#failed());
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        this.last = event.lastEventId || this.last;
        handle(JSON.parse(event.data));
      });
    }
  }

  #well() {
    this.wait = FIRST_WAIT;
    this.onTrouble(null);
  }

  /** A browser takes up a broken stream by itself, but gives up on an answer that is not a stream. */
  async #failed() {
    this.source.close();
    if (this.closed) return;
    const seconds = Math.round(this.wait / 1000);
    let trouble = { message: 'The connection is cut: what you see is the last that was known.', help: `Trying again every ${seconds === 1 ? 'second' : `${seconds} seconds`}.` };
    try {
      await ask('api/sets');
      await ask(`${this.path.replace(/\/stream$/, '')}${this.path.startsWith('api/sets') ? '' : '/nodes?state=none'}`);
    } catch (error) {
      if (error.status) trouble = { message: error.message, help: error.help };
    }
    if (this.closed) return;
    this.onTrouble(trouble);
    this.timer = setTimeout(() => this.#open(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }
}
