// The supervision tree, and the actors of one session as a drawing.
import { h, set, $, num, short, bytes, dur, glyph, roles, waitLine, kbd, empty, spaced } from './ui.js';
import { world, now, tree as fetched, session as one, name, address, hostID, post } from './api.js';
import { act, head, sub, actorRole, rank, word, eventLine, calm } from './parts.js';

export async function load(p) {
  const [, s] = await Promise.all([fetched(), p.s ? one(p.s, p.host).catch(() => null) : null]);
  return s;
}
const base = n => n.split('#')[0];
const short_ = n => n.slice(n.lastIndexOf('/') + 1);
const own = (a, s) => a === s.actors[0];

export default function tree(root, p, go, chosen) {
  const open = new Set(['host', 'fleet', 'g:recovering', 'g:running']);
  const box = h('div', { class: 'tree', role: 'tree', 'aria-label': 'Supervision tree', tabindex: 0 }), map = h('div', { class: 'map' }), log = h('ol', { class: 'events' }), side = h('section', { class: 'panel', 'aria-label': 'Selected session' });
  const groups = () => {
    const by = new Map(world.tree.groups.map(g => [g.state, g]));
    return [...rank, ...[...by.keys()].filter(s => !rank.includes(s))].filter(s => by.has(s)).map(s => by.get(s));
  };
  let sel = chosen || groups().flatMap(g => g.sessions).find(s => s.actors.length > 1) || null, at = 0, rows = [];
  const listed = sel && groups().flatMap(g => g.sessions).find(s => s.id === sel.id);
  if (listed) sel = Object.assign(listed, sel); // one object for each session
  if (sel) { open.add('s:' + sel.id); open.add('g:' + sel.state); }

  const model = () => {
    const t = world.tree, out = [], add = (key, depth, kids, data) => { out.push({ key, depth, kids, ...data }); return kids && open.has(key); };
    const notes = [t.dead_letters != null && t.dead_letters + ' dead letters', t.large_lines_limit && bytes(t.large_lines) + ' of ' + bytes(t.large_lines_limit) + ' in large lines'].filter(Boolean).join(' · ');
    if (!add('host', 1, true, { icon: 'work', name: world.host.name || world.host.program || 'host', sub: 'host' + (world.host.pid ? ' · pid ' + world.host.pid : ''), st: 'up', note: notes })) return out;
    const n = groups().reduce((x, g) => x + g.count, 0);
    if (!add('fleet', 2, true, { actor: t.fleet, name: 'fleet', sub: num(n) + (n === 1 ? ' session' : ' sessions'), note: 'parent of all sessions' })) return out;
    for (const g of groups()) {
      if (!add('g:' + g.state, 3, true, { group: g.state, name: word(g.state), sub: num(g.count) })) continue;
      const list = sel && sel.state === g.state && !g.sessions.some(s => s.id === sel.id) ? [sel, ...g.sessions] : g.sessions;
      for (const s of list) if (add('s:' + s.id, 4, s.actors.length > 0, { s, name: name(s), sub: s.title ? s.id : s.backend })) for (const a of s.actors.slice(1)) add('a:' + s.id + base(a.name), 5 + (base(a.name).includes('/') ? 1 : 0), false, { s, actor: a, name: short_(a.name) });
      if (g.count > list.length) add('m:' + g.state, 4, false, { more: g.state, name: num(g.count - list.length) + ' more in Sessions' });
    }
    return out;
  };
  const rowEl = (r, i) => {
    const a = r.actor, s = r.s, role = a ? actorRole(a) : s ? roles[s.state] || 'rest' : roles[r.group || r.more] || 'work', w = s && !a && s.wait, n = a ? a.restarts : s ? s.hurt : null;
    const e = h('div', { class: 'trow' + (a && a.state !== 'running' ? ' is-' + a.state : '') + (a?.born && performance.now() - a.born < 1500 ? ' is-born' : ''), role: 'treeitem', id: 't' + i, 'aria-level': r.depth, 'aria-expanded': r.kids ? open.has(r.key) : null, 'aria-selected': i === at, 'data-d': Math.min(6, r.depth) },
      h('span', { class: 'tn' }, h('span', { class: 'chev' + (r.kids ? open.has(r.key) ? ' on' : '' : ' no') }, r.kids ? h('svg', { class: 'icon', viewBox: '0 0 12 12' }, h('use', { href: '#i-chev' })) : null), h('span', { class: 'r-' + role }, glyph(role)), h('span', { class: r.more ? 'more' : a ? 'mono nm' : 'nm', title: r.name }, r.name), r.sub ? h('span', { class: 'dim sub' + (s ? ' mono' : '') }, r.sub) : null),
      h('span', { class: 'ts r-' + role }, a ? a.state : s ? spaced(s.state) : r.st || ''), h('span', { class: 'n' + (n ? ' hot' : ' dim'), title: a?.last_failure || null }, n == null ? '' : n ? '↻' + n : '·'), h('span', { class: 'n' + (a?.depth ? '' : ' dim') }, a ? a.depth || '·' : ''), h('span', { class: 'n dim' }, a && a.handled != null ? short(a.handled) : ''),
      h('span', { class: 'tw' }, a ? h('span', { class: a.last_failure ? 'fail' : 'dim', title: a.last_failure || null }, a.last_failure || r.note || '') : s?.partial ? h('span', { class: 'dim' }, 'no answer within 1 s') : w ? waitLine(w, now()) : h('span', { class: s?.error ? 'fail' : 'dim', title: s?.error || r.note || null }, s?.error || r.note || '')));
    e.addEventListener('click', ev => { pick(i); if (r.kids && (ev.target.closest('.chev') || !s)) toggle(); else if (r.more) go('#/sessions?state=' + r.more); });
    e.addEventListener('dblclick', () => s && go(address(s)));
    return e;
  };
  const draw = () => {
    const key = rows[at]?.key;
    rows = model();
    at = Math.max(0, key ? rows.findIndex(r => r.key === key) : rows.findIndex(r => r.s === sel && sel));
    set(box, h('div', { class: 'trow thead', 'aria-hidden': 'true' }, [['name'], ['state'], ['↻', 'restarts'], ['✉', 'messages in the mailbox'], ['handled', 'messages since its last start'], ['waits for, or last failure']].map(([x, t], i) => h('span', { class: i > 1 && i < 5 ? 'n' : '', title: t }, x))), rows.map(rowEl));
    box.setAttribute('aria-activedescendant', 't' + at);
  };
  const redraw = i => { if (i >= 0 && rows[i]) $('#t' + i, box)?.replaceWith(rowEl(rows[i], i)); };
  const pick = i => {
    at = Math.max(0, Math.min(i, rows.length - 1));
    box.querySelectorAll('[role=treeitem]').forEach((e, k) => e.setAttribute('aria-selected', k === at));
    box.setAttribute('aria-activedescendant', 't' + at);
    $('#t' + at, box)?.scrollIntoView({ block: 'nearest' });
    const s = rows[at].s;
    if (s && s !== sel) { sel = s; drawSide(); history.replaceState(null, '', address(s).replace(/^#.sessions.([^?]*)[?]?/, '#/tree?s=$1&').replace(/&$/, '')); fresh(s); }
  };
  // fresh asks for the actors of a session as they are now.
  const fresh = async s => { try { const is = await one(s.id, s.host); Object.assign(s, is); if (s === sel) { drawMap(); draw(); } } catch { /* it has ended: the row stays as it was */ } };
  const toggle = on => { const r = rows[at]; if (!r.kids) return; (on ?? !open.has(r.key)) ? open.add(r.key) : open.delete(r.key); draw(); };
  const drawSide = () => {
    if (!sel) return set(side, h('p', { class: 'dim none' }, 'No session has actors now.'));
    set(side, h('header', {}, h('h2', { class: 'nm' }, name(sel)), h('a', { class: 'side', href: address(sel) }, 'session ', kbd('↵'))), map, h('div', { class: 'cap dim' }, 'A ring is a new life. ', h('b', {}, '#n'), ' is the incarnation. A supervisor restarts only the child that failed (one for one).'), h('h3', {}, 'Failures and restarts'), log);
    drawMap(); drawLog();
  };
  const drawLog = () => { const l = world.events.filter(e => e.session === sel?.id && /ActorFailed|Supervis|Recover|Restart/.test(e.type)).slice(0, 7); set(log, l.length ? l.map(eventLine) : h('li', { class: 'dim none' }, 'None since the window was opened.')); };
  const drawMap = () => set(map, sel?.actors.length ? drawing(sel) : h('p', { class: 'dim none' }, sel?.state === 'passivated' ? 'No actor: the session sleeps, and wakes with the next message.' : 'No actor.'));

  // A crash lasts about a millisecond. It is shown for so long that it can be seen: each state of
  // an actor stays a moment before the next one takes its place.
  const stay = { crashed: 900, restarting: 700 }, queues = new Map();
  const play = e => {
    const s = rows.find(r => r.s?.id === e.session)?.s || (sel?.id === e.session ? sel : null), a = s?.actors.find(a => base(a.name) === base(e.name));
    if (!s) return;
    if (!a) return fresh(s);
    const key = s.id + base(e.name), q = queues.get(key) || [], state = e.state || 'running';
    if (!queues.has(key)) queues.set(key, q);
    if (state === 'running' && (e.restarts ?? 0) > a.restarts && !q.length && a.state === 'running') q.push({ ...e, state: 'crashed' }, { ...e, state: 'restarting' });
    q.push({ ...e, state });
    if (!q.busy) step(s, a, q);
  };
  const step = (s, a, q) => {
    const e = q.shift();
    if (!e || !root.isConnected) { q.busy = 0; return; }
    const reborn = e.state === 'running' && a.state !== 'running';
    a.state = e.state;
    if (e.last_failure) a.last_failure = e.last_failure;
    if (e.state === 'running' && e.restarts != null) { s.hurt += e.restarts - a.restarts; a.restarts = e.restarts; }
    if (e.state === 'running' && e.incarnation) a.name = base(a.name) + '#' + e.incarnation;
    if (reborn) { a.born = performance.now(); a.handled = 0; a.depth = 0; }
    redraw(rows.findIndex(r => r.actor === a)); redraw(rows.findIndex(r => r.s === s && !r.actor));
    const i = rows.findIndex(r => r.actor === a);
    if (i >= 0) { rows[i].name = short_(a.name); redraw(i); }
    if (s === sel) { drawMap(); drawLog(); }
    q.busy = setTimeout(() => step(s, a, q), stay[e.state] || 0);
  };
  const session = r => {
    const i = rows.findIndex(x => x.s?.id === r.id && !x.actor), s = rows[i]?.s;
    if (!s) return;
    Object.assign(s, { state: r.state, state_since: r.state_since, error: r.error, title: r.title || s.title, wait: r.wait });
    redraw(i);
  };
  const again = calm(async () => {
    if (box.matches(':hover, :focus') || queues.size && [...queues.values()].some(q => q.busy)) return;
    try { await fetched(); } catch { return; }
    const same = sel && groups().flatMap(g => g.sessions).find(s => s.id === sel.id);
    if (same) sel = same;
    draw(); drawMap();
  }, 3000);
  root.append(head('Tree', sub('who supervises whom, and what it waits for'), h('span', { class: 'grow' }), h('span', { class: 'keys dim' }, kbd('j', 'k'), ' move ', kbd('→', '←'), ' open, close ', kbd('↵'), ' session'), act('Refresh', 'r', async () => { await fetched(); draw(); }, '', true)),
    h('div', { class: 'cols tree-cols' }, h('div', { class: 'panel scroll' }, box, groups().length ? null : empty('No sessions', 'A supervision tree appears with the first session.')), h('aside', { class: 'side-col' }, side)));
  draw(); drawSide();
  let n = 0;
  return {
    title: 'Tree', stop: () => queues.forEach(q => clearTimeout(q.busy)), resync: again,
    tick(type, d) {
      if (type === 'actor') play(d);
      else if (type === 'session') d.rows.forEach(session);
      else if (type === 'event') { if (d.session === sel?.id) drawLog(); } else if (type === 'tick') {
        if (++n % 10 === 0) again();
        const t = now();
        rows.forEach((r, i) => { if (r.s && !r.actor && r.s.wait) { const e = $('#t' + i + ' .wait .age', box); if (e) set(e, dur(t - r.s.wait.from), r.s.wait.limit ? h('span', { class: 'dim' }, ' of ' + dur(r.s.wait.limit)) : null); } });
      }
    },
    key(e) {
      const k = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key], r = rows[at];
      if (k) pick(at + k); else if (e.key === 'Home') pick(0); else if (e.key === 'End' || e.key === 'G') pick(rows.length - 1); else if (e.key === 'ArrowRight' || e.key === 'l') toggle(true); else if (e.key === 'ArrowLeft' || e.key === 'h') { if (open.has(r?.key)) toggle(false); else { let i = at; while (i > 0 && rows[i].depth >= rows[at].depth) i--; pick(i); } } else if (e.key === 'Enter' && r) r.s ? go(address(r.s)) : r.more ? go('#/sessions?state=' + r.more) : toggle(); else return false;
      return true;
    },
  };
}
// drawing is the tree of one session as boxes and lines: itself, its actors, and theirs.
function drawing(s) {
  const kids = s.actors.slice(1).filter(a => !base(a.name).includes('/')), deep = s.actors.slice(1).filter(a => base(a.name).includes('/')), W = 376, bw = 116, bh = 30, gap = 44;
  const parent = a => kids.find(k => base(a.name).startsWith(base(k.name) + '/')), pos = new Map();
  kids.forEach((a, i) => pos.set(a, [130, i * gap + 6]));
  let low = 0;
  for (const a of deep) { low = Math.max(low, Math.max(0, kids.indexOf(parent(a)))); pos.set(a, [260, low++ * gap + 6]); }
  const H = Math.max(kids.length, low, 1) * gap;
  pos.set(s.actors[0], [0, Math.max(0, kids.length - 1) * gap / 2 + 6]);
  const g = h('svg', { class: 'map-svg', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'Actors of ' + name(s) + ': ' + s.actors.map(a => a.name + ' ' + a.state).join(', ') });
  const link = (a, b) => { const [x, y] = pos.get(a), [u, v] = pos.get(b), m = (x + bw + u) / 2; g.append(h('path', { class: 'ln is-' + b.state, d: `M${x + bw} ${y + bh / 2}C${m} ${y + bh / 2} ${m} ${v + bh / 2} ${u} ${v + bh / 2}` })); };
  kids.forEach(k => link(s.actors[0], k));
  deep.forEach(d => parent(d) && link(parent(d), d));
  for (const a of s.actors) {
    const [x, y] = pos.get(a), [full, n] = a.name.split('#'), role = actorRole(a), label = own(a, s) ? 'session' : short_(full);
    g.append(h('g', { class: 'nd r-' + role + ' is-' + a.state + (a.born && performance.now() - a.born < 1500 ? ' is-born' : ''), transform: `translate(${x} ${y})` }, h('g', { class: 'nd-in' }, h('rect', { class: 'halo', x: -3, y: -3, width: bw + 6, height: bh + 6, rx: 9 }), h('rect', { class: 'bx', width: bw, height: bh, rx: 6 }), h('use', { href: '#g-' + role, x: 9, y: 10, width: 10, height: 10 }), h('text', { x: 25, y: 19.5 }, label.length > 10 ? label.slice(0, 9) + '…' : label), h('text', { class: 'inc', x: bw - 8, y: 19.5, 'text-anchor': 'end' }, '#' + (n || 1)), h('title', {}, a.name + ': ' + a.state + '\nrestarts ' + a.restarts + (a.last_failure ? '\nlast failure: ' + a.last_failure : '')))));
  }
  return g;
}
