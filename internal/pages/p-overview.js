// The overview: what needs a person, eight numbers, states, nearest limits, warnings.
import { h, set, morph, say, num, short, usd, bytes, dur, clock, state, glyph, roles, order, waitLine, meter, empty, panel, spaced } from './ui.js';
import { line, cursor } from './charts.js';
import { world, now, tree, past, approvals, zero, address } from './api.js';
import { live, head, total, eventLine, calm } from './parts.js';

const GiB = 2 ** 30;
const sum = unit => unit.startsWith('in');
const tiles = [
  ['running', 'Running sessions', 'work', short, ''], ['rss', 'Memory of agents', 'rest', x => bytes(Math.round(x * GiB)), ''], ['turns', 'Turns', 'work', short, '/ min'], ['tokens', 'Tokens', 'work', short, '/ min'],
  ['usd', 'Cost', 'work', usd, '/ h'], ['gates', 'Wait for a person', 'person', short, ''], ['restarts', 'Restarts', 'recover', short, 'in 15 min'], ['refused', 'Refused starts', 'bad', short, 'in 15 min'],
];
const axis = { usd: x => '$' + short(x), rss: x => x ? short(x) + 'G' : '0' };
const spans = [['15m', '15 min'], ['3h', '3 h'], ['24h', '24 h']];
const scaled = (k, pts) => k === 'rss' ? pts.map(([t, v]) => [t, v == null ? v : v / GiB]) : pts;
const last = pts => pts.findLast(p => p[1] != null)?.[1];
const whole = k => ['running', 'gates', 'restarts', 'refused'].includes(k);

export const load = () => Promise.all([tree(), past().catch(() => null), approvals().catch(() => [])]);

// larger shows one number over hours, each in as many points as its ring has.
function larger([k, title, role, fmt, unit]) {
  const bars = sum(unit), c = line({ role, bars, whole: whole(k), yfmt: axis[k] || fmt, cls: 'c-large', left: 52 }), said = h('p', { class: 'dim n', role: 'status' });
  const pick = async (w, b) => {
    row.querySelectorAll('button').forEach(x => x.setAttribute('aria-pressed', x === b));
    try {
      const pts = scaled(k, (await past(w))[k] || []), most = Math.max(0, ...pts.map(p => p[1] ?? 0));
      if (pts.length) c.show({ points: pts, from: pts[0][0], to: pts.at(-1)[0], label: title + ', last ' + b.textContent });
      set(said, 'highest ' + fmt(most) + (bars ? '' : ' ' + unit) + ', ' + num(pts.filter(p => p[1] != null).length) + ' of ' + num(pts.length) + ' values measured');
    } catch (e) { set(said, e.message); }
  };
  const row = h('div', { class: 'chips', role: 'group', 'aria-label': 'Time' }, spans.map(([w, n]) => h('button', { class: 'chip', type: 'button', on: { click: e => pick(w, e.currentTarget) } }, n)));
  const d = h('dialog', { class: 'help', 'aria-label': title }, h('header', {}, h('h2', {}, title, unit && !bars ? ' ' + unit : ''), h('button', { class: 'btn', type: 'button', on: { click: () => d.close() } }, 'Close')), row, c.el, said);
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  pick('15m', row.firstChild);
}

export default function overview(root, p, go) {
  const charts = [], attention = h('ul', { class: 'attn' }), mix = h('div', { class: 'mix' }), waits = h('div', { class: 'stack rows' }), evs = h('ol', { class: 'events' });
  const points = k => scaled(k, world.history?.[k] || []);
  const grid = h('div', { class: 'tiles' }, tiles.map(tile => {
    const [k, title, role, fmt, unit] = tile, bars = sum(unit), v = h('span', { class: 'big n' }), u = h('span', { class: 'unit' }, unit);
    const value = () => bars ? points(k).reduce((a, p) => a + (p[1] || 0), 0) : k === 'running' && world.states.running != null ? world.states.running : k === 'gates' && world.approvals ? Math.max(world.approvals.length, last(points(k)) || 0) : last(points(k));
    const show = x => x == null ? '·' : fmt(x);
    const c = line({ role, bars, whole: whole(k), yfmt: axis[k] || fmt, read: (x, t) => { say(v, show(t == null ? value() : x)); say(u, t == null ? unit : (bars ? '' : unit + ' ') + 'at ' + clock(t)); } });
    charts.push(() => {
      const pts = points(k), end = pts.at(-1)?.[0] ?? now();
      c.show({ points: pts, from: pts[0]?.[0] ?? end - 900e3, to: end, label: `${title}, last 15 minutes: now ${show(value())} ${unit}` + (pts.length ? `, highest ${fmt(Math.max(0, ...pts.map(p => p[1] ?? 0)))}` : '') });
      if (cursor.t == null) say(v, show(value()));
    });
    return h('section', { class: 'tile', 'aria-label': title }, h('h2', {}, h('button', { class: 'plain', type: 'button', title: 'the last 24 hours', on: { click: () => larger(tile) } }, title)), h('div', { class: 'val' }, v, ' ', u), c.el);
  }));
  const drawAttention = () => {
    const t = world.tree, ap = world.approvals || [], items = [];
    if (ap.length) items.push(['person', '#/approvals', `${ap.length} ${ap.length === 1 ? 'call waits' : 'calls wait'} for a person`, 'oldest ' + dur(now() - Math.min(...ap.map(a => Date.parse(a.at))))]);
    for (const b of t.breakers) if (b.state !== 'closed') items.push([b.state === 'open' ? 'bad' : 'start', '#/accounts', 'Breaker ' + spaced(b.state), b.name.split('/').pop() + ` · ${b.held} ${b.held === 1 ? 'start waits' : 'starts wait'}` + (zero(b.next_probe) ? '' : ', probe in ' + dur(Date.parse(b.next_probe) - now()))]);
    for (const a of t.accounts) { if (!zero(a.parked_until) && Date.parse(a.parked_until) > now()) items.push(['limit', '#/accounts', 'Account parked', a.label + ' · for ' + dur(Date.parse(a.parked_until) - now())]); if (a.starved) items.push(['held', '#/accounts', 'Account starved', a.label + ' · too little processor time']); }
    morph(attention, items.length ? items.slice(0, 8).map(([r, href, a, b]) => h('li', {}, h('a', { href, class: 'r-' + r }, glyph(r), h('span', { class: 'a' }, a), h('span', { class: 'b n' }, b)))) : h('li', { class: 'calm' }, h('span', { class: 'r-good' }, glyph('good'), h('span', { class: 'a' }, 'Nothing needs you.'), h('span', { class: 'b' }, 'No call waits, no breaker is open, no account is parked.'))));
  };
  const draw = () => {
    drawAttention();
    const c = world.states, n = total();
    morph(mix, n ? order.filter(s => c[s]).map(s => h('a', { href: '#/sessions?state=' + s, class: 'mixrow', title: num(c[s]) + ' of ' + num(n) }, state(s), h('span', { class: 'n' }, num(c[s])), meter(Math.max(.004, c[s] / n), 'm-' + roles[s]))) : empty('No sessions', 'This host runs no session yet. They appear here as they start.'));
    const t = now(), near = world.near.filter(w => w.limit).map(w => ({ w, part: (t - w.from) / w.limit })).sort((a, b) => b.part - a.part).slice(0, 6);
    morph(waits, near.length ? near.map(({ w }) => h('a', { href: address({ id: w.session, host: w.host }), class: 'wrow' }, h('span', { class: 'nm' }, w.title || w.session), waitLine(w, t))) : h('p', { class: 'dim none' }, 'No session waits for something that has a limit.'));
  };
  const drawEvents = () => set(evs, world.events.some(hard) ? world.events.filter(hard).slice(0, 9).map(eventLine) : h('li', { class: 'dim none' }, 'No warnings since the window was opened.'));
  const hard = e => e.level === 'WARN' || e.level === 'ERROR';
  const fetchTree = calm(() => tree().then(draw, () => {}), 2000), fetchPast = calm(() => past().then(() => charts.forEach(f => f()), () => {}), 5000), soon = calm(drawEvents);
  root.append(head('Overview', h('span', { class: 'dim n' }, world.host.name || world.host.program || '', world.host.pid ? ' · pid ' + world.host.pid : '', ' · ', live(() => { const n = total(); return num(n) + (n === 1 ? ' session' : ' sessions'); }))), attention, grid,
    h('div', { class: 'three' }, panel('Sessions by state', h('a', { href: '#/sessions' }, 'all'), mix), panel('Nearest to their limit', 'age of limit', waits), panel('Warnings and errors', null, evs)));
  draw(); drawEvents(); charts.forEach(f => f());
  let n = 0;
  return {
    title: 'Overview',
    resync() { fetchTree(); fetchPast(); drawEvents(); },
    tick(type, d) {
      if (type === 'tick') { draw(); if (++n % 10 === 0) fetchPast(); }
      if (type === 'event') { soon(); if (/Breaker|Account|Park/.test(d.type)) fetchTree(); }
      if (type === 'approval' || type === 'decided' || type === 'link') drawAttention();
    },
  };
}
