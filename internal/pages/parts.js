// What several pages share: texts that change with time, buttons that say why they cannot,
// dialogs, toasts, and drawings that are made at most so often.
import { h, set, say, $, time, glyph, kbd, spaced, words } from './ui.js';
import { world, address } from './api.js';

const lives = new Set();
export const live = fn => { const e = h('span', {}); e.fn = fn; say(e, fn()); lives.add(e); return e; };
export const tickLives = () => lives.forEach(e => e.isConnected ? say(e, e.fn()) : lives.delete(e));
export const narrow = () => innerWidth < 760;

// kept is what the table of sessions is to show again when one comes back to it.
export const kept = { last: '', back: '' };
// calm is fn that runs at most once in so many milliseconds, and at last once more.
export function calm(fn, every = 250) {
  let at = -1e9, timer = 0;
  return () => {
    if (timer) return;
    const run = () => { timer = 0; at = performance.now(); fn(); };
    timer = setTimeout(run, Math.max(0, every - (performance.now() - at)));
  };
}

const why = { steer: 'Read-only: this window was opened without Access.Steer', lost: 'Not sent: the connection is lost.' };
// act is a button that changes something: it says why it cannot, and never vanishes.
export function act(label, key, run, cls = '', read = false) {
  const no = !read && !world.steer;
  const press = async e => {
    if (no) return toast(why.steer + '. Nothing was sent.', 'person');
    if (!read && world.link !== 'live') return toast(why.lost, 'bad');
    const b = e.currentTarget;
    if (b.getAttribute('aria-busy')) return;
    b.setAttribute('aria-busy', 'true');
    try { await run(); } catch (err) { toast(err.message, 'bad'); } finally { b.removeAttribute('aria-busy'); }
  };
  return h('button', { class: 'btn ' + cls, type: 'button', 'aria-disabled': no || null, 'data-key': key || null, title: no ? why.steer : null, on: { click: press } }, label, key && !no ? kbd(key) : null);
}
let toastTimer;
export function toast(text, role = 'good') {
  const t = $('#toast');
  set(t, glyph(role), h('span', {}, text));
  t.className = 'toast on r-' + role;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { t.className = 'toast'; }, 5000);
}
export const head = (title, ...side) => h('header', { class: 'page' }, h('div', { class: 'title' }, h('h1', {}, title), ...side));
export const sub = s => h('span', { class: 'dim' }, s);
export const total = () => Object.values(world.states).reduce((a, b) => a + b, 0);
export const actorRole = a => ({ running: 'work', waiting: 'rest', stopped: 'over', crashed: 'bad', restarting: 'recover' })[a.state] || 'rest';
export const actorState = a => h('span', { class: 'state r-' + actorRole(a) }, glyph(actorRole(a)), h('span', {}, a.state));
export const word = s => words[s] || spaced(s);

export const rank = ['recovering', 'awaiting_host', 'awaiting_consumer', 'failed', 'running', 'starting', 'initializing', 'admitting', 'closing', 'ready', 'passivated', 'closed'];
export function eventLine(e) {
  const r = { DEBUG: 'rest', INFO: 'rest', WARN: 'limit', ERROR: 'bad' }[e.level] || 'rest';
  return h('li', { class: 'event' }, time(e.at), h('span', { class: 'r-' + r, title: e.level }, glyph(r)), h('span', { class: 'etext' }, h('b', {}, e.type), ' ', e.text, e.by ? h('span', { class: 'dim' }, ' by ' + e.by) : null, e.session ? h('a', { class: 'sid', href: address({ id: e.session, host: e.host }) }, e.session) : null, e.host && world.hosts.length > 1 ? h('span', { class: 'dim' }, ' at ' + e.host) : null));
}
export const inset = (role, cls, ...kids) => h('span', { class: 'tagl r-' + role + ' ' + cls }, glyph(role), ...kids);
