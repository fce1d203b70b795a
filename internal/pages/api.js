// The client of the Go side: requests, the stream of events, what is known so far. Pages read
// `world` and are told of each event; they never fetch on a timer of their own.

export const world = {
  link: 'start', rate: 0, steer: false, content: false, who: '', csrf: '', host: {}, hosts: [], at: '',
  states: {}, near: [], sessions: null, tree: null, history: null, events: [], jobs: [], approvals: null, decided: [],
  hooks: new Set(),
};
export class Refused extends Error {
  constructor(status, text, body) { super(text); this.status = status; this.body = body; }
}

// Time is the host's: ages are counted from its clock, never from that of the reader.
let t0 = Date.now(), p0 = performance.now();
export const now = () => world.link === 'lost' ? world.frozen : t0 + (performance.now() - p0);
function anchor(at) {
  const t = Date.parse(at);
  if (t && Math.abs(t - (t0 + performance.now() - p0)) > 1500 || world.link !== 'live') { t0 = t || Date.now(); p0 = performance.now(); }
}

// Requests. `host` is the host whose pages are open, when there are several.
let host = new URLSearchParams(location.search).get('host') || '', here = '';
export const hostID = () => host;
// at is the host of the page that is open, of a session or a job of another host.
export const at = id => { here = id || ''; };
export const onHost = (path, id) => id == null ? path : path + (path.includes('?') ? '&' : '?') + 'host=' + encodeURIComponent(id);
const from = path => (here || host) && !/[?&]host=/.test(path) ? onHost(path, here || host) : path;
async function send(path, init) {
  let res;
  try { res = await fetch(from(path), { cache: 'no-store', credentials: 'same-origin', ...init }); } catch (e) { throw new Refused(0, path + ': the host did not answer'); }
  if (res.status === 401 && path !== 'login') locked();
  const json = res.headers.get('content-type')?.includes('json');
  if (!res.ok) {
    const body = json ? await res.json().catch(() => null) : null, text = body?.error || (json ? '' : (await res.text()).trim().slice(0, 300));
    throw new Refused(res.status, text || path + ': ' + res.status, body);
  }
  return res.status === 204 || !json ? null : res.json();
}
export const get = (path, signal) => send(path, { signal });
export const post = (path, body = {}) => send(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'X-Troupe-CSRF': world.csrf } });
export const seg = encodeURIComponent;

// locked means that there is no login, or that it has ended.
function locked() { stop(); hand({ locked: true }); if (world.link !== 'locked') { world.link = 'locked'; emit('locked'); } }
export async function login(code) {
  await send('login', { method: 'POST', body: JSON.stringify({ code }), headers: { 'Content-Type': 'application/json' } });
  world.link = 'start';
}

// Forms. What Go leaves out is empty here, so that no page has to ask.
const ms = t => t ? Date.parse(t) : 0;
export const wait = (w, at) => w && { what: w.what || '', id: w.id || '', from: w.since ? ms(w.since) : ms(at) - (w.age_ms || 0), limit: w.limit_ms || 0, by: w.set_by || '', session: w.session, host: w.host, title: w.title };
export const zero = t => !t || t.startsWith('0001');
function row(r, at) {
  const all = Array.isArray(r.waits) ? r.waits : r.wait ? [r.wait] : [];
  return { ...r, title: r.title || '', labels: r.labels || {}, turns: r.turns ?? r.usage?.turns ?? r.turn, usd: r.usd ?? r.usage?.usd, wait: wait(all[0], r.at || at), more: (typeof r.waits === 'number' ? r.waits : all.length) - 1, restarts: r.restarts || 0, unread: r.unread || 0, error: r.error || '' };
}
// one is a whole session: of `api/tree?session=ID`, and in the groups of the tree.
export function one(s) {
  const t = { ...s, ...row(s), waits: (Array.isArray(s.waits) ? s.waits : []).map(w => wait(w, s.at)), actors: s.actors || [] };
  t.hurt = t.restarts + t.actors.reduce((n, a) => n + (a.restarts || 0), 0);
  return t;
}
export const name = s => s.title || s.task || s.id;

// What several pages read is fetched once, and kept by the stream.
export async function sessions() {
  if (!world.sessions) {
    const d = await get('api/sessions');
    world.sessions = new Map((d.sessions || []).map(r => [r.id, row(r, d.at)]));
  }
  return world.sessions;
}
// inView fetches the rows that a person sees anew: of many sessions the stream has each row only now and then.
const many = 2000;
let asking = false;
export async function inView(rows) {
  const ids = rows.filter(s => !s.host && s.state !== 'closed' && s.state !== 'failed').slice(0, 64).map(s => s.id);
  if (asking || document.hidden || !ids.length || !(world.sessions?.size > many)) return;
  asking = true;
  try {
    const d = await get('api/rows?' + ids.map(id => 'id=' + seg(id)).join('&'));
    for (const r of d.sessions) world.sessions?.set(r.id, row(r, d.at));
  } catch { /* the rows stay as they were */ } finally { asking = false; }
}
export async function tree() {
  const d = await get('api/tree'), t = d.tree || d, groups = d.groups || t.groups;
  t.breakers ||= []; t.accounts ||= [];
  d.account_hosts?.forEach((of, i) => { t.accounts[i].host = of; });
  t.groups = (groups || []).map(g => ({ ...g, sessions: (g.sessions || []).map(one) }));
  if (!groups && t.sessions) { const by = {}; for (const s of t.sessions) (by[s.state] ||= []).push(s); t.groups = Object.entries(by).map(([state, l]) => ({ state, count: l.length, sessions: l.map(one) })); }
  if (!Object.keys(world.states).length) world.states = Object.fromEntries(t.groups.map(g => [g.state, g.count]));
  return world.tree = t;
}
export const session = async (id, of) => one({ host: of || '', ...await get('api/tree?session=' + seg(id) + (of ? '&host=' + seg(of) : '')) });
// address is that of a session's page. A session of another host says of which one.
const of = host_ => host_ && host_ !== host ? '?host=' + seg(host_) : '';
export const address = s => '#/sessions/' + seg(s.id) + of(s.host);
export const jobAddress = (id, host_, task) => '#/jobs/' + seg(id) + (task ? '/' + seg(task) : '') + of(host_);
export async function past(window = '15m') {
  const d = await get('api/history?window=' + window), end = ms(d.at) || now(), step = d.step_ms || 10e3, out = {};
  for (const [k, l] of Object.entries(d.series || {})) out[k] = l.map((v, i) => [end - (l.length - 1 - i) * step, v]);
  if (window === '15m') { world.history = out; world.step = step; }
  return out;
}
export async function approvals() {
  if (!world.approvals) world.approvals = ((await get(onHost('api/approvals', host))).approvals || []).sort(older);
  return world.approvals;
}
const older = (a, b) => ms(a.at) - ms(b.at);
export async function jobs() { const d = await get(onHost('api/jobs', host)); return world.jobs = d.jobs || []; }

// The stream. It is read by fetch, not by EventSource: so a refusal can be told from a lost
// connection, the next try is known, and a stream that says nothing for 7 s counts as lost.
let reading = null, last = '', only = '', heard = 0, tries = 0, timer = 0, taken = 0, lastTick = 0;
export const emit = (type, data) => world.hooks.forEach(f => f(type, data));
function stop() { reading?.abort(); reading = null; clearTimeout(timer); }

// One tab of a browser reads the stream and hands it on to the others: a browser opens six
// connections to a host without TLS. A lock says which one; the next tab has it when that one is
// gone, and goes on where it was. Without locks, or when that tab says nothing, a tab reads alone.
const wire = navigator.locks && globalThis.BroadcastChannel ? new BroadcastChannel('troupe ' + location.pathname) : null;
const self_ = Math.random().toString(36).slice(2), tabs = new Map(); // of the tab that leads: the others, with their sessions
let mode = '', greeting = null;
const hand = m => { if (wire && mode === 'lead' && tabs.size) wire.postMessage(m); };
const ask = what => wire?.postMessage({ tab: self_, only, ...what });
const sessionsOf = () => [...new Set([only, ...(mode === 'lead' ? tabs.values() : [])])].filter(Boolean);
let asked = '';
// again reads anew, if other sessions are wanted than those that the stream has.
function again() { if (world.link === 'live' && asked !== sessionsOf().join()) { stop(); read().catch(() => {}); } }
function lead() {
  mode = 'lead';
  wire.postMessage({ who: true });
  if (world.link !== 'locked') { stop(); read().catch(() => {}); }
}
function alone() { mode = 'alone'; stop(); read().catch(() => {}); }
if (wire) {
  wire.onmessage = ({ data: m }) => {
    if (mode === 'lead') {
      if (!m.tab) return;
      if (m.gone) tabs.delete(m.tab); else tabs.set(m.tab, m.only);
      if (m.join && greeting && world.link === 'live') wire.postMessage({ to: m.tab, frame: ['hello', { ...greeting, at: new Date(now()).toISOString(), ...counted }, last] });
      if (m.join && world.link === 'locked' || m.retry) { stop(); read().catch(() => {}); } else again();
    } else if (mode === 'follow' && !m.tab && (!m.to || m.to === self_)) {
      if (m.who) return ask({});
      if (m.locked) return locked();
      if (m.lost != null) return lost(m.lost, m.pause);
      if (m.frame[0] !== 'hello' && world.link !== 'live') return;
      heard = performance.now();
      taken++;
      if (m.frame[2]) last = m.frame[2];
      try { apply(m.frame[0], m.frame[1]); } catch (e) { console.error(m.frame[0], e); }
    }
  };
  addEventListener('pagehide', () => ask({ gone: true }));
}

// watch asks the stream for the messages of one session, too.
export function watch(id = '') {
  if (only === id) return;
  only = id;
  if (mode === 'follow') ask({}); else again();
}
export function open() {
  stop();
  last = '';
  if (!wire || mode === 'lead' || mode === 'alone') return read();
  heard = performance.now();
  if (!mode) navigator.locks.request('troupe ' + location.pathname, () => { lead(); return new Promise(() => {}); });
  mode = 'follow';
  ask({ join: true });
  timer = setTimeout(() => { if (mode === 'follow' && world.link !== 'live') alone(); }, 2000);
}
export function retry() { stop(); if (mode === 'follow') return ask({ join: true, retry: true }); return read().catch(() => {}); }

async function read() {
  const ctl = reading = new AbortController(), of = sessionsOf();
  heard = performance.now();
  asked = of.join();
  try {
    const res = await fetch(from('events' + (of.length ? '?' + of.map(id => 'session=' + seg(id)).join('&') : '')), { cache: 'no-store', credentials: 'same-origin', signal: ctl.signal, headers: { Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) } });
    if (res.status === 401) return locked();
    if (!res.ok) throw new Refused(res.status, 'events: ' + res.status + ' ' + (await res.text()).trim().slice(0, 300));
    const lines = res.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; ;) {
      const { value, done } = await lines.read();
      if (done || ctl !== reading) break;
      heard = performance.now();
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const p of parts) take(p);
    }
    throw new Refused(0, 'events: the stream has ended');
  } catch (e) {
    if (ctl !== reading) return; // a later one has taken its place
    lose(e);
  }
}
function take(block) {
  let type = 'message', data = '', id = '';
  for (const l of block.split('\n')) {
    if (l.startsWith('data:')) data += (data && '\n') + l.slice(l[5] === ' ' ? 6 : 5);
    else if (l.startsWith('event:')) type = l.slice(6).trim();
    else if (l.startsWith('id:')) id = l.slice(3).trim();
  }
  if (!data) return; // a comment keeps the connection open
  if (id) last = id;
  taken++;
  try { const d = JSON.parse(data); if (type === 'hello') greeting = d; apply(type, d); hand({ frame: [type, d, id] }); if (type === 'hello') again(); } catch (e) { console.error(type, e); }
}
function lost(why, pause) {
  if (world.link === 'live' || world.link === 'start') { world.frozen = now(); world.link = 'lost'; }
  world.why = why;
  world.retry = performance.now() + pause;
  emit('link');
}
function lose(why) {
  const pause = Math.min(30e3, 1000 * 2 ** Math.min(tries++, 5));
  stop();
  timer = setTimeout(retry, pause);
  hand({ lost: why?.message || '', pause });
  lost(why?.message || '', pause);
}
setInterval(() => {
  const silent = performance.now() - heard;
  if (mode === 'follow' && world.link === 'live' && silent > 9000) alone();
  else if (reading && silent > 7000) { const r = reading; reading = null; r.abort(); lose(new Error('the host has said nothing for 7 s')); }
}, 1000);

// counts takes the states of sessions: of all hosts, or of the one whose pages are open. Tabs of one browser may
// show different ones.
let counted = {};
function counts(d) {
  if (!d.states) return;
  counted = { states: d.states, states_of: d.states_of };
  world.states = host ? d.states_of?.[host] || {} : d.states;
}
// jobOf is a job after a frame about it. What Go leaves out there is empty.
export const jobOf = (j, d) => ({ ...j, paused: false, parked: null, stop: null, limit: 0, ...d });
const on = {
  hello(d) {
    anchor(d.at);
    const again = world.link === 'lost';
    tries = 0;
    Object.assign(world, { link: 'live', steer: !!d.steer, content: !!d.content, who: d.who || '', csrf: d.csrf || world.csrf, at: d.at, hosts: d.hosts || world.hosts });
    world.host = typeof d.host === 'string' ? { name: d.host } : d.host || {};
    counts(d);
    if (again) emit('link');
  },
  tick(d) {
    anchor(d.at);
    counts(d);
    if (d.waits) world.near = d.waits.filter(w => !host || w.host === host).slice(0, 6).map(w => wait(w, d.at));
    const t = performance.now();
    world.rate = d.rates?.events ?? (lastTick ? taken * 1000 / (t - lastTick) : 0);
    lastTick = t; taken = 0;
  },
  session(d) { d.rows = (d.sessions || [d]).filter(r => !host || r.host === host).map(r => row(r, d.at)); if (world.sessions) for (const r of d.rows) world.sessions.set(r.id, r); },
  gone(d) { for (const id of d.ids || []) world.sessions?.delete(id); },
  event(d) { if (host && d.host !== host) return; world.events.unshift(d); if (world.events.length > 500) world.events.length = 500; },
  job(d) { if (host && d.host_id !== host) return; const i = world.jobs.findIndex(j => j.job === d.job && (j.host_id || '') === (d.host_id || '')); if (i < 0) world.jobs.push(d); else world.jobs[i] = jobOf(world.jobs[i], d); },
  hosts(d) { world.hosts = d.hosts || []; },
  approval(d) { const l = world.approvals; if (l && (!host || d.host === host) && !l.some(same(d))) { l.push(d); l.sort(older); } },
  decided(d) { settled(d, d); },
  resync() { world.sessions = null; world.approvals = null; },
};
// settled moves a call to those that are decided. The first answer is the one that is shown.
const same = a => b => a.id === b.id && (a.host || '') === (b.host || '');
export function settled(a, d) {
  const k = (world.approvals || []).findIndex(same(a));
  if (k < 0) return;
  const [call] = world.approvals.splice(k, 1);
  world.decided.unshift({ call, ok: !!d.allow, by: d.who || 'somebody', at: ms(d.at) || now(), reason: d.reason || '', gone: d.gone || d.allow == null });
  if (world.decided.length > 20) world.decided.length = 20;
}
function apply(type, d) { on[type]?.(d); emit(type, d); }

// started resolves with the first hello, and rejects if the host refuses the stream.
export const started = () => new Promise((ok, no) => {
  const f = type => { if (type === 'hello' || type === 'locked') { world.hooks.delete(f); ok(type); } else if (type === 'link' && world.link === 'lost') { world.hooks.delete(f); no(new Error(world.why)); } };
  world.hooks.add(f);
  open();
});
