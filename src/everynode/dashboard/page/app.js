// Starts the page: a recording that stands in it is played; without one it shows the cluster live.

import { el, renderOnChange } from './dom.js';
import { Fleet } from './model.js';
import { ask, setPath, Stream } from './live.js';
import { LiveFacts } from './live_facts.js';
import { problem, sentence } from './notices.js';
import { RecordedFacts } from './recorded_facts.js';
import { Recording } from './recording.js';
import { keep, tokenForm } from './session.js';
import { format, parse } from './route.js';
import { SetsView } from './sets.js';
import { SetView } from './setview.js';

const main = document.getElementById('main');
const top_ = document.getElementById('top');

function play(recording) {
  const fleet = new Fleet();
  const player = new Recording(recording, fleet);
  top_.replaceChildren(el('span', { class: 'brand' }, 'Everynode'), el('span', {}, recording.title));
  let route = parse(location.hash);
  const go = (change) => {
    route = { ...route, ...change };
    history.replaceState(null, '', format(route));
    view.show(route);
  };
  const view = new SetView(fleet, new RecordedFacts(fleet, player, go), go);
  main.replaceChildren(view.element, el('p', { class: 'foot' }, recording.summary));
  player.seek(route.t === '' ? player.end * recording.poster : Number(route.t) || 0);
  view.show(route);
  addEventListener('hashchange', () => {
    route = parse(location.hash);
    if (route.t !== '') player.seek(Number(route.t) || 0);
    view.show(route);
  });
}

/** The cluster live: the list of sets, or one of them, as the URL says. */
class Live {
  constructor() {
    this.banner = el('div', { class: 'banner' });
    this.place = el('div');
    this.context = el('span');
    top_.replaceChildren(el('a', { class: 'brand', href: '#/' }, 'Everynode'), this.context);
    main.replaceChildren(this.banner, this.place);
    this.place.replaceChildren(el('p', { class: 'hint' }, 'Loading …'));
    addEventListener('hashchange', () => this.#open(parse(location.hash), true));
    this.#begin();
  }

  /** Learn what this dashboard is, and open what the URL says. */
  async #begin() {
    try {
      const { cluster, actions } = await ask('api/sets');
      this.context.textContent = cluster;
      this.actions = actions;
    } catch (error) {
      if (error.status === 401) {
        this.#signIn(error);
        return;
      } // the stream tells of any other trouble, and tries again
    }
    this.key = null;
    this.#open(parse(location.hash));
  }

  /** Ask for a token, and begin again with it. */
  #signIn({ message, help }) {
    this.stream?.close();
    keep('');
    this.#warn(null);
    this.place.replaceChildren(el('div', { class: 'card sign-in' }, el('h1', {}, 'Sign in'), tokenForm(message, help, () => this.#begin())));
    this.place.querySelector('input').focus();
  }

  #trouble = (trouble) => {
    if (trouble?.status === 401) this.#signIn(trouble);
    else this.#warn(trouble);
    if (trouble && trouble.status && trouble.status !== 401 && !this.show) {
      this.place.replaceChildren(el('p', { class: 'hint' }, el('a', { href: '#/' }, 'All rollouts')));
    }
  };

  /** Show what is wrong; read out when that changes, not at every attempt. */
  #warn(trouble) {
    renderOnChange(this.banner, trouble && [trouble.message, trouble.help], () => (trouble ? problem(trouble) : []));
  }

  /** Open what the URL says; who has come by a link goes on at the beginning of it. */
  #open(route, follows = false) {
    this.route = route;
    const key = route.set ? setPath(route.set) : '';
    if (this.key === key) {
      this.show?.(route);
      return;
    }
    this.key = key;
    this.show = null;
    this.stream?.close();
    this.#trouble(null);
    if (follows) {
      scrollTo(0, 0);
      main.focus();
    }
    if (route.set) this.#openSet(route.set);
    else this.#openSets();
  }

  #openSets() {
    const view = new SetsView((change) => {
      this.route = { ...this.route, ...change };
      history.replaceState(null, '', format(this.route));
      view.filter(this.route);
    });
    this.place.replaceChildren(view.element);
    document.title = 'Rollouts · Everynode';
    this.show = (route) => view.filter(route);
    view.filter(this.route);
    this.stream = new Stream('api/sets/stream', { sets: (message) => view.show(message) }, (trouble) => {
      if (trouble) view.fail();
      this.#trouble(trouble);
    });
  }

  #openSet(set) {
    const fleet = new Fleet();
    const go = (change) => {
      this.route = { ...this.route, ...change };
      history.replaceState(null, '', format(this.route));
      view.show(this.route);
    };
    const view = new SetView(fleet, new LiveFacts(fleet, set, go, { actions: this.actions }), go);
    this.place.replaceChildren(el('p', { class: 'hint' }, `Loading ${set.name} …`));
    const stream = new Stream(`${setPath(set)}/stream`, {
      snapshot: (message) => {
        fleet.snapshot(message);
        if (!view.element.isConnected) this.place.replaceChildren(view.element);
        this.show = (route) => view.show(route);
        view.show(this.route);
      },
      batch: (message) => {
        if (!fleet.batch(message)) stream.restart();
      },
      trouble: ({ message, help }) => this.#trouble(message ? { message: sentence(message), help: sentence(help) } : null),
      gone: ({ message }) => {
        stream.close();
        this.#trouble({ message: sentence(message), help: 'Go back to the list of all sets.' });
      },
    }, this.#trouble);
    this.stream = stream;
  }
}

const recording = document.getElementById('recording');
if (recording) play(JSON.parse(recording.textContent));
else new Live();
