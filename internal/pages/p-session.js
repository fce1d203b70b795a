// One session: timeline, transcript, waits, actors, cost, events, options.
import { h, set, morph, put, num, bytes, dur, clock, time, exact, state, glyph, waitLine, empty, panel, spaced } from './ui.js';
import { cursor } from './charts.js';
import { lanes } from './charts-life.js';
import { world, now, session as one, get, post, seg, watch, hostID, name, jobAddress } from './api.js';
import { live, act, toast, actorState, eventLine, calm, kept } from './parts.js';
import { asker } from './steer.js';
import { Transcript, cost } from './transcript.js';

// keyOf is the name of a session in the stream of messages.
const keyOf = p => { const of = p.host || hostID(); return of ? 'host:' + of + '/' + p.id : p.id; };

// load fetches the session; what else the page shows may be missing, and is then not drawn.
export async function load(p) {
  const at = 'api/sessions/' + seg(p.id), none = e => { if (e.status === 401) throw e; return null; };
  watch(keyOf(p));
  try { const [s, tx, life, options] = await Promise.all([one(p.id, p.host), world.content ? get(at + '/messages?limit=200').catch(e => e.status === 403 ? { refused: e.message } : none(e)) : null, get(at + '/timeline').catch(none), get(at + '/options').catch(none)]); return { s, tx, life, options }; } catch (e) { if (e.status === 404) return null; throw e; }
}

function optionTable(o) {
  const row = (k, v) => h('tr', {}, h('th', { scope: 'row' }, k), h('td', {}, typeof v === 'string' && v.startsWith('••••') ? h('span', { class: 'masked', title: 'A secret. The value never leaves the process.' }, v) : Array.isArray(v) ? v.map(x => h('code', { class: 'rule' }, typeof x === 'object' ? JSON.stringify(x) : x)) : h('code', {}, String(v))));
  const flat = (x, p = '') => Object.entries(x).flatMap(([k, v]) => v && typeof v === 'object' && !Array.isArray(v) ? flat(v, p + k + '.') : [[p + k, v]]);
  return h('table', { class: 'kv opts' }, h('tbody', {}, flat(o).map(([k, v]) => row(k, v))));
}
const fact = (k, v, title) => h('div', {}, h('dt', {}, k), h('dd', { title }, v));
const roleOf = { process: 'over', turns: 'work', tools: 'rest', waits: 'person' }, cutOf = { death: 'recover', restart: 'recover', crash: 'bad', steered: 'work' };

// timeline draws the life of a session; of a long one it begins with the last hour.
function timeline(life, tx) {
  const chart = lanes({ cls: 'c-lanes' }), spans = [['all', Infinity], ['1 h', 36e5], ['10 m', 6e5]];
  let span = Infinity, end = null;
  const l = { from: Date.parse(life.from), ...timelineOf(life) };
  const all = () => now() - l.from;
  if (l.lanes.some(x => x.bars.length > 300)) span = all() > 36e5 ? 36e5 : 6e5;
  const draw = () => {
    const t = now(), to = Math.max(end ?? t, l.from + 1000), from = Math.max(l.from, to - span), n = x => x.bars.length;
    const turns = l.lanes.find(x => x.name === 'turns');
    chart.show({ from, to, lanes: l.lanes.filter(n).map(x => ({ ...x, bars: x.bars.map(b => b[1] ? b : [b[0], t, b[2]]) })), marks: l.marks, label: 'Timeline from ' + clock(from) + ' to ' + clock(to) + ': ' + (turns ? n(turns) + ' turns' : 'no turn') + l.marks.slice(-5).map(m => ', ' + m.why + ' at ' + clock(m.at)).join('') });
    bar.hidden = all() < 9e5;
    bar.querySelectorAll('[data-span]').forEach(b => b.setAttribute('aria-pressed', +b.dataset.span === span));
  };
  const move = by => { if (!Number.isFinite(span)) return; end = Math.min(now(), Math.max(l.from + span, (end ?? now()) + by * span / 2)); if (now() - end < 1000) end = null; draw(); };
  const bar = h('div', { class: 'spans', role: 'group', 'aria-label': 'Time that is drawn' }, h('button', { class: 'chip', type: 'button', 'aria-label': 'Earlier', on: { click: () => move(-1) } }, '‹'), spans.map(([n, ms]) => h('button', { class: 'chip', type: 'button', 'data-span': ms, on: { click: () => { span = ms; end = null; draw(); } } }, n)), h('button', { class: 'chip', type: 'button', 'aria-label': 'Later', on: { click: () => move(1) } }, '›'));
  chart.el.addEventListener('click', () => { if (cursor.t) tx.seek(cursor.t); });
  chart.el.addEventListener('keydown', e => { if (e.key === 'Enter' && cursor.t) { e.preventDefault(); e.stopPropagation(); tx.seek(cursor.t); } });
  draw();
  return { el: h('section', { class: 'panel flat', 'aria-label': 'Timeline' }, bar, chart.el), draw, set(x) { Object.assign(l, timelineOf(x)); draw(); } };
}
// A timeline is lanes, or one list for each kind, as runtime.Timeline has them.
const kinds = [['processes', 'process'], ['turns', 'turns'], ['tools', 'tools'], ['waits', 'waits']];
const lanesOf = life => life.lanes || kinds.filter(([k]) => life[k]?.length).map(([k, n]) => ({ name: n, bars: life[k] }));
const timelineOf = life => ({ lanes: lanesOf(life).map(x => ({ name: x.name, role: roleOf[x.name] || 'rest', bars: x.bars.map(b => [Date.parse(b.from), b.to ? Date.parse(b.to) : 0, b.text || b.name || '']) })), marks: (life.marks || []).map(m => ({ at: Date.parse(m.at), why: (m.actor ? m.actor + ': ' : '') + m.why, role: cutOf[m.kind] || 'bad' })) });

export default function session(root, p, go, data) {
  if (!data) { root.append(h('h1', {}, 'Session'), empty('There is no session ' + p.id, 'It has ended and is no longer kept, or it belongs to another host. A job keeps its transcript.', h('a', { class: 'btn', href: '#/sessions' }, 'All sessions'))); return { stop: () => watch() }; }
  const s = data.s, key = keyOf(p), at = 'api/sessions/' + seg(s.id), tx = new Transcript('Transcript of ' + s.id, { now, live, earlier: (seq, q) => get(at + '/messages?limit=200&before=' + seg(seq) + (q ? '&find=' + seg(q) : '')) });
  const st = h('span', {}), waits = h('div', { class: 'stack' }), acts = h('div', { class: 'stack tight' }), evs = h('ol', { class: 'events' }), facts = h('dl', { class: 'facts' }), money = h('div', {});
  const drawHead = () => {
    const t = now();
    morph(st, state(s.state));
    morph(waits, s.waits.length ? s.waits.map(w => waitLine(w, t)) : h('p', { class: 'dim none' }, 'Nothing. The session is ' + spaced(s.state) + '.'));
    const turns = s.turns ?? s.turn ?? s.usage?.turns;
    morph(facts, fact('session', h('code', {}, s.id)), fact('agent', s.backend + (s.pid ? ' · pid ' + s.pid : ' · no process')), fact('opened', time(s.opened)), turns == null ? null : fact('turns', h('span', { class: 'n' }, num(turns))), s.rss ? fact('memory', h('span', { class: 'n' }, bytes(s.rss))) : null, fact('restarts', h('span', { class: 'n' }, num(s.hurt)), s.restarts + ' of the agent, the others of its actors'), fact('unread', h('span', { class: 'n' }, num(s.unread) + (s.unread_limit ? ' / ' + num(s.unread_limit) : '')), s.unread_bytes == null ? null : bytes(s.unread_bytes) + ' of ' + bytes(s.unread_bytes_limit)), s.dir ? fact('directory', h('code', {}, s.dir), s.dir) : null, Object.entries(s.labels).slice(0, 4).map(([k, v]) => fact(k, v)));
    if (s.usage || s.usd != null) morph(money, cost(s.usage || { usd: s.usd }, data.options?.maxBudgetUsd));
  };
  const drawActs = () => morph(acts, s.actors.length ? s.actors.map(a => h('div', { class: 'act', title: a.last_failure || null }, actorState(a), h('code', {}, a.name), h('span', { class: 'n dim', title: 'restarts' }, a.restarts ? '↻ ' + a.restarts : ''), h('span', { class: 'n dim', title: 'messages in its mailbox' }, a.depth ? '✉ ' + a.depth : ''))) : h('p', { class: 'dim none' }, s.partial ? 'The session did not answer in time.' : 'No actor: the session has no process.'));
  const drawEvs = () => { const mine = world.events.filter(e => e.session === s.id && (e.host || '') === (s.host || '')).slice(0, 30); set(evs, mine.length ? mine.map(eventLine) : h('li', { class: 'dim none' }, 'No events since the window was opened.')); };
  const bar = data.life && lanesOf(data.life).some(l => l.bars?.length) ? timeline(data.life, tx) : null;
  const ask = (what, path) => async () => { await post(at + '/' + path); toast('Asked: ' + what + '. It counts when the event comes.'); };
  const close = () => ({ title: 'Close ' + name(s), text: 'The agent ends, and what it does now is given up. The session cannot go on after that.', button: 'Close the session', danger: true, send: () => post(at + '/close'), done: () => toast('Asked: close.') });
  root.classList.add('fill');
  put(root, [
    h('header', { class: 'page' }, h('div', { class: 'crumbs' }, h('a', { href: kept.back || '#/sessions' }, 'Sessions'), s.job ? [' / ', h('a', { href: jobAddress(s.job, s.host) }, s.job)] : null),
      h('div', { class: 'title' }, h('h1', {}, name(s)), st, h('span', { class: 'n dim', title: exact(s.state_since) }, 'for ', live(() => dur(now() - Date.parse(s.state_since)))), h('span', { class: 'grow' }), act('Interrupt turn', 'i', ask('interrupt the turn', 'interrupt')), asker('Close…', '', close, 'danger')),
      facts),
    bar?.el,
    h('div', { class: 'cols' }, tx.el, h('aside', { class: 'side-col' },
      panel('Waits for', null, waits), panel('Actors', h('a', { href: '#/tree?s=' + seg(s.id) }, 'tree'), acts), s.usage || s.usd != null ? panel('Cost', null, money) : null,
      panel('Events', null, evs), data.options ? panel('Options', 'as resolved', optionTable(data.options)) : null))]);
  drawHead(); drawActs(); drawEvs();
  const fill = d => {
    if (!world.content) return set(tx.box, empty('Content is not shown', 'This window was opened without Access.Content: no prompt, answer or transcript leaves the process.'));
    if (d?.refused) return set(tx.box, empty('Content is not shown', d.refused));
    if (!d) return set(tx.box, empty('No transcript', 'The host keeps none of this session.'));
    if (!d.messages?.length && !d.place) return set(tx.box, tx.none = empty('No message yet', s.state === 'passivated' ? 'The session sleeps since ' + clock(new Date(s.state_since)) + '. It wakes with the next message.' : 'Messages appear here as they come.'));
    tx.show(d.messages, d.more, d.place);
    if (s.state === 'failed') tx.row('cutline r-bad', s.state_since, glyph('bad'), h('span', {}, s.error || 'The session has failed.'));
    tx.pin();
  };
  fill(data.tx);
  const fresh = calm(async () => { try { Object.assign(s, await one(s.id, p.host)); drawHead(); drawActs(); } catch { /* it has ended: the page stays as it was */ } }, 2000);
  const life = calm(async () => { if (bar) try { bar.set(await get(at + '/timeline')); } catch { /* as above */ } }, 4000);
  const mine = m => { if (tx.none) { tx.none.remove(); tx.none = null; } return m; };
  // caught fetches what was said before the stream had the session.
  const caught = async () => { if (!world.content) return; const d = await get(at + '/messages?limit=200').catch(() => null); if (d && (tx.none || !tx.merge(d.messages || []))) { tx.clear(); tx.none = null; fill(d); } };
  let n = 0;
  return {
    title: name(s), search: tx.search,
    resync() { fresh(); life(); caught(); },
    tick(type, d) {
      if (type === 'tick') { drawHead(); if (bar && ++n % 2 === 0) bar.draw(); if (n % 10 === 0) fresh(); }
      if (type === 'event' && d.session === s.id) { drawEvs(); fresh(); life(); }
      if (type === 'session') { const r = d.rows.find(x => x.id === s.id); if (r) { const was = s.state; Object.assign(s, r, { waits: r.wait ? [r.wait, ...s.waits.slice(1)] : [], actors: s.actors }); drawHead(); fresh(); if (was !== s.state) life(); } }
      if (type === 'gone' && d.ids?.includes(s.id)) { s.state = 'closed'; s.waits = []; s.pid = 0; drawHead(); }
      if (type === 'actor' && d.session === s.id) { const a = s.actors.find(x => x.name.split('#')[0] === d.name.split('#')[0]); if (a) { Object.assign(a, { state: d.state, last_failure: d.last_failure || a.last_failure }); if (d.state === 'running' && d.restarts != null) a.restarts = d.restarts; if (d.state === 'running' && d.incarnation) a.name = a.name.split('#')[0] + '#' + d.incarnation; } drawActs(); fresh(); }
      if (type === 'watching' && d.session === key) caught();
      if (type === 'message' && d.session === key) tx.add(mine(d));
      if (type === 'delta' && d.session === key) { mine(); tx.delta(d.seq, d.text); }
    },
    enter: e => document.activeElement === tx.search && (tx.next(e.shiftKey ? -1 : 1), true),
    key: e => tx.key(e) || e.key === 'Escape' && (go(kept.back || '#/sessions'), true),
    stop: () => { watch(); tx.clear(); },
  };
}
