// The URL's fragment holds the whole state of the page, so that a link shows others the same.
//   #/                                           all sets
//   #/set/ads/NAMESPACE/NAME?group=KEY&states=4,6&reason=CODE&find=TEXT&node=NAME&tab=table&page=2&diff=1-2&t=SECONDS

const LISTS = new Set(['states']);
const KEYS = ['group', 'states', 'reason', 'find', 'node', 'tab', 'page', 'diff', 't'];

/** Return the state that a fragment stands for. */
export function parse(fragment) {
  const [path, query = ''] = fragment.replace(/^#/, '').split('?', 2);
  const parts = path.split('/').map(decoded);
  const found = parts[1] === 'set' && parts.length >= 5 ? { kind: parts[2], namespace: parts[3], name: parts[4] } : null;
  const route = { set: found };
  const values = new URLSearchParams(query);
  for (const key of KEYS) {
    const text = values.get(key) ?? '';
    route[key] = LISTS.has(key) ? text.split(',').filter((each) => /^\d+$/.test(each)).map(Number) : text;
  }
  return route;
}

/** Return the fragment of a state. */
export function format(route) {
  const { set } = route;
  const path = set ? `/set/${[set.kind, set.namespace, set.name].map(encodeURIComponent).join('/')}` : '/';
  const values = new URLSearchParams();
  for (const key of KEYS) {
    const text = LISTS.has(key) ? route[key].join(',') : route[key];
    if (text !== '') values.set(key, text);
  }
  const query = values.toString();
  return `#${path}${query ? `?${query}` : ''}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
