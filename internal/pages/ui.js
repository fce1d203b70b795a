// Building blocks: elements made of text alone, times, numbers, glyphs, a virtual list.

const SVG = 'http://www.w3.org/2000/svg';
const svgTags = new Set(['svg', 'g', 'path', 'rect', 'line', 'text', 'circle', 'use', 'tspan', 'title']);
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
const hostileAll = new RegExp(hostile.source, 'g');
const visible = c => {
  const n = c.codePointAt(0);
  return n < 256 ? '\\x' + n.toString(16).padStart(2, '0') : '\\u' + n.toString(16).padStart(4, '0'); // as troupe ps writes them
};

// plain makes control, zero-width and direction characters visible, for attributes.
export const plain = s => String(s).replace(hostileAll, visible);

function text(to, s) {
  if (!hostile.test(s)) return to.append(s);
  let at = 0;
  for (const m of s.matchAll(hostileAll)) {
    if (m.index > at) to.append(s.slice(at, m.index));
    const chip = document.createElement('span');
    chip.className = 'ctl';
    chip.textContent = visible(m[0]);
    to.append(chip);
    at = m.index + 1;
  }
  to.append(s.slice(at));
}

// h makes an element. Strings become text and nothing else; there is no way to pass markup.
export function h(tag, props, ...kids) {
  const e = svgTags.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const k in props) {
    const v = props[k];
    const aria = k.startsWith('aria-');
    if (v == null || v === false && !aria) continue;
    if (k === 'on') for (const n in v) e.addEventListener(n, v[n]);
    else if (k === 'value' || k === 'checked' || k === 'disabled') e[k] = v;
    else e.setAttribute(k, v === true && !aria ? '' : plain(v));
  }
  put(e, kids);
  return e;
}
export function put(e, kids) {
  for (const k of [kids].flat(9)) {
    if (k == null || k === false) continue;
    if (k instanceof Node) e.append(k); else text(e, String(k));
  }
  return e;
}
export function set(e, ...kids) { e.textContent = ''; return put(e, kids); }
// say changes text only if it differs, so that a tick costs nothing where nothing changed.
export function say(e, s) { if (e.said !== s) { e.said = s; set(e, s); } }
// morph makes the children of e equal to these, and keeps the elements that are there: what
// has the focus or the pointer stays. It is for elements without listeners of their own.
export function morph(e, ...kids) { sync(e, put(document.createDocumentFragment(), kids)); }
function sync(a, b) {
  const was = [...a.childNodes], is = [...b.childNodes];
  is.forEach((n, i) => {
    const o = was[i];
    if (!o) a.append(n);
    else if (o.nodeName !== n.nodeName) o.replaceWith(n);
    else if (n.nodeType === 3) { if (o.data !== n.data) o.data = n.data; } else {
      for (const { name } of [...o.attributes]) if (!n.hasAttribute(name)) o.removeAttribute(name);
      for (const { name, value } of n.attributes) if (o.getAttribute(name) !== value) o.setAttribute(name, value);
      sync(o, n);
    }
  });
  was.slice(is.length).forEach(o => o.remove());
}
export const $ = (s, e = document) => e.querySelector(s);

// Numbers.
const nf = new Intl.NumberFormat('en-US');
export const num = n => nf.format(Math.round(n));
export const short = n => {
  const a = Math.abs(n);
  return a >= 1e9 ? cut(n / 1e9) + 'G' : a >= 1e6 ? cut(n / 1e6) + 'M' : a >= 1e4 ? cut(n / 1e3) + 'k' : a >= 100 || Number.isInteger(n) ? num(n) : cut(n);
};
const cut = n => n && Math.abs(n) < .1 ? String(+n.toPrecision(2)) : Math.abs(n) >= 100 ? n.toFixed(0) : Math.abs(n) >= 10 ? n.toFixed(1).replace(/\.0$/, '') : n.toFixed(2).replace(/\.?0+$/, '');
export const usd = n => '$' + (n >= 1000 ? num(n) : n && Math.abs(n) < .01 ? cut(n) : n.toFixed(2));
export const bytes = n => n >= 2 ** 30 ? cut(n / 2 ** 30) + ' GiB' : n >= 2 ** 20 ? cut(n / 2 ** 20) + ' MiB' : n >= 1024 ? cut(n / 1024) + ' KiB' : n + ' B';

// Times. Two units at most; seconds keep their width.
export function dur(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + 'ms';
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm ' + String(s % 60).padStart(2, '0') + 's';
  if (s < 86400) return Math.floor(s / 3600) + 'h ' + String(Math.floor(s / 60) % 60).padStart(2, '0') + 'm';
  return Math.floor(s / 86400) + 'd ' + Math.floor(s / 3600) % 24 + 'h';
}
const clockF = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hmF = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
export const clock = t => clockF.format(t);
export const hm = t => hmF.format(t);
export const exact = t => { const d = new Date(t); return d.toLocaleString('en-GB', { timeZoneName: 'short' }) + '\n' + d.toISOString(); };
// time shows a clock time, and the exact value with its zone on hover.
export const time = t => Number.isFinite(+new Date(t)) ? h('time', { datetime: new Date(t).toISOString(), title: exact(t) }, clock(new Date(t))) : h('time', {});

// States: a role for each. A role is a colour, a shape and a word, never a colour alone.
export const roles = {
  admitting: 'start', starting: 'start', initializing: 'start', ready: 'rest', running: 'work', awaiting_host: 'person',
  awaiting_consumer: 'held', recovering: 'recover', passivated: 'sleep', closing: 'start', closed: 'over', failed: 'bad',
  success: 'good', agent: 'agent', limit: 'limit', infrastructure: 'bad', not_run: 'over',
  queued: 'rest', waiting: 'person', over: 'over', open: 'bad', half_open: 'start', stopped: 'over', crashed: 'bad', restarting: 'recover',
  DEBUG: 'rest', INFO: 'rest', WARN: 'limit', ERROR: 'bad',
};
export const words = {
  awaiting_host: 'waits for a person', awaiting_consumer: 'unread', success: 'accepted', infrastructure: 'infrastructure', not_run: 'not run', half_open: 'half open',
};
const families = {
  accepted: 'success', rejected: 'agent', suspicious: 'agent', incomplete: 'agent', failed: 'agent',
  max_turns: 'limit', over_budget: 'limit', timed_out: 'limit', context_full: 'limit', skipped: 'not_run', canceled: 'not_run',
};
export const spaced = s => String(s).replaceAll('_', ' ');
export const family = s => families[s] || 'infrastructure';
export const order = ['running', 'awaiting_host', 'awaiting_consumer', 'recovering', 'starting', 'initializing', 'admitting', 'ready', 'passivated', 'closing', 'closed', 'failed'];
export function glyph(role) { return h('svg', { class: 'glyph r-' + role, 'aria-hidden': 'true' }, h('use', { href: '#g-' + role })); }
export function icon(name) { return h('svg', { class: 'icon', 'aria-hidden': 'true' }, h('use', { href: '#i-' + name })); }
export function state(s, label) {
  const r = roles[s] || 'rest';
  return h('span', { class: 'state r-' + r, title: s }, glyph(r), h('span', {}, label || words[s] || spaced(s)));
}
// tag is a status of a task: the shape and colour of its family, its own word.
export const status = s => h('span', { class: 'state r-' + roles[family(s)], title: s + ' (' + (words[family(s)] || family(s)) + ')' }, glyph(roles[family(s)]), h('span', {}, spaced(s)));

// waitLine shows age against limit: text first, then a thin bar. What set the limit is on hover.
export function waitLine(w, t) {
  const age = t - w.from, part = w.limit ? Math.min(1, age / w.limit) : 0;
  return h('span', { class: 'wait' + (part > .8 ? ' near' : ''), title: waitTitle(w) },
    h('span', { class: 'what' }, w.what), h('span', { class: 'age n' }, dur(age), w.limit ? h('span', { class: 'dim' }, ' of ' + dur(w.limit)) : null),
    w.limit ? meter(part) : null);
}
export const waitTitle = w => w.what + '\n' + (w.limit ? 'limit ' + dur(w.limit) + (w.by ? ', set by ' + w.by : '') : 'no limit') + (w.id ? '\nid ' + w.id : '');
export function meter(part, cls = '') {
  return h('svg', { class: 'meter ' + cls, viewBox: '0 0 100 3', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    h('rect', { class: 'm-all', width: 100, height: 3 }), h('rect', { class: 'm-part', width: (100 * part).toFixed(1), height: 3 }));
}
export const kbd = (...k) => k.map(x => h('kbd', {}, x));
export function empty(title, why, ...more) { return h('div', { class: 'empty' }, h('b', {}, title), h('p', {}, why), ...more); }
export function panel(title, side, ...kids) {
  return h('section', { class: 'panel', 'aria-label': title }, h('header', {}, h('h2', {}, title), side && h('span', { class: 'side' }, side)), ...kids);
}

// List draws only the rows that can be seen. Rows are made once, and filled again and again.
export class List {
  constructor({ id, row, fill, height, label, open, cols, head, key = r => r.id }) {
    Object.assign(this, { row, fill, rowH: height, open, key, items: [], at: -1, pool: [], first: -1 });
    this.pad = h('div', { class: 'v-pad' });
    this.win = h('div', { class: 'v-win' });
    this.el = h('div', { class: 'v-list', role: 'rowgroup' }, this.pad, this.win);
    this.box = h('div', { class: 'panel list', id, tabindex: 0, role: 'grid', 'aria-label': label, 'aria-colcount': cols }, null, this.el);
    if (head) queueMicrotask(() => this.box.prepend(head()));
    this.el.addEventListener('scroll', () => this.draw(), { passive: true });
    this.el.addEventListener('click', e => { const r = e.target.closest('.v-row'); if (!r || e.ctrlKey || e.metaKey || e.shiftKey) return; this.select(r.i); this.open?.(this.items[r.i]); });
    new ResizeObserver(() => { this.first = -1; this.draw(); }).observe(this.el);
  }
  show(items) {
    const keep = this.items[this.at] && this.key(this.items[this.at]);
    this.items = items;
    this.at = keep == null ? -1 : items.findIndex(r => this.key(r) === keep);
    this.box.setAttribute('aria-rowcount', items.length + 1);
    this.pad.style.height = items.length * this.rowH() + 'px';
    this.first = -1;
    this.draw();
  }
  // Item i is always in row i modulo the number of rows: a scroll fills only what comes in.
  draw() {
    const rh = this.rowH(), n = Math.min(Math.ceil(this.el.clientHeight / rh) + 6, this.items.length), first = Math.max(0, Math.min(Math.floor(this.el.scrollTop / rh) - 3, this.items.length - n));
    if (first === this.first && this.shown === n) return;
    const all = this.first < 0 || this.shown !== n;
    this.first = first;
    this.shown = n;
    while (this.pool.length < this.shown) { const r = this.row(); r.classList.add('v-row'); r.setAttribute('role', 'row'); r.id = this.box.id + this.pool.length; this.pool.push(r); this.win.append(r); }
    while (this.pool.length > this.shown) this.pool.pop().remove();
    this.refresh(!all);
  }
  refresh(moved) {
    const rh = this.rowH(), n = this.shown;
    for (let i = this.first; i < this.first + n; i++) {
      const r = this.pool[i % n];
      if (moved && r.i === i) continue;
      if (r.i !== i || r.rh !== rh) { r.i = i; r.rh = rh; r.style.transform = `translateY(${i * rh}px)`; r.setAttribute('aria-rowindex', i + 2); }
      r.setAttribute('aria-selected', i === this.at);
      if (i === this.at) this.box.setAttribute('aria-activedescendant', r.id);
      this.fill(r, this.items[i]);
    }
  }
  // swap puts newer forms of the items in their place; what is no longer there stays as it was.
  swap(newer) { this.items = this.items.map(x => newer(x) || x); this.refresh(); }
  // forget lets the rows be made anew, because they have other columns.
  forget() { this.pool.forEach(r => r.remove()); this.pool = []; this.first = -1; }
  select(i) {
    if (!this.items.length) return;
    this.at = Math.max(0, Math.min(i, this.items.length - 1));
    const rh = this.rowH(), y = this.at * rh, e = this.el;
    if (y < e.scrollTop) e.scrollTop = y; else if (y + rh > e.scrollTop + e.clientHeight) e.scrollTop = y + rh - e.clientHeight;
    this.draw();
    this.refresh();
  }
  key_(e) {
    const page = Math.floor(this.el.clientHeight / this.rowH()) - 1;
    const to = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page }[e.key];
    if (to) this.select(this.at < 0 ? (to > 0 ? 0 : this.items.length - 1) : this.at + to);
    else if (e.key === 'Home') this.select(0);
    else if (e.key === 'End' || e.key === 'G') this.select(this.items.length - 1);
    else if (e.key === 'Enter' && this.items[this.at]) this.open?.(this.items[this.at]);
    else return false;
    return true;
  }
}

// diff draws a patch, or a pair of texts. Signs are text, so that colour is not needed.
export function diff(patch) {
  const box = h('div', { class: 'diff', role: 'region', 'aria-label': 'diff', tabindex: 0 });
  let a = 0, b = 0;
  for (const line of patch.replace(/\n$/, '').split('\n')) {
    if (/^(diff --git|index |--- )/.test(line)) continue;
    if (line.startsWith('+++ ')) { box.append(h('div', { class: 'd-file' }, line.slice(6))); continue; }
    const hunk = /^@@ -(\d+)\S* \+(\d+)\S* @@(.*)/.exec(line);
    if (hunk) { a = +hunk[1]; b = +hunk[2]; box.append(h('div', { class: 'd-hunk' }, 'line ' + b + (hunk[3] ? ' ·' + hunk[3] : ''))); continue; }
    const sign = line[0] || ' ', cls = sign === '+' ? 'd-add' : sign === '-' ? 'd-del' : '';
    box.append(h('div', { class: 'd-line ' + cls }, h('span', { class: 'd-n' }, sign === '+' ? '' : a || ''), h('span', { class: 'd-n' }, sign === '-' ? '' : b || ''), h('span', { class: 'd-s' }, sign), h('span', { class: 'd-t' }, line.slice(1) || ' ')));
    if (a) { if (sign !== '+') a++; if (sign !== '-') b++; }
  }
  return box;
}
// pair makes a patch of an edit, with the equal lines at both ends as context.
export function pair(file, was, is) {
  const x = was.split('\n'), y = is.split('\n');
  let p = 0, q = 0;
  while (p < x.length && p < y.length && x[p] === y[p]) p++;
  while (q < x.length - p && q < y.length - p && x[x.length - 1 - q] === y[y.length - 1 - q]) q++;
  const mid = (l, s) => l.slice(p, l.length - q).map(t => s + t);
  const lines = [...x.slice(0, p).map(t => ' ' + t), ...mid(x, '-'), ...mid(y, '+'), ...(q ? x.slice(-q) : []).map(t => ' ' + t)];
  return { patch: '+++ b/' + file + '\n' + lines.join('\n'), add: y.length - p - q, del: x.length - p - q };
}
