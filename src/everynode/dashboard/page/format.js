// Numbers, times and commands as people read them.

const whole = new Intl.NumberFormat('en-US');
const clockTime = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const dayTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' });

/** 20000 as 20,000. */
export const number = (value) => whole.format(value);

/** "1 node", "3 nodes". */
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;

/** Seconds in at most two units: "45 s", "12 min 5 s", "3 h 20 min", "2 d 4 h". */
export function duration(seconds) {
  const left = Math.max(0, Math.round(seconds));
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => left >= size);
  if (first < 0) return '0 s';
  const [size, unit] = parts[first];
  const rest = parts[first + 1];
  const more = rest ? Math.floor((left % size) / rest[0]) : 0;
  return `${Math.floor(left / size)} ${unit}${more ? ` ${more} ${rest[1]}` : ''}`;
}

/** Seconds as a player shows them: 0:05, 12:40, 3:05:00. */
export function timecode(seconds) {
  const left = Math.max(0, Math.floor(seconds));
  const two = (value) => String(value).padStart(2, '0');
  const hours = Math.floor(left / 3600);
  const minutes = Math.floor((left % 3600) / 60);
  return hours ? `${hours}:${two(minutes)}:${two(left % 60)}` : `${minutes}:${two(left % 60)}`;
}

/** The time of day of an epoch, in the viewer's zone. */
export const clock = (epoch) => clockTime.format(epoch * 1000);

/** The day and the time of an epoch. */
export const day = (epoch) => dayTime.format(epoch * 1000);

/** A share as a whole percentage; 100 only when all is done. */
export function percent(part, total) {
  if (!total) return 0;
  return part >= total ? 100 : Math.min(99, Math.floor((part / total) * 100));
}

/** A share as people read it; a dash where there is nothing to share. */
export const share = (part, total) => (total ? `${percent(part, total)}%` : '–');

/** The words for a kind of set. */
export const kindWord = (kind) => (kind === 'ads' ? 'Advanced DaemonSet' : 'DaemonSet');

/** A word as a shell needs it: quoted unless it is plainly harmless. */
export const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Words of a rollout's state. */
export const STATE_WORDS = {
  complete: 'Complete',
  progressing: 'Rolling out',
  waiting: 'Waiting',
  stalled: 'Stalled',
  paused: 'Paused',
  held: 'Held',
  'all-but-silent': 'Done, some silent',
  'on-delete': 'On delete',
  unobserved: 'Not seen yet',
  stopped: 'Stopped',
  incomplete: 'Incomplete',
  endless: 'No end in sight',
  unchanged: 'Nothing changes',
};

/** The word of a rollout's state; an unknown one is shown as it is. */
export const stateWord = (state) => (Object.hasOwn(STATE_WORDS, state) ? STATE_WORDS[state] : state);
