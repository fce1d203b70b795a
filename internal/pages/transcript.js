// A transcript: prose, folded calls with input, result and diff, cuts by deaths, and a tail that
// streams. Earlier messages are fetched when they are asked for, and it can be searched. All
// text becomes text nodes; what a search finds is marked by ranges, which add no element.
import { h, set, put, say, num, short, usd, dur, time, bytes, glyph, meter, kbd, diff, pair } from './ui.js';

// prose shows text of a model: code between backticks is code, all else is text.
function prose(to, s) {
  to.textContent = '';
  for (const [i, part] of s.split('`').entries()) put(to, i % 2 ? h('code', {}, part) : part);
  return to;
}
const lines = s => s ? s.split('\n').length : 0;
const asText = v => typeof v === 'string' ? v : v == null ? '' : JSON.stringify(v, null, 2);
export const brief = (tool, i) => {
  if (!i || typeof i !== 'object') return asText(i);
  return String(i.command ?? (i.file_path ? i.file_path + (i.pattern || '') : i.pattern ? i.pattern + (i.path ? ' in ' + i.path : '') : i.url ?? i.query ?? JSON.stringify(i)));
};
// edited is the patch of a call that replaces text; null for every other call.
export const edited = i => i && typeof i.old_string === 'string' && typeof i.new_string === 'string' ? pair(String(i.file_path || ''), i.old_string, i.new_string) : null;
const most = 1500; // rows that stay in the page
const deciders = { rule: 'a rule of the policy', policy: 'the policy', hook: 'a hook', person: 'a person' };

export class Transcript {
  // now is the clock that ages are counted by; live makes a text that changes with it; earlier
  // fetches what is before the first message, and says whether there is more.
  constructor(label, { now = () => Date.now(), live = f => h('span', {}, f()), earlier = null } = {}) {
    Object.assign(this, { now, live, earlier, calls: new Map(), results: new Map(), streams: new Map(), known: new Set(), last: 0, on: true, first: null, hits: [], hit: -1 });
    this.more = h('button', { class: 'btn more-tx', type: 'button', hidden: true, on: { click: () => this.back() } }, 'Earlier messages');
    this.box = h('div', { class: 'tx-in' });
    this.note = h('p', { class: 'sr', role: 'status' });
    this.jump = h('button', { class: 'btn jump', type: 'button', hidden: true, on: { click: () => this.follow(true) } }, '↓ Follow', kbd('f'));
    this.scroll = h('div', { class: 'tx', role: 'log', 'aria-live': 'off', 'aria-label': label, tabindex: 0 }, this.more, this.box);
    this.search = h('input', { class: 'find', type: 'search', placeholder: 'Search this transcript', 'aria-label': 'Search this transcript', autocomplete: 'off', spellcheck: 'false', on: { input: () => this.find() } });
    this.found = h('span', { class: 'dim n', role: 'status' });
    this.bar = h('div', { class: 'tx-bar' }, this.search, this.found);
    this.el = h('div', { class: 'tx-wrap' }, this.bar, h('div', { class: 'tx-body' }, this.scroll, this.jump), this.note);
    this.scroll.addEventListener('scroll', () => {
      const s = this.scroll, end = s.scrollHeight - s.scrollTop - s.clientHeight < 40;
      if (end !== this.on) { this.on = end; this.jump.hidden = end; }
      if (s.scrollTop < 60 && !this.more.hidden && s.scrollHeight > s.clientHeight) this.back();
    }, { passive: true });
    new ResizeObserver(() => this.pin()).observe(this.scroll);
  }
  pin() { if (this.on) this.scroll.scrollTop = this.scroll.scrollHeight; }
  follow(on) { this.on = on; this.jump.hidden = on; this.pin(); }
  row(cls, at, ...kids) {
    const e = h('article', { class: 'msg ' + cls, tabindex: -1 }, h('div', { class: 'when' }, at ? time(at) : null), h('div', { class: 'body' }, ...kids));
    e.at = Date.parse(at); e.seq = this.seq; e.uuid = this.uuid;
    (this.into || this.box).append(e);
    return e;
  }
  // show adds a page of messages at the end; more says that there are earlier ones, and place where
  // to look for them, if that is not before the first one.
  show(list, more, place) {
    list.forEach(m => this.put(m));
    if (this.first == null) this.first = place ?? list[0]?.seq ?? null;
    this.more.hidden = !more || !this.earlier;
    this.pin();
  }
  // merge adds what is missing at the end of what is shown; false: something is missing before.
  merge(list) {
    const at = list.findLastIndex(m => m.uuid && this.known.has(m.uuid));
    if (at < 0 || list.slice(0, at).some(m => m.uuid && !this.known.has(m.uuid) && !(m.seq < this.first))) return false;
    for (const m of list.slice(at + 1)) if (m.uuid ? !this.known.has(m.uuid) : m.seq > this.last) this.add(m);
    return true;
  }
  add(m) {
    this.put(m);
    while (this.on && this.box.childElementCount > most) { // they can be fetched again
      const gone = this.box.firstElementChild;
      gone.remove();
      if (gone.uuid !== this.box.firstElementChild.uuid) this.known.delete(gone.uuid);
      this.first = this.box.firstElementChild.seq ?? this.first;
      this.more.hidden = !this.earlier;
    }
    this.pin();
  }
  // back fetches what is before; q asks for as much as a text is in.
  async back(q = '') {
    if (this.busy || !this.earlier || this.first == null) return false;
    this.busy = true;
    this.more.setAttribute('aria-busy', 'true');
    set(this.more, 'Fetching…');
    try {
      let { messages, more, place } = await this.earlier(this.first, q);
      const fresh = m => m.seq < this.first && !(m.uuid && this.known.has(m.uuid)); // a program that says the same again has no more
      for (let at = this.first; more && place == null && messages[0]?.seq < at && !messages.some(fresh);) { // stored ones that came as live ones, too
        at = messages[0].seq;
        ({ messages, more, place } = await this.earlier(at, q));
      }
      const s = this.scroll, was = s.scrollHeight - s.scrollTop;
      this.into = document.createDocumentFragment();
      const old = messages.filter(fresh);
      for (const m of old) this.put(m);
      this.box.prepend(this.into);
      const first = place ?? old[0]?.seq ?? this.first, moved = first < this.first;
      this.first = first;
      this.more.hidden = !more || !moved;
      s.scrollTop = s.scrollHeight - was; // what was read stays where it was
      return moved;
    } catch (e) { set(this.note, e.message); set(this.found, e.message); return false; } finally { this.into = null; this.busy = false; set(this.more, 'Earlier messages'); this.more.removeAttribute('aria-busy'); }
  }
  put(m) {
    if (m === null || typeof m !== 'object') return this.row('think', null, h('pre', { class: 'out' }, asText(m)));
    const at = m.at, c = m.message?.content ?? m.content;
    if (m.uuid && this.known.has(m.uuid)) return this.end(m.seq); // it was fetched, and comes as a frame, too
    if (m.uuid) this.known.add(m.uuid);
    this.seq = m.seq; this.uuid = m.uuid;
    if (!this.into && m.seq > this.last) this.last = m.seq;
    if (m.seq != null) this.end(m.seq);
    if (m.type === 'restart') return this.row('cutline r-recover', at, glyph('recover'), h('span', {}, m.text));
    if (m.type === 'result' && c === undefined) return m.error || m.is_error ? this.row('cutline r-bad', at, glyph('bad'), h('span', {}, 'The turn has failed: ' + asText(m.result || m.subtype))) : null;
    if (m.type === 'note' || m.type === 'cut') return this.row('cutline r-' + (m.error ? 'bad' : 'rest'), at, glyph(m.error ? 'bad' : 'rest'), h('span', {}, m.text || bytes(m.bytes || 0) + ' are left out here; the file has them.'));
    const role = m.message?.role || m.type;
    if (typeof c === 'string') role === 'assistant' ? prose(this.row('text', at, h('div', { class: 'prose' })).querySelector('.prose'), c) : c && this.row('user', at, h('div', { class: 'who' }, 'prompt'), h('div', { class: 'prose' }, c));
    else for (const b of Array.isArray(c) ? c : []) this.block(b, m, role);
    if (m.cut) this.row('cutline r-rest', at, glyph('rest'), h('span', {}, 'This message is cut: it has ' + bytes(m.size || 0) + '.'));
  }
  block(b, m, role) {
    const at = m.at;
    if (b === null || typeof b !== 'object') return this.row('think', at, h('pre', { class: 'out' }, asText(b)));
    if (b.type === 'text' && role === 'user') this.row('user', at, h('div', { class: 'who' }, 'prompt'), h('div', { class: 'prose' }, asText(b.text)));
    else if (b.type === 'text') prose(this.row('text', at, h('div', { class: 'prose' })).querySelector('.prose'), asText(b.text));
    else if (b.type === 'thinking') this.row('think', at, h('details', { class: 'fold' }, h('summary', {}, h('span', { class: 'dim' }, 'thinking · ' + lines(asText(b.thinking)) + (lines(asText(b.thinking)) === 1 ? ' line' : ' lines'))), h('div', { class: 'prose dim' }, asText(b.thinking))));
    else if (b.type === 'tool_use' || b.type === 'server_tool_use') this.call(b, at);
    else if (b.type === 'tool_result') this.result(b, m);
    else if (b.type === 'image') this.row('think', at, h('span', { class: 'dim' }, 'an image'));
    else this.row('think', at, h('pre', { class: 'out' }, asText(b))); // one that is not known is shown as it is
  }
  call(b, at) {
    const input = b.input || {}, edit = edited(input), end = h('span', { class: 'end n' }), g = h('span', { class: 'g' }, glyph('work')), gates = h('div', { class: 'gate' }), out = h('div', {});
    const d = h('details', { class: 'fold tool' }, h('summary', {}, g, h('b', {}, asText(b.name)), h('code', { class: 'brief' }, brief(b.name, input).slice(0, 300)), edit ? h('span', { class: 'pm n' }, h('span', { class: 'add' }, '+' + edit.add), ' ', h('span', { class: 'del' }, '−' + edit.del)) : null, end),
      h('div', { class: 'in-out' }, edit ? diff(edit.patch) : typeof input.command === 'string' ? h('pre', { class: 'cmd sh' }, input.command) : h('pre', {}, asText(input)), gates, out));
    const row = this.row('call running', at, d), t = { row, d, g, end, gates, out, at: Date.parse(at), b, edit };
    if (edit && !this.into) { if (this.lastEdit) this.lastEdit.open = false; d.open = true; this.lastEdit = d; }
    this.calls.set(b.id, t);
    t.live = this.live(() => t.done ?? (t.at ? dur(this.now() - t.at) : ''));
    set(end, t.live);
    const came = this.results.get(b.id); // with the page after this one
    if (came) { this.results.delete(b.id); this.result(...came); }
  }
  // gate says who has decided about a call: a rule or the policy, a hook, or a person.
  gate(t, gate) {
    const denied = !gate.allow;
    set(t.gates, h('span', { class: 'r-' + (denied ? 'bad' : 'good') }, glyph(denied ? 'bad' : 'good')), h('span', {}, (denied ? 'denied' : 'allowed') + ' by ' + deciders[gate.by]), gate.why ? h('span', { class: 'dim' }, ' ' + gate.why) : null);
    return denied;
  }
  result(b, m) {
    const t = this.calls.get(b.tool_use_id), s = Array.isArray(b.content) && b.content.every(x => x?.type === 'text') ? b.content.map(x => asText(x.text)).join('\n') : asText(b.content);
    if (!t) { this.results.set(b.tool_use_id, [b, m]); return; } // its call is among the earlier messages
    this.calls.delete(b.tool_use_id);
    const at = Date.parse(m.at), gate = m.gates?.[b.tool_use_id], denied = gate ? this.gate(t, gate) : false;
    t.done = [at && t.at ? dur(at - t.at) : '', s && !t.edit ? num(lines(s)) + (lines(s) === 1 ? ' line' : ' lines') : ''].filter(Boolean).join(' · ');
    say(t.live, t.done);
    t.row.classList.remove('running');
    t.row.classList.toggle('error', !!b.is_error);
    set(t.g, glyph(denied ? 'person' : b.is_error ? 'bad' : 'good'));
    if (denied) t.end.before(h('span', { class: 'tagl r-person' }, 'denied')); else if (b.is_error) t.end.before(h('span', { class: 'tagl r-bad' }, 'error'));
    set(t.out, t.edit && !b.is_error ? null : s ? h('pre', { class: 'out' }, s) : h('p', { class: 'dim none' }, 'No output.'));
    if (!this.into) set(this.note, asText(t.b.name) + (b.is_error ? ' failed' : ' finished'));
  }
  // over ends what looks as if it ran, in a transcript that is complete.
  over() { for (const t of this.calls.values()) { t.row.classList.remove('running'); t.done = 'no result'; say(t.live, t.done); set(t.g, glyph('over')); } this.calls.clear(); }
  // delta adds text to the message that streams; end takes it away, because the whole has come.
  delta(seq, s) {
    let t = this.streams.get(seq);
    if (!t) { const row = this.row('text streaming', new Date(this.now()).toISOString(), h('div', { class: 'prose' })); this.streams.set(seq, t = { row, p: row.querySelector('.prose'), s: '' }); }
    t.s += s;
    prose(t.p, t.s);
    this.pin();
  }
  end(seq) { const t = this.streams.get(seq); if (t) { t.row.remove(); this.streams.delete(seq); set(this.note, 'The agent wrote: ' + t.s.slice(0, 80)); } }
  go(e) { this.on = false; this.jump.hidden = false; this.at = [...this.box.children].indexOf(e); e.focus({ preventScroll: true }); e.scrollIntoView({ block: 'center' }); }
  seek(t) { const all = [...this.box.children], e = all.findLast(x => x.at <= t) || all[0]; if (e) this.go(e); }

  // find marks every match of what is loaded; next goes to one, and fetches earlier messages
  // until it has one or there is nothing more.
  find() {
    const q = this.search.value.toLowerCase().trim(), ranges = [];
    this.hit = -1;
    this.hits = q ? [...this.box.children].filter(e => e.textContent.toLowerCase().includes(q)) : [];
    for (const e of this.hits) {
      const w = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
      for (let n = w.nextNode(); n && ranges.length < 1000; n = w.nextNode()) for (let i = n.data.toLowerCase().indexOf(q); i >= 0; i = n.data.toLowerCase().indexOf(q, i + q.length)) { const r = document.createRange(); r.setStart(n, i); r.setEnd(n, Math.min(n.length, i + q.length)); ranges.push(r); }
    }
    if (globalThis.Highlight) ranges.length ? CSS.highlights.set('found', new Highlight(...ranges)) : CSS.highlights.delete('found');
    this.count();
  }
  count() { const n = this.hits.length; say(this.found, !this.search.value.trim() ? '' : (this.hit >= 0 ? this.hit + 1 + ' of ' : '') + num(n) + (n === 1 ? ' message' : ' messages') + (this.more.hidden ? '' : ', earlier ones not searched')); }
  async next(by) {
    const q = this.search.value;
    if (!q.trim()) return;
    const wanted = this.hits.length - (this.hit < 0 ? this.hits.length : this.hit);
    while ((!this.hits.length || by < 0 && this.hit === 0) && !this.more.hidden && this.search.value === q) {
      say(this.found, 'searching earlier messages…');
      const n = this.hits.length;
      if (!await this.back(q.trim())) break;
      this.find();
      if (this.hits.length > n) { if (n) this.hit = this.hits.length - wanted; break; }
    }
    if (!this.hits.length) return this.count();
    this.hit = this.hit < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (this.hit + by + this.hits.length) % this.hits.length;
    const e = this.hits[this.hit], was = document.activeElement;
    e.querySelectorAll('details').forEach(d => { if (d.textContent.toLowerCase().includes(q.toLowerCase().trim())) d.open = true; });
    this.go(e);
    if (was === this.search) this.search.focus({ preventScroll: true });
    this.count();
  }
  key(e) {
    const all = [...this.box.children];
    if (e.key === 'Escape' && this.search.value) { this.search.value = ''; this.find(); } else if (e.key === 'n' || e.key === 'N') { if (!this.search.value) return false; this.next(e.key === 'n' ? 1 : -1); } else if (e.key === 'j' || e.key === 'k' || e.key === 'ArrowDown' && document.activeElement !== this.scroll) {
      if (!all.length) return true;
      this.at = Math.max(0, Math.min(all.length - 1, (this.at ?? all.length) + (e.key === 'k' ? -1 : 1)));
      this.on = false; this.jump.hidden = false;
      all[this.at].focus({ preventScroll: true }); all[this.at].scrollIntoView({ block: 'nearest' });
    } else if (e.key === 'Enter' && all[this.at] === document.activeElement) { const d = all[this.at]?.querySelector('details'); if (d) d.open = !d.open; } else if (e.key === 'f') this.follow(true);
    else if (e.key === 'x') { const ds = this.box.querySelectorAll('details.tool'), open = [...ds].some(d => d.open); ds.forEach(d => { d.open = !open; }); } else return false;
    return true;
  }
  clear() { this.box.textContent = ''; this.calls.clear(); this.results.clear(); this.streams.clear(); this.known.clear(); this.last = 0; this.first = null; this.more.hidden = true; globalThis.CSS?.highlights?.delete('found'); }
}

const tokenNames = { input: 'input', output: 'output', cacheWrite: 'cache write', cacheRead: 'cache read' };
// cost draws what a session has used; what is not known is left out.
export function cost(u, budget) {
  const t = u.tokens || {}, keys = Object.keys(tokenNames).filter(k => t[k]), all = keys.reduce((a, k) => a + t[k], 0);
  return h('div', { class: 'cost' },
    h('div', { class: 'big n' }, u.credits ? num(u.credits) + ' credits' : usd(u.usd || 0), budget ? h('span', { class: 'unit' }, ' of ' + usd(budget)) : null), budget ? meter(Math.min(1, (u.usd || 0) / budget)) : null,
    keys.length ? h('table', { class: 'kv' }, h('tbody', {}, keys.map(k => h('tr', {}, h('th', { scope: 'row' }, tokenNames[k]), h('td', { class: 'n', title: num(t[k]) }, short(t[k])), h('td', { class: 'n dim' }, (100 * t[k] / all).toFixed(1) + '%'))))) : null);
}
