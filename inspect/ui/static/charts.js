// Charts: SVG made here, drawn in pixels of the page, so that text is never scaled. Every
// chart has a zero line, a top value, times below, one cursor for all, and a name that says
// what it shows. Behind each is a table with the same numbers, for who cannot see it.
import { h, set, hm, clock, dur, short, num, plain } from './ui.js';

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
export function timeTicks(a, b, room) {
  const step = steps.find(s => (b - a) / s <= room) || 12 * 36e5, out = [], off = new Date(a).getTimezoneOffset() * 60e3;
  for (let t = Math.ceil((a - off) / step) * step + off; t <= b; t += step) out.push(t);
  return out;
}

// stamp is how a time is written below a chart of that length.
const dayF = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const stamp = (a, z, room) => (steps.find(s => (z - a) / s <= room) || 60e3) < 60e3 ? clock : z - a > 40 * 36e5 ? t => dayF.format(t) : hm;
const times = (a, z, w) => { const room = Math.max(2, w / 76); return [timeTicks(a, z, room), stamp(a, z, room)]; };

class Chart {
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
    for (const v of ticks) g.append(h('line', { class: v ? 'grid' : 'axis', x1: left, x2: left + this.iw, y1: r(this.y(v)), y2: r(this.y(v)) }), h('text', { class: 'ax', x: left - 6, y: this.y(v) + 3.5, 'text-anchor': 'end' }, yfmt(v)));
    for (const v of xticks) {
      const x = this.x(v);
      g.append(h('line', { class: 'axis', x1: r(x), x2: r(x), y1: mt + this.ih, y2: mt + this.ih + 4 }), h('text', { class: 'ax', x, y: this.hh - 3, 'text-anchor': x > this.w - 26 ? 'end' : x < left + 8 ? 'start' : 'middle' }, xfmt(v)));
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
const r = v => Math.round(v) + .5;
const pathOf = (c, pts) => pts.map((p, i) => (i ? 'L' : 'M') + c.x(p[0]).toFixed(1) + ' ' + c.y(p[1]).toFixed(1)).join('');
const stairs = (c, pts) => pts.map((p, i) => (i ? 'H' + c.x(p[0]).toFixed(1) + 'V' + c.y(p[1]).toFixed(1) : 'M' + c.x(p[0]).toFixed(1) + ' ' + c.y(p[1]).toFixed(1))).join('');
const valueAt = (pts, t) => { let v; for (const p of pts) { if (p[0] > t) break; v = p[1]; } return v; };

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

// stack is counts over time by family: {bins: [{at, to, counts: {role: n}}], order}.
export const stack = o => new Chart({
  time: true, ...o,
  value: (d, t) => { const b = d.bins.find(b => b.at <= t && t < b.to); return b && { text: d.order.filter(k => b.counts[k]).map(k => b.counts[k] + ' ' + (d.names[k] || k)).join(', ') || 'none' }; },
  rows: d => ({ head: ['from', ...d.order.map(k => d.names[k] || k)], rows: d.bins.map(b => [hm(b.at), ...d.order.map(k => b.counts[k] || 0)]) }),
  draw(c, d) {
    const { top, ticks } = nice(Math.max(...d.bins.map(b => d.order.reduce((s, k) => s + (b.counts[k] || 0), 0)), 1));
    const a = d.bins[0].at, z = d.bins.at(-1).to, g = c.frame(a, z, top, ticks, ...times(a, z, c.w));
    for (const b of d.bins) {
      let y = 0;
      const x = c.x(b.at) + .75, w = Math.max(1, c.x(b.to) - c.x(b.at) - 1.5), part = b.to > d.now ? ' part' : '';
      for (const k of d.order) {
        const n = b.counts[k] || 0;
        if (n) g.append(h('rect', { class: 'f-' + k + part, x, width: w, y: c.y(y + n), height: Math.max(.8, c.y(y) - c.y(y + n) - (y ? .8 : 0)) }));
        y += n;
      }
    }
    return g;
  },
});

// bars is outcomes by tag: full widths, a number for each part that has room.
export const bars = o => new Chart({
  left: 84, right: 44, top: 2, bottom: 18, ...o,
  rows: d => ({ head: ['tag', ...d.order.map(k => d.names[k] || k)], rows: d.rows.map(r => [r.name, ...d.order.map(k => r.counts[k] || 0)]) }),
  draw(c, d) {
    const rows = d.rows.slice(0, 7), bh = Math.min(22, (c.hh - 22) / rows.length), iw = c.w - 84 - 44, g = h('g', {});
    for (const p of [0, 50, 100]) { const x = r(84 + iw * p / 100); g.append(h('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: rows.length * bh + 2 }), h('text', { class: 'ax', x, y: rows.length * bh + 15, 'text-anchor': 'middle' }, p + '%')); }
    rows.forEach((row, i) => {
      let x = 84;
      const sum = d.order.reduce((s, k) => s + (row.counts[k] || 0), 0);
      g.append(h('text', { class: 'ax strong', x: 78, y: i * bh + bh / 2 + 4, 'text-anchor': 'end' }, row.name.slice(0, 12)), h('text', { class: 'ax', x: c.w, y: i * bh + bh / 2 + 4, 'text-anchor': 'end' }, short(sum)));
      for (const k of d.order) {
        const n = row.counts[k] || 0, w = iw * n / sum;
        if (!n) continue;
        g.append(h('rect', { class: 'f-' + k, x, y: i * bh + 2, width: Math.max(1, w - 1), height: bh - 5, rx: 1.5 }, h('title', {}, `${row.name}: ${n} ${d.names[k] || k} of ${sum}`)));
        if (w > 34) g.append(h('text', { class: 'in', x: x + w / 2, y: i * bh + bh / 2 + 3.5, 'text-anchor': 'middle' }, Math.round(100 * n / sum) + '%'));
        x += w;
      }
    });
    return g;
  },
});

// histogram has readable edges, and marks the middle and the slow end. The last bar has all
// that is more. It draws values, or counts that were made where the values are: {counts, width, p50, p95}.
function counted(d, o) {
  if (d.counts) return { count: d.counts, width: d.width, top: d.width * d.counts.length, beyond: d.beyond || 0, q: [d.p50, d.p95], xt: nice(d.width * d.counts.length, 6, o.step).ticks };
  const sorted = [...d.values].sort((a, b) => a - b), q = p => sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))], { top, ticks } = nice(q(.985), 6, o.step), n = 30, count = Array(n).fill(0);
  let beyond = 0;
  for (const v of sorted) if (v >= top) beyond++; else count[Math.floor(v / top * n)]++;
  return { count, width: top / n, top, beyond, q: [q(.5), q(.95)], xt: ticks };
}
export const histogram = o => new Chart({
  ...o,
  rows(d) { const { count, width, top, beyond } = counted(d, o); return { head: ['from', 'to', 'how many'], rows: [...count.map((v, i) => [o.xfmt(i * width), o.xfmt((i + 1) * width), v]), ...(beyond ? [[o.xfmt(top), 'more', beyond]] : [])] }; },
  draw(c, d) {
    const { count, width, top: xtop, beyond, q, xt } = counted(d, o), n = count.length, all = beyond ? [...count, beyond] : count, end = width * all.length, { top, ticks } = nice(Math.max(...all, 1), 3, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]);
    const g = c.frame(0, end, top, ticks, xt.filter(v => v <= xtop * 1.001), o.xfmt);
    all.forEach((v, i) => v && g.append(h('rect', { class: i === n ? 'f-limit' : 'f-work', x: c.x(i * width) + .75, width: Math.max(1, c.x(width) - c.x(0) - 1.5), y: c.y(v), height: c.y(0) - c.y(v) }, h('title', {}, (i === n ? o.xfmt(xtop) + ' and more' : o.xfmt(i * width) + ' to ' + o.xfmt((i + 1) * width)) + ': ' + v))));
    let free = -1e9;
    [['p50', q[0]], ['p95', q[1]]].forEach(([name, v]) => {
      if (v == null) return;
      const x = r(c.x(Math.min(v, end))), right = x > c.w - 90, low = x - free < 74;
      free = x;
      g.append(h('line', { class: 'mark', x1: x, x2: x, y1: c.o.top, y2: c.o.top + c.ih }), h('text', { class: 'ax strong', x: right ? x - 5 : x + 5, y: c.o.top + (low ? 23 : 9), 'text-anchor': right ? 'end' : 'start' }, name + ' ' + o.xfmt(v)));
    });
    return g;
  },
});

// pace is what ran and what might run; each change of the limit has a number, listed below the chart.
export const pace = o => new Chart({
  time: true, ...o,
  value: (d, t) => { const l = valueAt(d.limit, t), w = valueAt(d.running, t); return { y: w, text: (w ?? 0) + (l == null ? '' : ' of ' + l) }; },
  rows: d => ({ head: ['time', 'running', 'limit', 'why'], rows: [...d.running.map(([t, v]) => [t, v, valueAt(d.limit, t) ?? '', '']), ...d.marks.map(m => [m.at, valueAt(d.running, m.at) ?? '', m.from + ' → ' + m.to, m.why])].sort((a, b) => a[0] - b[0]).map(([t, ...x]) => [clock(t), ...x]) }),
  draw(c, d) {
    const { top, ticks } = nice(Math.max(...d.limit.map(p => p[1]), ...d.running.map(p => p[1]), 1) * 1.08, 3, [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000]), g = c.frame(d.from, d.to, top, ticks, ...times(d.from, d.to, c.w));
    for (const [a, b, why] of d.bands || []) g.append(h('rect', { class: 'band', x: c.x(a), width: Math.max(2, c.x(b) - c.x(a)), y: c.o.top, height: c.ih }, h('title', {}, why)));
    if (d.running.length) g.append(h('path', { class: 'area f-work', d: stairs(c, d.running) + `V${c.y(0)}H${c.x(d.running[0][0])}Z` }));
    if (d.limit.length) g.append(h('path', { class: 'line dash', d: stairs(c, [...d.limit, [d.to, d.limit.at(-1)[1]]]) }));
    else if (d.running.length) g.append(h('path', { class: 'line s-work', d: stairs(c, d.running) }));
    let last = -99;
    d.marks.forEach(m => {
      const x = c.x(m.at), y = c.y(Math.max(m.from, m.to));
      if (x - last < 15) return;
      last = x;
      const g2 = h('g', { class: 'pin r-' + m.role }, h('circle', { cx: x, cy: Math.max(9, y - 1), r: 7.5 }), h('text', { x, y: Math.max(9, y - 1) + 3.5, 'text-anchor': 'middle' }, m.n), h('title', {}, clock(m.at) + ' ' + m.from + ' → ' + m.to + ': ' + m.why));
      g.append(g2);
    });
    return g;
  },
});

// spend is cost so far, the budget, and where it ends if the rate stays.
export const spend = o => new Chart({
  time: true, ...o,
  value: (d, t) => { const v = valueAt(d.points, t); return v == null ? null : { y: v, text: o.yfmt(v) }; },
  rows: d => ({ head: ['time', 'cost so far'], rows: [...d.points.filter((p, i) => i % Math.ceil(d.points.length / 100) === 0).map(([t, v]) => [clock(t), o.yfmt(v)]), ...(d.end ? [[clock(d.end[0]), '≈ ' + o.yfmt(d.end[1])]] : [])] }),
  draw(c, d) {
    const last = d.points.at(-1), end = d.end || last, { top, ticks } = nice(Math.max(d.budget || 0, end[1]) * 1.05), to = Math.max(end[0], d.from + 1000), g = c.frame(d.from, to, top, ticks, ...times(d.from, to, c.w));
    g.append(h('path', { class: 'area f-work', d: pathOf(c, d.points) + `L${c.x(last[0])} ${c.y(0)}L${c.x(d.from)} ${c.y(0)}Z` }), h('path', { class: 'line s-work', d: pathOf(c, d.points) }), d.end ? h('path', { class: 'line s-work dash', d: pathOf(c, [last, end]) }) : '');
    if (d.budget) {
      const y = r(c.y(d.budget)), y8 = r(c.y(d.budget * .8));
      g.append(h('line', { class: 'mark bad', x1: c.o.left, x2: c.o.left + c.iw, y1: y, y2: y }), h('text', { class: 'ax strong', x: c.o.left + 4, y: y - 4 }, 'budget ' + o.yfmt(d.budget)), h('line', { class: 'mark', x1: c.o.left, x2: c.o.left + c.iw, y1: y8, y2: y8 }), h('text', { class: 'ax', x: c.o.left + 4, y: y8 - 4 }, 'warning at four fifths'));
    }
    g.append(h('circle', { class: 'dot f-work', cx: c.x(last[0]), cy: c.y(last[1]), r: 3.5 }), h('text', { class: 'ax strong', x: c.w - 10, y: Math.max(12, c.y(end[1]) - 7), 'text-anchor': 'end' }, (d.end ? '≈ ' : '') + o.yfmt(end[1])));
    return g;
  },
});

// lanes is a session's life: one lane each for its process, turns, tools and waits; deaths and
// crashes cut through all. Bars that would share a pixel are one bar that says how many it is.
function merged(bars, x) {
  const out = [];
  for (const [a, b, text] of bars) {
    const l = out.at(-1), xa = x(a), xb = Math.max(xa + 2, x(b) - 1);
    if (l && xa < l.x1 + 1 && xb - l.x1 < 3) { l.x1 = Math.max(l.x1, xb); l.to = Math.max(l.to, b); l.n++; } else out.push({ x0: xa, x1: xb, at: a, to: b, text, n: 1 });
  }
  return out;
}
export const lanes = o => new Chart({
  time: true, left: 64, right: 10, top: 16, ...o,
  value: (d, t) => { const at = d.lanes.flatMap(l => l.bars.filter(b => b[0] <= t && t <= b[1]).map(b => l.name + ' ' + b[2])); return { text: at.slice(0, 4).join(' · ') }; },
  rows: d => ({ head: ['begin', 'what', 'for'], rows: [...d.lanes.flatMap(l => l.bars.map(b => [b[0], l.name + ' ' + b[2], dur(b[1] - b[0])])), ...d.marks.map(m => [m.at, m.why, ''])].sort((a, b) => a[0] - b[0]).map(([t, ...x]) => [clock(t), ...x]) }),
  draw(c, d) {
    const n = d.lanes.length, g = c.frame(d.from, d.to, 1, [], ...times(d.from, d.to, c.w)), lh = c.ih / n;
    g.append(h('line', { class: 'axis', x1: c.o.left, x2: c.w - 10, y1: r(c.o.top + c.ih), y2: r(c.o.top + c.ih) }));
    d.lanes.forEach((l, i) => {
      const y = c.o.top + i * lh, inside = l.bars.filter(b => b[1] >= d.from && b[0] <= d.to).map(b => [Math.max(b[0], d.from), Math.min(b[1], d.to), b[2], b]);
      g.append(h('text', { class: 'ax', x: c.o.left - 8, y: y + lh / 2 + 3.5, 'text-anchor': 'end' }, l.name));
      for (const b of merged(inside, c.x)) {
        const w = b.x1 - b.x0, say = b.n > 1 ? b.n + ' ' + l.name : b.text;
        g.append(h('rect', { class: 'lane f-' + l.role, x: b.x0, width: w, y: y + 2.5, height: lh - 5, rx: w > 6 ? 2 : 0 }, h('title', {}, (b.n > 1 ? say : l.name + ' ' + say) + '\n' + clock(b.at) + ', ' + dur(b.to - b.at))));
        if (w > say.length * 6 + 8) g.append(h('text', { class: 'in', x: b.x0 + 6, y: y + lh / 2 + 3.5 }, say));
      }
    });
    for (const m of d.marks) {
      if (m.at < d.from || m.at > d.to) continue;
      const x = r(c.x(m.at));
      g.append(h('g', { class: 'cut r-' + m.role }, h('line', { x1: x, x2: x, y1: 12, y2: c.o.top + c.ih }), h('path', { d: `M${x - 4} 4l8 8m0-8l-8 8` }), h('title', {}, clock(m.at) + ' ' + m.why)));
    }
    return g;
  },
});

export const legend = (order, names, totals) => h('ul', { class: 'legend' }, order.filter(k => !totals || totals[k]).map(k => h('li', {}, h('svg', { class: 'sw', viewBox: '0 0 10 10', 'aria-hidden': 'true' }, h('rect', { class: 'f-' + k, width: 10, height: 10, rx: 2 })), names[k] || k, totals && h('b', { class: 'n' }, short(totals[k])))));
