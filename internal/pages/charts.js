// Charts: SVG made here, drawn in pixels of the page, so that text is never scaled. Every
// chart has a zero line, a top value, times below, one cursor for all, and a name that says
// what it shows. Behind each is a table with the same numbers, for who cannot see it.
import { h, set, hm, clock, short, num, plain } from './ui.js';

const subs = new Set();
export const cursor = { t: null, set(t) { if (t !== this.t) { this.t = t; subs.forEach(f => f.el.isConnected ? f.point() : subs.delete(f)); } } };

export function nice(max, n = 3, given) {
  if (!(max > 1e-6)) return { top: 1, ticks: [0] };
  const raw = max / n, mag = 10 ** Math.floor(Math.log10(raw)), f = raw / mag;
  const step = given && given.find(s => s >= raw) || (f <= 1 ? 1 : f <= 2 ? 2 : f <= 2.5 ? 2.5 : f <= 5 ? 5 : 10) * mag, top = Math.ceil(max / step - 1e-9) * step, ticks = [];
  for (let v = 0; v <= top + step / 2; v += step) ticks.push(+v.toPrecision(6));
  return { top, ticks };
}
const steps = [1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 2 * 60e3, 5 * 60e3, 10 * 60e3, 15 * 60e3, 30 * 60e3, 36e5, 2 * 36e5, 3 * 36e5, 6 * 36e5];
const halfDay = 12 * 36e5; // in milliseconds, as all times here
export function timeTicks(a, b, room) {
  const step = steps.find(s => (b - a) / s <= room) || halfDay * Math.ceil((b - a) / halfDay / room), out = [], off = new Date(a).getTimezoneOffset() * 60e3;
  for (let t = Math.ceil((a - off) / step) * step + off; t <= b; t += step) out.push(t);
  return out;
}

// stamp is how a time is written below a chart of that length.
const dayF = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const stamp = (a, z, room) => (steps.find(s => (z - a) / s <= room) || 60e3) < 60e3 ? clock : z - a > 40 * 36e5 ? t => dayF.format(t) : hm;
export const times = (a, z, w) => { const room = Math.max(2, w / 76); return [timeTicks(a, z, room), stamp(a, z, room)]; };

export class Chart {
  constructor(o) {
    this.o = { left: 38, right: 10, top: 8, bottom: 19, yfmt: short, ...o };
    this.el = h('div', { class: 'chart ' + (o.cls || ''), tabindex: o.time ? 0 : null, role: 'group' });
    this.svg = h('svg', { 'aria-hidden': 'true' });
    this.el.append(this.svg, h('button', { class: 'astable', type: 'button', on: { click: e => { e.stopPropagation(); this.table(); } } }, 'As a table'));
    new ResizeObserver(() => this.draw()).observe(this.el);
    if (o.time) {
      subs.add(this);
      this.el.addEventListener('pointermove', e => this.at(e.clientX - this.el.getBoundingClientRect().left));
      this.el.addEventListener('pointerleave', () => cursor.set(null));
      this.el.addEventListener('blur', () => cursor.set(null));
      this.el.addEventListener('keydown', e => {
        const d = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
        if (!d || !this.x) return;
        e.preventDefault(); e.stopPropagation();
        cursor.set(Math.max(this.x0, Math.min(this.x1, (cursor.t ?? this.x1) + d * (this.x1 - this.x0) / 60)));
      });
    }
  }
  at(px) { if (this.x) cursor.set(Math.max(this.x0, Math.min(this.x1, this.x0 + (px - this.o.left) / this.iw * (this.x1 - this.x0)))); }
  show(data) { this.data = data; this.el.setAttribute('aria-label', plain(data.label || '')); this.draw(); }
  table() {
    if (!this.data) return;
    const { head, rows } = this.o.rows(this.data), most = 500, cut = rows.length - most;
    const d = h('dialog', { class: 'help', 'aria-label': this.data.label }, h('header', {}, h('h2', {}, this.data.label), h('button', { class: 'btn', type: 'button', on: { click: () => d.close() } }, 'Close')),
      h('div', { class: 'wide tall', tabindex: 0 }, h('table', { class: 'tab' }, h('thead', {}, h('tr', {}, head.map(x => h('th', { scope: 'col' }, x)))), h('tbody', {}, rows.slice(-most).map(r => h('tr', {}, r.map((x, i) => i ? h('td', {}, x) : h('th', { scope: 'row' }, x))))))),
      cut > 0 ? h('p', { class: 'dim' }, num(cut) + ' earlier rows are left out.') : null);
    d.addEventListener('close', () => { d.remove(); this.el.querySelector('.astable').focus(); });
    document.body.append(d);
    d.showModal();
  }
  frame(x0, x1, top, ticks, xticks, xfmt) {
    const { left, right, top: mt, bottom, yfmt } = this.o;
    Object.assign(this, { x0, x1, iw: Math.max(10, this.w - left - right), ih: this.hh - mt - bottom });
    this.x = v => left + (v - x0) / (x1 - x0 || 1) * this.iw;
    this.y = v => mt + this.ih - v / top * this.ih;
    const g = h('g', {});
    for (const v of ticks) g.append(h('line', { class: v ? 'grid' : 'axis', x1: left, x2: left + this.iw, y1: half(this.y(v)), y2: half(this.y(v)) }), h('text', { class: 'ax', x: left - 6, y: this.y(v) + 3.5, 'text-anchor': 'end' }, yfmt(v)));
    for (const v of xticks) {
      const x = this.x(v);
      g.append(h('line', { class: 'axis', x1: half(x), x2: half(x), y1: mt + this.ih, y2: mt + this.ih + 4 }), h('text', { class: 'ax', x, y: this.hh - 3, 'text-anchor': x > this.w - 26 ? 'end' : x < left + 8 ? 'start' : 'middle' }, xfmt(v)));
    }
    return g;
  }
  draw() {
    this.w = this.el.clientWidth; this.hh = this.el.clientHeight;
    if (!this.data || this.w < 20) return;
    this.svg.setAttribute('width', this.w);
    this.svg.setAttribute('height', this.hh);
    this.cur = h('g', { class: 'cursor' });
    set(this.svg, this.o.draw(this, this.data), this.cur);
    if (this.o.time) this.point();
  }
  point() {
    if (!this.cur || !this.x) return;
    this.cur.textContent = '';
    const t = cursor.t;
    if (t == null || t < this.x0 || t > this.x1) { this.o.read?.(null); return; }
    const x = this.x(t), read = this.o.value?.(this.data, t);
    this.cur.append(h('line', { x1: x, x2: x, y1: this.o.top, y2: this.o.top + this.ih }));
    if (read?.y != null) this.cur.append(h('circle', { cx: x, cy: this.y(read.y), r: 3 }));
    if (this.o.read) this.o.read(read && read.y, t);
    else if (read) {
      const s = clock(t) + '  ' + read.text, right = x > this.w / 2;
      this.cur.append(h('text', { class: 'tip', x: right ? x - 6 : x + 6, y: this.o.top + 9, 'text-anchor': right ? 'end' : 'start' }, s));
    }
  }
}
export const half = v => Math.round(v) + .5;
export const pathOf = (c, pts) => pts.map((p, i) => (i ? 'L' : 'M') + c.x(p[0]).toFixed(1) + ' ' + c.y(p[1]).toFixed(1)).join('');
export const stairs = (c, pts) => pts.map((p, i) => (i ? 'H' + c.x(p[0]).toFixed(1) + 'V' + c.y(p[1]).toFixed(1) : 'M' + c.x(p[0]).toFixed(1) + ' ' + c.y(p[1]).toFixed(1))).join('');
export const valueAt = (pts, t) => { let v; for (const p of pts) { if (p[0] > t) break; v = p[1]; } return v; };

// line is one number over time: {points, from, to, label}. A gap (null) is a gap.
const ago = (a, z) => z - a > 20 * 60e3 ? { at: timeTicks(a, z, 6), say: hm } : { at: [a, a + (z - a) / 3, a + (z - a) * 2 / 3, z], say: v => v === z ? 'now' : '−' + Math.round((z - v) / 60e3) + 'm' };
export const line = o => new Chart({
  time: true, ...o,
  value: (d, t) => { const v = valueAt(d.points, t); return v == null ? null : { y: v, text: (o.yfmt || short)(v) }; },
  rows: d => ({ head: ['time', 'value'], rows: d.points.map(([t, v]) => [clock(t), v == null ? 'not measured' : (o.yfmt || short)(v)]) }),
  draw(c, d) {
    const pts = d.points, x1 = d.to, x0 = d.from, { top, ticks } = nice(Math.max(...pts.map(p => p[1] ?? 0), 1e-9), 2, o.whole && [1, 2, 5, 10, 20, 50, 100, 200, 250, 500, 1000, 2000, 5000]), x = ago(x0, x1);
    const g = c.frame(x0, x1, top, ticks, c.w < 210 ? [x0, x1] : x.at, c.w < 210 && x1 - x0 > 20 * 60e3 ? hm : x.say);
    if (o.bars) { const bw = Math.max(1.5, c.iw / pts.length - .7); for (const [t, v] of pts) if (v) g.append(h('rect', { class: 'f-' + o.role, x: Math.min(c.x(t), c.o.left + c.iw - bw), width: bw, y: c.y(v), height: c.y(0) - c.y(v) })); } else for (const run of runs(pts)) {
      g.append(h('path', { class: 'area f-' + o.role, d: pathOf(c, run) + `L${c.x(run.at(-1)[0]).toFixed(1)} ${c.y(0)}L${c.x(run[0][0]).toFixed(1)} ${c.y(0)}Z` }), h('path', { class: 'line s-' + o.role, d: pathOf(c, run) }));
    }
    return g;
  },
});
function runs(pts) {
  const out = [[]];
  for (const p of pts) if (p[1] == null) out.push([]); else out.at(-1).push(p);
  return out.filter(x => x.length > 1);
}
