// The charts of jobs and accounts.
import { h, hm, clock, short } from './ui.js';
import { Chart, nice, times, half, pathOf, stairs, valueAt } from './charts.js';

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
    for (const p of [0, 50, 100]) { const x = half(84 + iw * p / 100); g.append(h('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: rows.length * bh + 2 }), h('text', { class: 'ax', x, y: rows.length * bh + 15, 'text-anchor': 'middle' }, p + '%')); }
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
      const x = half(c.x(Math.min(v, end))), right = x > c.w - 90, low = (right ? x - 148 : x - 74) < free;
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
      const y = half(c.y(d.budget)), y8 = half(c.y(d.budget * .8));
      g.append(h('line', { class: 'mark bad', x1: c.o.left, x2: c.o.left + c.iw, y1: y, y2: y }), h('text', { class: 'ax strong', x: c.o.left + 4, y: y - 4 }, 'budget ' + o.yfmt(d.budget)), h('line', { class: 'mark', x1: c.o.left, x2: c.o.left + c.iw, y1: y8, y2: y8 }), h('text', { class: 'ax', x: c.o.left + 4, y: y8 - 4 }, 'warning at four fifths'));
    }
    g.append(h('circle', { class: 'dot f-work', cx: c.x(last[0]), cy: c.y(last[1]), r: 3.5 }), h('text', { class: 'ax strong', x: c.w - 10, y: Math.max(12, c.y(end[1]) - 7), 'text-anchor': 'end' }, (d.end ? '≈ ' : '') + o.yfmt(end[1])));
    return g;
  },
});

export const legend = (order, names, totals) => h('ul', { class: 'legend' }, order.filter(k => !totals || totals[k]).map(k => h('li', {}, h('svg', { class: 'sw', viewBox: '0 0 10 10', 'aria-hidden': 'true' }, h('rect', { class: 'f-' + k, width: 10, height: 10, rx: 2 })), names[k] || k, totals && h('b', { class: 'n' }, short(totals[k])))));
