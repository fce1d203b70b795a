// The table of sessions.
import { h, set, put, say, num, usd, dur, clock, exact, state, glyph, roles, words, order, waitLine, waitTitle, empty, plain, spaced, List } from './ui.js';
import { world, now, sessions as fetched, inView, name, address } from './api.js';
import { act, head, narrow, rank, calm, kept } from './parts.js';

export const load = () => fetched();

const place = Object.fromEntries(rank.map((s, i) => [s, i]));
const part = s => s.wait ? s.wait.limit ? (now() - s.wait.from) / s.wait.limit : 0 : -1;
// Each column: its key, its name, its width, its class, how it sorts, and whether a session has
// anything in it. A column that has nothing in any session is left out.
const columns = [
  ['state', 'state', '138px', '', s => place[s.state] ?? 99],
  ['id', 'session', 'minmax(84px,118px)', 'mono id', s => s.id],
  ['title', 'title', 'minmax(150px,1fr)', 'nm', name, s => s.title || Object.keys(s.labels).length],
  ['host', 'host', '84px', '', s => s.host || '', s => s.host],
  ['backend', 'agent', '48px', '', s => s.backend || '', s => s.backend],
  ['for', 'for', '70px', 'n', s => -Date.parse(s.state_since)],
  ['waits', 'waits for', 'minmax(150px,.8fr)', 'w', s => -part(s), s => s.wait || s.error || s.partial],
  ['turns', 'turns', '46px', 'n', s => -(s.turns || 0), s => s.turns],
  ['usd', 'cost', '62px', 'n', s => -(s.usd || 0), s => s.usd],
  ['restarts', '↻', '26px', 'n', s => -s.restarts],
  ['unread', 'unread', '50px', 'n', s => -s.unread],
];
const sorts = Object.fromEntries(columns.map(c => [c[0], c[4]]));
const hay = s => s.hay ||= (s.id + ' ' + s.title + ' ' + s.backend + ' ' + Object.entries(s.labels).map(x => x.join('=')).join(' ') + ' ' + (s.dir || '') + ' ' + (s.host || '') + ' ' + s.error).toLowerCase();

export default function sessions(root, p, go) {
  const all = () => world.sessions ? [...world.sessions.values()] : [];
  const find = h('input', { class: 'find', type: 'search', id: 'find', placeholder: 'Filter: words, state:running, team=payments', 'aria-label': 'Filter sessions', value: p.q || '', autocomplete: 'off', spellcheck: 'false' });
  const want = new Set(p.state ? p.state.split(',') : []);
  let sort = sorts[p.sort] ? p.sort : 'state', down = p.down === '1', shown = [];
  const chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'States' }), count = h('span', { class: 'dim n', role: 'status' });
  const hdr = h('div', { class: 'srow shead', role: 'row' });
  const list = new List({
    id: 'list', label: 'Sessions', cols: 10, head: () => hdr, height: () => narrow() ? 56 : 32, open: s => { kept.last = s.id; go(address(s)); },
    row: () => {
      const r = h('div', { class: 'srow' }, shown.map(c => h('span', { class: c[3] + ' c-' + c[0], role: 'gridcell' })));
      r.c = Object.fromEntries(shown.map((c, i) => [c[0], r.children[i]]));
      if (r.c.title) r.c.title.append(r.a = h('a', { class: 'nm', tabindex: -1 }), r.l = h('span', { class: 'lab' }));
      if (r.c.waits) { r.c.waits.append(r.w = waitLine({ what: '', from: 0, limit: 1 }, 0), r.p = h('span', { class: 'dim plus' })); [r.what, r.age, r.m] = r.w.children; r.bar = r.m.lastChild; }
      return r;
    },
    fill: (r, s) => {
      const c = r.c, t = now();
      if (c.state.s !== s.state) { c.state.s = s.state; set(c.state, state(s.state)); }
      if (r.s !== s) {
        r.s = s;
        say(c.id, s.id); c.id.title = plain(s.id);
        if (r.a) {
          const l = Object.entries(s.labels);
          say(r.a, name(s)); say(r.l, l[0]?.[1] || ''); r.l.hidden = !l.length;
          r.a.href = address(s);
          r.l.title = plain(l.map(x => x.join('=')).join('\n'));
        }
        if (c.host) { say(c.host, s.host || 'this one'); c.host.title = plain(s.host || ''); }
        if (c.backend) say(c.backend, s.backend || '');
        if (c.turns) say(c.turns, s.turns == null ? '·' : num(s.turns));
        if (c.usd) say(c.usd, s.usd == null ? '·' : usd(s.usd));
        say(c.restarts, s.restarts ? String(s.restarts) : '·'); c.restarts.className = 'c-restarts n ' + (s.restarts ? 'hot' : 'dim');
        say(c.unread, s.unread ? num(s.unread) : '·'); c.unread.className = 'c-unread n ' + (s.unread_limit && s.unread >= s.unread_limit ? 'hot' : s.unread ? '' : 'dim');
        c.for.title = exact(s.state_since);
      }
      say(c.for, dur(t - Date.parse(s.state_since)));
      if (!r.w) return;
      const x = s.wait, full = x?.limit ? Math.min(1, (t - x.from) / x.limit) : 0;
      r.w.hidden = !x; say(r.p, x ? s.more > 0 ? '+' + s.more : '' : s.error || (s.partial ? 'no answer within 1 s' : ''));
      r.p.className = !x && s.error ? 'fail' : 'dim plus';
      if (x) {
        say(r.what, x.what); say(r.age, dur(t - x.from)); r.bar.setAttribute('width', (100 * full).toFixed(1));
        r.m.classList.toggle('off', !x.limit);
        r.w.className = 'wait' + (full > .8 ? ' near' : '');
        if (r.w.of !== x) { r.w.of = x; r.w.title = plain(waitTitle(x)); }
      }
    },
  });
  const heads = l => {
    const next = columns.filter(c => !c[5] || l.some(c[5]));
    if (next.length === shown.length && hdr.firstChild) return;
    shown = next;
    list.box.style.setProperty('--cols', shown.map(c => c[2]).join(' '));
    list.box.setAttribute('aria-colcount', shown.length);
    list.forget();
    set(hdr, shown.map(([k, title, , cls]) => h('button', { type: 'button', role: 'columnheader', class: cls === 'n' ? 'n' : '', 'data-k': k, title: k === 'restarts' ? 'restarts of the agent and of its actors' : null, on: { click: () => { down = sort === k ? !down : false; sort = k; apply(); } } }, title)));
  };
  const apply = () => {
    const l = all(), terms = find.value.toLowerCase().split(/\s+/).filter(Boolean), st = terms.filter(t => t.startsWith('state:')).map(t => t.slice(6)), ws = terms.filter(t => !t.startsWith('state:'));
    heads(l);
    let out = l.filter(s => (!want.size || want.has(s.state)) && (!st.length || st.some(x => s.state.startsWith(x))) && ws.every(x => x[0] === '-' && x[1] ? !hay(s).includes(x.slice(1)) : hay(s).includes(x)));
    const f = sorts[sort], keyed = out.map(s => [f(s), s.state_since, s]);
    keyed.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0));
    out = keyed.map(x => x[2]);
    if (down) out.reverse();
    const q = new URLSearchParams({ ...(find.value && { q: find.value }), ...(want.size && { state: [...want].join(',') }), ...(sort !== 'state' && { sort }), ...(down && { down: '1' }) });
    history.replaceState(null, '', '#/sessions' + (q.size ? '?' + q : ''));
    kept.back = location.hash;
    list.show(out);
    say(count, num(out.length) + ' of ' + num(l.length) + ' · order of ' + clock(now()));
    set(none, out.length ? null : l.length ? empty('No session matches', 'Nothing of ' + num(l.length) + ' sessions fits the filter.', act('Clear the filter', '', clear, '', true)) : empty('No sessions', 'Sessions of this host appear here as they start. Nothing is kept of those that have ended.'));
    none.hidden = out.length > 0;
    hdr.querySelectorAll('[data-k]').forEach(b => b.setAttribute('aria-sort', b.dataset.k === sort ? down ? 'descending' : 'ascending' : 'none'));
  };
  const clear = () => { find.value = ''; want.clear(); drawChips(); apply(); };
  const drawChips = () => set(chips, order.filter(s => world.states[s] || want.has(s)).map(s => h('button', { class: 'chip r-' + roles[s], type: 'button', 'aria-pressed': want.has(s), on: { click: () => { want.has(s) ? want.delete(s) : want.add(s); drawChips(); apply(); } } }, glyph(roles[s]), h('span', {}, words[s] || spaced(s)), h('b', { class: 'n' }, num(world.states[s] || 0)))));
  const none = h('div', { class: 'over', hidden: true });
  find.addEventListener('input', apply);
  root.classList.add('fill');
  root.append(head('Sessions', count), h('div', { class: 'tools' }, find, act('Sort again', 'r', apply, '', true)), chips, put(list.box, none));
  drawChips(); apply();
  const last = list.items.findIndex(s => s.id === kept.last);
  if (last >= 0) requestAnimationFrame(() => list.select(last));
  // The rows that changed stay where they are; new ones come with the next order.
  const soon = calm(() => world.sessions && list.swap(s => world.sessions.get(s.id) || (s.state === 'closed' ? s : { ...s, state: 'closed', wait: null })), 250);
  let n = 0;
  return {
    title: 'Sessions', search: find,
    async resync() { await fetched(); drawChips(); apply(); },
    tick(type) {
      if (type === 'session') soon();
      if (type === 'gone') soon();
      if (type !== 'tick') return;
      inView(list.items.slice(Math.max(0, list.first), Math.max(0, list.first) + (list.shown || 0))).then(soon);
      soon();
      if (!list.items.length && world.sessions?.size) apply();
      if (++n % 3 === 0 && !chips.matches(':focus-within, :hover')) drawChips();
    },
    key: e => e.key === 'Escape' && (find.value || want.size) ? (clear(), true) : list.key_(e),
  };
}
