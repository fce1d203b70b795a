// The chart of a session's life.
import { h, clock, dur } from './ui.js';
import { Chart, times, half } from './charts.js';

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
    const n = d.lanes.length, g = c.frame(d.from, d.to, 1, [], ...times(d.from, d.to, c.w)), lh = Math.min(26, c.ih / n);
    g.append(h('line', { class: 'axis', x1: c.o.left, x2: c.w - 10, y1: half(c.o.top + c.ih), y2: half(c.o.top + c.ih) }));
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
      const x = half(c.x(m.at));
      g.append(h('g', { class: 'cut r-' + m.role }, h('line', { x1: x, x2: x, y1: 12, y2: c.o.top + c.ih }), h('path', { d: `M${x - 4} 4l8 8m0-8l-8 8` }), h('title', {}, clock(m.at) + ' ' + m.why)));
    }
    return g;
  },
});
