// The shell: navigation, keys, the connection, the login, the help. One route is one page.
import { h, set, say, $, glyph, icon, kbd, num, clock, exact, plain } from './ui.js';
import { world, started, retry, login, approvals, jobs, hostID, get, post, at } from './api.js';
import { act, toast, tickLives, total } from './parts.js';
import { cursor } from './charts.js';

const nav = [['overview', 'Overview', 'o'], ['tree', 'Tree', 't'], ['sessions', 'Sessions', 's'], ['jobs', 'Jobs', 'j', 'job'], ['approvals', 'Approvals', 'a'], ['accounts', 'Accounts', 'c']];
// A page is loaded when it is first opened.
const make = { overview: () => import('./p-overview.js'), tree: () => import('./p-tree.js'), sessions: () => import('./p-sessions.js'), session: () => import('./p-session.js'), jobs: () => import('./p-jobs.js'), job: () => import('./p-job.js'), approvals: () => import('./p-approvals.js'), accounts: () => import('./p-accounts.js') };
const app = $('#app'), root = h('main', { id: 'main', tabindex: -1 }), badges = {};
const link = h('button', { class: 'link', type: 'button', on: { click: () => world.link === 'lost' && retry() } }), theme = h('button', { class: 'ghost', type: 'button', title: 'Theme: follows the system, light, dark', on: { click: turn } });
let page = {}, chord = -1e9, nth = 0, locked = false;

const go = to => { location.hash = to; };
function turn() {
  const all = ['', 'light', 'dark'], t = all[(all.indexOf(document.documentElement.dataset.theme || '') + 1) % 3];
  dress(t);
  try { localStorage.setItem('troupe.theme', t); } catch { /* private mode */ }
}
function dress(t) { if (t) document.documentElement.dataset.theme = t; else delete document.documentElement.dataset.theme; set(theme, t || 'auto'); theme.setAttribute('aria-label', 'Theme: ' + (t || 'auto')); }

function hosts() {
  const name = world.host.name || world.host.program || '';
  if (world.hosts.length < 2) return h('span', { class: 'dim' }, name);
  const pick = h('select', { class: 'host', 'aria-label': 'Host', on: { change: () => { const u = new URL(location); pick.value ? u.searchParams.set('host', pick.value) : u.searchParams.delete('host'); location.assign(u); } } }, h('option', { value: '' }, 'all hosts'), world.hosts.map(x => h('option', { value: x.id }, (x.name || x.id) + (x.up === false ? ' · gone' : ''))));
  pick.value = hostID();
  const of = world.hosts.find(x => x.id === hostID());
  return of?.drain ? [pick, act('Drain…', '', async () => (await import('./steer.js')).ask(drain(of)), 'danger')] : pick;
}
// drain ends a worker, as SIGTERM does.
const drain = of => ({ title: 'Drain ' + (of.name || of.id), text: 'This worker starts nothing more, and ends when what it runs is over. Other workers take the rest.', button: 'Drain it', danger: true, send: () => post('api/host/drain'), done: () => toast('Asked to drain.') });
// pickers draws the choice of a host, but not under the hand of a reader.
const picker = h('span', { class: 'hosts', on: { focusout: () => setTimeout(pickers) } });
function pickers() { if (!picker.contains(document.activeElement)) set(picker, hosts()); }
function shell() {
  const access = world.steer ? h('span', { title: 'Access.Steer: each action is an event with your name' }, 'can steer' + (world.who ? ' as ' + world.who : '')) : h('span', { class: 'tagl r-person', title: 'This window was opened without Access.Steer' }, glyph('person'), 'read-only');
  const side = h('nav', { class: 'nav', 'aria-label': 'Pages' }, h('div', { class: 'brand' }, h('a', { href: '#/overview' }, icon('tree'), h('b', {}, 'Troupe')), picker),
    h('ul', {}, nav.map(([k, name, key, ic]) => h('li', {}, h('a', { href: '#/' + k, 'data-nav': k }, icon(ic || k), h('span', { class: 'lbl' }, name), badges[k] = h('span', { class: 'badge n' }), h('kbd', { class: 'hint' }, 'g ' + key))))),
    h('div', { class: 'navfoot' }, link, h('div', { class: 'access' }, access), h('div', { class: 'row' }, theme, h('button', { class: 'ghost', type: 'button', on: { click: help } }, 'keys ', kbd('?')))));
  set(app, side, h('div', { class: 'lost', role: 'alert' }), root, h('div', { id: 'toast', class: 'toast', role: 'status' }), dialog);
  pickers(); connection(); badge();
}
function connection() {
  const lost = world.link === 'lost', bar = $('.lost');
  document.documentElement.classList.toggle('is-lost', lost);
  if (!bar) return;
  if (!lost) {
    if (link.dataset.on !== 'live') { link.dataset.on = 'live'; set(link, h('span', { class: 'pulse' }), h('span', {}, 'live'), link.n = h('span', { class: 'n dim' })); link.title = 'Connected.'; set(bar); }
    return say(link.n, num(world.rate) + ' ev/s');
  }
  const s = Math.max(0, Math.ceil((world.retry - performance.now()) / 1000)), next = s ? 'Next try in ' + s + 's' : 'Trying…';
  if (link.dataset.on !== 'lost') {
    link.dataset.on = 'lost';
    link.title = world.why;
    set(link, glyph('bad'), h('span', {}, 'connection lost'));
    set(bar, glyph('bad'), h('b', {}, 'Connection lost.'), h('span', {}, 'This is the state of ', h('time', { class: 'n', title: exact(world.frozen) }, clock(world.frozen)), '. Nothing can be sent.'), bar.n = h('span', { class: 'n' }), h('button', { class: 'btn', type: 'button', on: { click: retry } }, 'Try now'));
  }
  say(bar.n, next);
}
function badge() {
  if (!badges.sessions) return;
  const n = world.approvals?.length || 0, js = world.jobs.filter(j => j.live !== false);
  say(badges.sessions, num(total())); say(badges.approvals, n ? String(n) : ''); badges.approvals.classList.toggle('hot', n > 0);
  const all = js.reduce((x, j) => x + (j.total || 0), 0), over = js.reduce((x, j) => x + (j.states?.over || 0), 0);
  say(badges.jobs, all ? Math.floor(100 * over / all) + '%' : '');
  document.title = (n ? '(' + n + ') ' : '') + (page.title ? plain(page.title) + ' · ' : '') + 'Troupe';
}

const dialog = h('dialog', { class: 'help', 'aria-label': 'Keys' });
function help() {
  const rows = { Everywhere: [[['j', 'k'], 'next, previous row'], [['↵'], 'open'], [['Esc'], 'clear, close, back'], [['/'], 'filter'], [['→', '←'], 'charts: move the cursor'], [['?'], 'this list']], 'Go to': nav.map(([, n, k]) => [['g', k], n]), Approvals: [[['a', '↵'], 'allow once'], [['d'], 'deny, with a reason'], [['e'], 'allow with changes']], Session: [[['f'], 'follow'], [['x'], 'fold or unfold all calls'], [['n', 'N'], 'next, previous match'], [['i'], 'interrupt the turn']], 'Sessions, tree': [[['r'], 'sessions: sort again'], [['→', '←'], 'tree: open, close']] };
  set(dialog, h('header', {}, h('h2', {}, 'Keys'), h('button', { class: 'btn', type: 'button', on: { click: () => dialog.close() } }, 'Close', kbd('Esc'))), h('div', { class: 'klist' }, Object.entries(rows).map(([name, l]) => h('section', {}, h('h3', {}, name), l.map(r => h('div', {}, h('span', {}, kbd(...r[0])), h('span', {}, r[1])))))));
  dialog.showModal();
}

// failed is what a page shows when the host did not answer: what was asked, and what it said.
const failed = (name, e) => h('div', { class: 'empty err' }, glyph('bad'), h('b', {}, name), h('p', {}, String(e?.message || e)), act('Try again', '', route, '', true));

async function route() {
  if (locked) return;
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?'), [first, id, more] = path.split('/').map(decode), p = Object.fromEntries(new URLSearchParams(query || '')), k = nav.some(n => n[0] === first) ? first : 'overview';
  page.stop?.();
  page = {};
  held = [];
  at(id ? p.host : '');
  const my = ++nth;
  app.querySelectorAll('[data-nav]').forEach(a => a.dataset.nav === k ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current'));
  $('[aria-current]', app)?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
  cursor.set(null);
  const dress = () => { root.textContent = ''; root.className = 'p-' + k + (id ? ' p-one' : ''); root.scrollTop = 0; if (my > 1) root.focus({ preventScroll: true }); };
  try {
    const m = await make[k === 'sessions' && id ? 'session' : k === 'jobs' && id ? 'job' : k](), arg = { ...p, id, more }, data = await m.load?.(arg);
    if (my !== nth) return; // the reader has gone on
    dress();
    page = m.default(root, arg, go, data) || {};
    for (const f of held) page.tick?.(...f);
  } catch (e) { // one page fails, not the window
    if (my !== nth || world.link === 'locked') return;
    if (e.status == null) console.error(e);
    dress();
    root.append(h('header', { class: 'page' }, h('div', { class: 'title' }, h('h1', {}, nav.find(n => n[0] === k)[1]))), failed(e.status == null ? 'This page cannot be shown' : e.status === 404 ? 'There is no such thing here' : e.status === 403 ? 'The host refuses this' : 'The host did not answer', e));
  }
  held = null;
  badge();
}
let held = null; // frames that come while a page is fetched
const decode = s => { try { return decodeURIComponent(s); } catch { return s; } };

// unlock asks for the code that the program printed, or for its token.
function unlock() {
  locked = true;
  page.stop?.(); page = {};
  document.title = 'Troupe';
  const code = h('input', { class: 'find', type: 'password', id: 'code', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'said' }), said = h('p', { class: 'fail', id: 'said', role: 'alert' });
  set(app, h('main', { class: 'login', id: 'main' }, h('form', { class: 'panel', on: {
    submit: async e => {
      e.preventDefault();
      set(said);
      try { await login(code.value.trim()); locked = false; await begin(); } catch (x) { set(said, x.status === 401 ? 'This code does not count: it was used, has ended, or is another one.' : x.message); code.select(); }
    },
  } }, h('div', { class: 'brand' }, icon('tree'), h('b', {}, 'Troupe')), h('label', { for: 'code' }, 'One-time code or token'), code, h('button', { class: 'btn good', type: 'submit' }, 'Open the window'), said,
  h('p', { class: 'dim' }, 'The program prints an address with a code that works once. A service asks for the token of its ', h('code', {}, 'inspect.Access'), '.'))));
  code.focus();
}

document.addEventListener('keydown', e => {
  if (locked || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  const typing = e.target.matches?.('input, textarea, select');
  if (e.key === 'Escape' && typing) { if (page.key?.(e)) e.preventDefault(); e.target.blur(); return; }
  if (typing) { if ((e.key === 'Enter' || e.key === 'ArrowDown') && e.target.matches('.find')) { if (page.enter?.(e)) return e.preventDefault(); e.target.blur(); $('.list')?.focus(); page.key?.({ key: 'j' }); } return; }
  if (e.key === 'Enter' && e.target.closest('button, a, summary')) return;
  const to = performance.now() - chord < 1200 && nav.find(n => n[2] === e.key);
  chord = -1e9;
  if (to) go('#/' + to[0]);
  else if (e.key === 'g') chord = performance.now();
  else if (e.key === '?') help();
  else if (e.key === '/') { if (page.search) { page.search.focus(); page.search.select(); } else { focusNext = true; go('#/sessions'); } } else if (page.key?.(e)) { /* the page took it */ } else { const b = root.querySelector(`[data-key="${CSS.escape(e.key)}"]`); if (b) b.click(); else return; }
  e.preventDefault();
});
let focusNext = false;

world.hooks.add((type, d) => {
  if (type === 'locked') return unlock();
  if (locked) return;
  if (type === 'resync') { known(); if (page.resync) page.resync(); else route(); }
  if (held) held.push([type, d]); else page.tick?.(type, d);
  if (type === 'hosts') pickers();
  if (type === 'link' || type === 'tick' || type === 'hello') connection();
  badge();
});
setInterval(() => { tickLives(); if (world.link === 'lost') connection(); }, 500);
window.addEventListener('hashchange', async () => { await route(); if (focusNext) { focusNext = false; page.search?.focus(); } });

// known fetches what the navigation counts on every page.
const known = () => Promise.all([approvals(), jobs()].map(p => p.catch(() => {}))).then(badge);
async function begin() {
  if (world.link !== 'live' && await started() === 'locked') return;
  if (!world.hosts.length) get('api/hosts').then(d => { world.hosts = d.hosts || d || []; pickers(); }, () => {});
  shell();
  known();
  await route();
}
const q = new URLSearchParams(location.search);
let saved = '';
try { saved = localStorage.getItem('troupe.theme') || ''; } catch { /* private mode */ }
dress(q.get('theme') || saved);
try { await begin(); } catch (e) {
  set(app, h('div', { class: 'empty err boot' }, glyph('bad'), h('b', {}, 'The window cannot start'), h('p', {}, String(e?.message || e)), h('button', { class: 'btn', type: 'button', on: { click: () => location.reload() } }, 'Try again')));
}

